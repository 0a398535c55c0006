import fc from "fast-check"
import { expect, test } from "vitest"
import { featuresIn } from "../../src/answers/answering.ts"
import type { AnswerCandidate } from "../../src/answers/candidates.ts"
import { chooseStatements, quotedText, rankStatements } from "../../src/answers/extract.ts"
import { statementsIn } from "../../src/answers/statements.ts"

const DOCUMENT = `# Working on it

Tests need Go 1.24. Run the integration tests with:

\`\`\`sh
mise run test:integration
\`\`\`

| variable | what it does |
|---|---|
| \`LOG_LEVEL\` | sets how much is logged |

- Logs are in \`.cache/logs\`. They are deleted after 7 days.
{"tool":"Read","file_path":"a.go"}
`

const candidate = (text: string, more: Partial<AnswerCandidate> = {}): AnswerCandidate => ({
  text,
  statements: statementsIn(text),
  textKind: "agent",
  rank: 0,
  score: 1,
  cite: () => undefined,
  ...more,
})
const question = (text: string) => {
  const words = text.toLowerCase().match(/[a-z]+/g)!
  return { text, words, weights: words.map(() => 1) }
}
const answers = (asked: string, ...texts: AnswerCandidate[]) =>
  chooseStatements(rankStatements(question(asked), texts)).map(quotedText)

test("a text is divided into sentences, items, rows and lines of code, without headings and machine output", () => {
  expect(statementsIn(DOCUMENT).map(({ kind, text }) => [kind, text])).toEqual([
    ["sentence", "Tests need Go 1.24."],
    ["sentence", "Run the integration tests with:"],
    ["code", "mise run test:integration"],
    ["row", "| variable | what it does |"],
    ["row", "| `LOG_LEVEL` | sets how much is logged |"],
    ["item", "Logs are in `.cache/logs`."],
    ["item", "They are deleted after 7 days."],
  ])
})

test("a statement knows the sentence before it and the headings above it", () => {
  const command = statementsIn(DOCUMENT).find(({ kind }) => kind === "code")!
  expect(command.lead).toBe("Run the integration tests with:")
  expect(command.headings).toEqual(["Working on it"])
})

test("whatever the text, a statement is exactly at its stated place", () => {
  const piece = fc.oneof(fc.string(), fc.constantFrom("\n", "```", "- ", "# ", "| a |", "e.g. x. Y", "1. ", ". A"))
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const text = pieces.join("")
      let last = 0
      for (const { start, end, text: own } of statementsIn(text)) {
        expect(text.slice(start, end)).toBe(own)
        expect(start).toBeGreaterThanOrEqual(last)
        last = end
      }
    }),
    { numRuns: 2000 },
  )
})

test("a statement that introduces a command is shown with the command", () => {
  expect(answers("how do I run the integration tests", candidate(DOCUMENT))[0]).toBe(
    "Run the integration tests with:\n\n```sh\nmise run test:integration\n```",
  )
})

test("a comment is shown with the command that it explains", () => {
  const text = "Common tasks:\n```sh\n# Run the integration tests\nmise run test:integration\n```"
  expect(answers("integration tests run", candidate(text))).toContain(
    "# Run the integration tests\nmise run test:integration",
  )
})

test("an agent's announcement of what it will do is not an answer", () => {
  const narrated = candidate("Let me run the integration tests again. Good. Let me run the integration tests too.")
  const [first] = answers("how do I run the integration tests", narrated, candidate(DOCUMENT, { rank: 1, score: 0.9 }))
  expect(first).toContain("mise run test:integration")
})

test("a repeated statement is shown once, in its newer words", () => {
  const older = candidate("The retry limit of the webhook is 3 attempts.", { at: 1 })
  const newer = candidate("The retry limit of the webhook is 5 attempts.", { at: 2, rank: 1 })
  expect(answers("what is the retry limit of the webhook", older, newer)).toEqual([newer.text])
})

test("a word of the question counts in any of its forms, and inside an identifier", () => {
  const [features] = featuresIn(question("how are retries counted"), candidate("`countRetry` counts them."))
  const [none] = featuresIn(question("how are retries counted"), candidate("Nothing of it here."))
  expect(features!.own).toBe(0.5)
  expect(none!.own).toBe(0)
})
