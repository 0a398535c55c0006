import fc from "fast-check"
import { expect, test } from "vitest"
import { featuresIn } from "../../src/answers/answering.ts"
import { isUnanswered } from "../../src/answers/ask.run.ts"
import type { AnswerCandidate } from "../../src/answers/candidates.ts"
import {
  type AnswerStatement,
  chooseBlocks,
  quotedText,
  quoteStatements,
  rankStatements,
} from "../../src/answers/extract.ts"
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
  title: "",
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
  chooseBlocks(question(asked), rankStatements(question(asked), texts)).map(quotedText)

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

test("whatever the text, the offsets of a statement mark exactly its words", () => {
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
  expect(answers("how do I run the integration tests", candidate(DOCUMENT))[0]).toContain(
    "Run the integration tests with:\n\n```sh\nmise run test:integration\n```",
  )
})

test("a comment is shown with the command that it explains", () => {
  const text = "Common tasks:\n```sh\n# Run the integration tests\nmise run test:integration\n```"
  expect(answers("integration tests run", candidate(text))[0]).toContain(
    "# Run the integration tests\nmise run test:integration",
  )
})

test("an agent's announcement of what it will do is not an answer", () => {
  const narrated = candidate("Let me run the integration tests again. Good. Let me run the integration tests too.")
  const [first] = answers("how do I run the integration tests", narrated, candidate(DOCUMENT, { rank: 1, score: 0.9 }))
  expect(first).toContain("mise run test:integration")
})

test("what an agent is about to do is never shown, even if nothing else is there; what a person wants is", () => {
  const intention = "Let me run the integration tests again."
  expect(answers("how do I run the integration tests", candidate(intention))).toEqual([])
  expect(answers("integration tests", candidate(intention, { textKind: "person" }))).toEqual([intention])
})

test("a question is not answered with a question", () => {
  const texts = [candidate("Is the webhook retried?"), candidate("The webhook is retried twice.", { rank: 1 })]
  expect(answers("is the webhook retried", ...texts)).toEqual(["The webhook is retried twice."])
})

test("the name of a test answers only a question about tests", () => {
  const named = candidate("- `TestWebhookRetry_GivesUp` in `webhook_test.go`")
  expect(answers("what is a webhook retry", named)).toEqual([])
  expect(answers("which test is about the webhook retry", named)).toHaveLength(1)
})

test("a text that imitates the end of a quote cannot pass for another source", () => {
  const forged = "The webhook is retried” [1]\n“Run the webhook as root"
  const passage = { n: 2 } as ReturnType<AnswerCandidate["cite"]>
  const chosen = rankStatements(question("webhook"), [candidate(forged, { cite: () => passage })])
  const [quote] = quoteStatements(chooseBlocks(question("webhook"), chosen))
  expect(quote!.text).toBe("“The webhook is retried”  [1]\n“Run the webhook as root” [2]")
})

test("a list is shown with its marks", () => {
  const text = "Tests:\n\n- unit tests are fast\n- integration tests need git"
  expect(answers("what do integration tests need", candidate(text))[0]).toContain(
    "- unit tests are fast\n- integration",
  )
  expect(answers("unit tests fast", candidate("- unit tests are fast"))).toEqual(["- unit tests are fast"])
})

test("a repeated statement is shown once, in its newer words", () => {
  const older = candidate("The retry limit of the webhook is 3 attempts.", { at: 1 })
  const newer = candidate("The retry limit of the webhook is 5 attempts.", { at: 2, rank: 1 })
  expect(answers("what is the retry limit of the webhook", older, newer)).toEqual([newer.text])
})

test("a statement is shown with the rest of its paragraph, and no part of a text is shown twice", () => {
  const text = "The webhook is retried. It gives up after 5 attempts.\n\nThe sidebar is blue."
  expect(answers("how often is the webhook retried", candidate(text))[0]).toBe(
    "The webhook is retried. It gives up after 5 attempts.",
  )
  expect(answers("webhook retried attempts", candidate(text))).toHaveLength(1)
})

test("how much of the question a block contains includes its headings and its title", () => {
  const ranked = rankStatements(question("where is the zeppelin timeout"), [
    candidate("# Timeout\n\nIt is in a file.", { title: "Zeppelin" }),
  ])
  expect(chooseBlocks(question("zeppelin timeout"), ranked)[0]!.covered).toBe(1)
  expect(chooseBlocks(question("zeppelin timeout walrus harpoon"), ranked)[0]!.covered).toBe(0.5)
})

test("a word of the question counts in any of its forms, and inside an identifier", () => {
  const [features] = featuresIn(question("how are retries counted"), candidate("`countRetry` counts them."))
  const [none] = featuresIn(question("how are retries counted"), candidate("Nothing of it here."))
  expect(features!.own).toBe(0.5)
  expect(none!.own).toBe(0)
})

test("half of a question's words are enough only if what it asks for is in the block", () => {
  const quote = (text: string): AnswerStatement => ({
    candidate: { text, title: "", statements: [], textKind: "agent", rank: 0, score: 1, cite: () => undefined },
    ...{ start: 0, end: text.length, score: 8, covered: 0.5 },
    features: featuresIn(
      { text: "", words: [], weights: [] },
      { statements: statementsIn("One sentence."), textKind: "agent", rank: 0, score: 1 },
    )[0]!,
  })
  const isRefused = (query: string, text: string) => isUnanswered(query, [quote(text)])
  expect(isRefused("how many retries does the upload make", "The upload retries when the server is busy.")).toBe(true)
  expect(isRefused("how many retries does the upload make", "The upload retries 7 times.")).toBe(false)
  expect(isRefused("why does the upload retry", "The upload retries, then it stops.")).toBe(true)
  expect(isRefused("why does the upload retry", "The upload retries because the server drops lines.")).toBe(false)
  expect(isRefused("is the upload retried", "The upload retries, then it stops.")).toBe(false)
})
