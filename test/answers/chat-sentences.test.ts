import fc from "fast-check"
import { expect, test } from "vitest"
import { createSentences } from "../../src/answers/chat.run.ts"
import { checkCitations, settledLength } from "../../src/answers/cited.ts"
import type { Passage } from "../../src/answers/passages.ts"

const passage = (n: number): Passage | undefined =>
  n < 1 || n > 3
    ? undefined
    : {
        n,
        ref: `claude_code:a#${n}`,
        conversation: { source: "claude_code", id: "a" },
        title: "",
        origins: ["agent"],
        text: `Port 8080 was taken, says passage ${n}, so it binds to 0 with listen(0). Then it goes on. See https://example.com/${n}`,
      }
const check = (text: string) => checkCitations(text, passage)

/** The sentences that are shown if an answer arrives in these pieces, and after which piece. */
function shown(pieces: string[]) {
  const said: { text: string; after: number }[] = []
  let after = 0
  const sentences = createSentences(check, (text) => said.push({ text, after }))
  for (const piece of pieces) {
    after++
    sentences.append(piece)
  }
  sentences.end(true)
  return { said, checked: sentences.checked() }
}

const bits = fc.constantFrom(
  ...[
    "Port 8080 was taken",
    "It binds to 0",
    " [1]",
    " [2]",
    "[9]",
    "[",
    "]",
    "1",
    ".",
    ". ",
    "! ",
    "? ",
    " ",
    "\n",
    "\n\n",
  ],
  ...[
    "```",
    "```ts\n",
    "```\n",
    "``",
    "`",
    "- a",
    "\r\n",
    "\u2028",
    "NOT",
    '"the port is 9999, sorry"',
    "https://evil.test/x",
  ],
)
const answers = fc.array(bits, { maxLength: 30 }).map((parts) => parts.join(""))

test("property: however the text is split, the supported sentences of the complete answer are shown in order, each once", () => {
  fc.assert(
    fc.property(answers, fc.integer({ min: 1, max: 7 }), (answer, size) => {
      const pieces = answer.match(new RegExp(`[\\s\\S]{1,${size}}`, "g")) ?? []
      const { said, checked } = shown(pieces)
      const whole = check(answer)
      expect(said.map(({ text }) => text)).toEqual([...new Set(whole.kept.map(({ text }) => text))])
      expect(checked.dropped).toEqual(whole.dropped)
    }),
    { numRuns: 3_000 },
  )
})

test("property: a settled sentence does not change, whatever follows", () => {
  fc.assert(
    fc.property(answers, answers, (before, after) => {
      const settled = check(before.slice(0, settledLength(before))).kept
      expect(check(before + after).kept.slice(0, settled.length)).toEqual(settled)
    }),
    { numRuns: 3_000 },
  )
})

test("a sentence is shown when the next one begins, not while its number may still come", () => {
  const { said } = shown(["Port 8080 was taken. ", "[1", "]", " It", " binds to 0 [2]", ".", "\n", "More [1]."])
  expect(said).toEqual([
    { text: "Port 8080 was taken. [1]", after: 4 },
    { text: "It binds to 0 [2].", after: 7 },
    { text: "More [1].", after: 8 },
  ])
})

test("code is shown when it is closed, together with its sentence", () => {
  const { said } = shown(["Bind it [1]:\n", "```ts\nlisten(0). Then\n", "```", "\nIt is made up.\n"])
  expect(said).toEqual([
    { text: "Bind it [1]:", after: 4 },
    { text: "```ts\nlisten(0). Then\n```", after: 4 },
  ])
})

test("a stream that breaks and starts again shows nothing twice, and never half a sentence", () => {
  const said: string[] = []
  const sentences = createSentences(check, (text) => said.push(text))
  sentences.append("Port 8080 was taken [1]. It was fixed by the moo")
  sentences.restart()
  for (const piece of ["Port 8080 was", " taken [1]. It binds", " to 0 [2]. All"]) sentences.append(piece)
  sentences.interrupt()
  expect(said).toEqual(["Port 8080 was taken [1].", "It binds to 0 [2]."])
  expect(sentences.breaks()).toBe(1)
})

test("words before a search are not counted as left out; those of the answer are", () => {
  const sentences = createSentences(check, () => {})
  sentences.append("Let me look.")
  sentences.end(false)
  sentences.append("It is the moon. Port 8080 was taken [1].")
  sentences.end(true)
  expect(sentences.checked()).toMatchObject({ kept: [{ numbers: [1] }], dropped: { no_source: 1 } })
})
