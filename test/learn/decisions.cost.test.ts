import { expect, test } from "vitest"
import { isDecision } from "../../src/learn/decisions/decided.ts"
import { decisionsIn, decisionsInCommits } from "../../src/learn/decisions/decisions.ts"
import { subjectOf } from "../../src/learn/decisions/subject.ts"
import { findReversals } from "../../src/learn/decisions/supersede.ts"
import type { StoredMessage } from "../../src/store/history/store.ts"
import { hostileTexts, processorMs } from "../support/hostile.ts"

const ROW = { ref: { source: "claude_code" as const, id: "one" }, kind: "person" as const, project: "/code/shop" }

const typed = (number: number, text: string): StoredMessage => ({
  number,
  role: "user",
  at: number * 1000,
  parts: [{ type: "text", text, origin: "person" }],
  effects: [],
  abandoned: false,
  superseded: false,
  copied: false,
})
const made = (...said: [conversation: string, quote: string][]) =>
  said.map(([conversation, quote], i) => ({
    key: `k${i}`,
    kind: "said",
    quote,
    number: i + 1,
    subject: subjectOf(quote),
    conversation,
  }))

test("parsing a person's sentence takes time linear in its length, whatever it says", () => {
  const hostile = [
    "because ",
    "we should ",
    "let's also just instead completely only not then ",
    "no, ",
    "a(",
    "x should ",
    "option 1 ",
    "ok ".repeat(30),
    "`a.",
    "a/",
    "\n- ",
    "(",
  ]
  const took = (times: number) => {
    const texts = hostile.map((piece) => piece.repeat(Math.ceil((times * 1000) / piece.length)))
    return processorMs(() => {
      for (const text of texts) decisionsIn(ROW, [typed(1, text), typed(2, `${text}.`), typed(3, `${text}\n`)])
    })
  }
  took(5)
  const [small, large] = [took(20), took(400)]
  expect(large).toBeLessThan(Math.max(20 * 3 * small, 1000))
  for (const text of hostileTexts(100_000))
    expect(
      processorMs(() => {
        decisionsIn(ROW, [typed(1, text), typed(2, `The user wants to clarify these questions.\n- "${text}"`)])
        decisionsInCommits([{ hash: "a", subject: `Revert "${text}"`, body: text, files: [] }])
        isDecision(text)
        subjectOf(text)
      }),
    ).toBeLessThan(1_000)
})

test("a reversed decision is found among many thousands quickly", () => {
  const many = made(
    ...Array.from({ length: 20_000 }, (_, i): [string, string] => [
      `c${i % 500}`,
      `we keep the invoice table number ${i} sorted`,
    ]),
  )
  expect(processorMs(() => findReversals(many))).toBeLessThan(10_000)
})

test("a reversed decision is found quickly even if thousands share words and contain one of two opposites", () => {
  const word = (i: number) => `w${String.fromCharCode(97 + (i % 26), 97 + Math.floor(i / 26))}x`
  const many = made(
    ...Array.from({ length: 3_000 }, (_, i): [string, string] => {
      const words = Array.from({ length: 12 }, (_, j) => word((i * 31 + j * 17 + i * j) % 400))
      return [`c${i}`, `we should always use ${words.join(" ")} ${i % 2 ? "enabled" : "disabled"}`]
    }),
  )
  expect(processorMs(() => findReversals(many))).toBeLessThan(5_000)
})
