import fc from "fast-check"
import { expect, test } from "vitest"
import { type CheckedAnswer, checkCitations, NONE_DROPPED } from "../../src/answers/cited.ts"
import type { Passage } from "../../src/answers/passages.ts"

const passages = [
  "The hook test was flaky because the port was taken. We now bind to port 0.",
  "See https://example.com/hooks for the list.\nRetry after 2 s, then 4 s.",
].map(
  (text, i): Passage => ({
    n: i + 1,
    ref: `claude_code:a#${i + 1}`,
    conversation: { source: "claude_code", id: "a" },
    title: "",
    origins: ["agent"],
    text,
  }),
)
const passage = (n: number) => passages[n - 1]
const kept = (answer: string) => checkCitations(answer, passage).kept.map(({ text }) => text)

test("a sentence is kept if it cites what was read", () => {
  expect(kept("The port was taken [1]. It retries twice. [2] Nobody knows why.")).toEqual([
    "The port was taken [1].",
    "It retries twice. [2]",
  ])
  expect(checkCitations("No source here. Nor here [7].", passage)).toEqual({
    kept: [],
    dropped: { ...NONE_DROPPED, no_source: 2 },
  })
})

test("an unknown number is removed from a sentence that has another one", () => {
  expect(kept("It binds to port 0 [1][9].")).toEqual(["It binds to port 0 [1]."])
})

test("a quotation must be in the cited passage, except for white space and marked omissions", () => {
  expect(kept('It says "Retry after 2 s, then 4 s." [2]')).toHaveLength(1)
  expect(kept("It says “The hook test was … bind to port 0.” [1]")).toHaveLength(1)
  expect(checkCitations('It says "Retry after 9 s, then 4 s." [2]', passage).dropped.wrong_quote).toBe(1)
  expect(checkCitations('It says "Retry after 2 s, then 4 s." [1]', passage).dropped.wrong_quote).toBe(1)
})

test("a link must be in the cited passage", () => {
  expect(kept("The list is at https://example.com/hooks. [2]")).toHaveLength(1)
  for (const link of ["https://example.com/other", "http://evil.test/?q=1", "www.evil.test", "javascript:alert(1)"])
    expect(checkCitations(`The list is at ${link} [2]`, passage).dropped.foreign_link).toBe(1)
})

test("a name, path, number, flag or code must be in the cited passage, as a separate word", () => {
  for (const right of [
    "It binds to port 0.",
    "The port was `taken`.",
    "It waits 2 s, then 4 s.",
    "Since 0 is free, it binds there.",
  ])
    expect(kept(`${right.slice(0, -1)} [1][2].`), right).toHaveLength(1)
  for (const wrong of [
    "It binds to port 80.",
    "It waits 24 s.",
    "It calls `listen(0)`.",
    "See src/hooks.ts for it.",
    "Pass --retry to it.",
    "It was Redis that took the port.",
    "It uses retryAfter for that.",
    "Set HOOK_PORT first.",
  ])
    expect(checkCitations(`${wrong.slice(0, -1)} [1][2].`, passage).dropped.unsupported, wrong).toBe(1)
})

test("a sentence must be about the passage that it cites", () => {
  for (const sentence of [
    "The moon is made of cheese [1].",
    "They number invoices per year [1].",
    "The hook test was flaky because the port was taken [2].",
  ])
    expect(checkCitations(sentence, passage).dropped.unrelated, sentence).toBe(1)
  expect(kept("Since its port was already taken, the test of the hook was flaky [1].")).toHaveLength(1)
})

test("a sentence must not contradict the passage that it cites", () => {
  const says = (text: string): CheckedAnswer =>
    checkCitations(text, () => ({
      ...passages[0]!,
      text: "The cleanup job deletes stale branches every night. It does not touch tags. Retries were removed.",
    }))
  for (const right of [
    "Stale branches are deleted every night by the cleanup job [1].",
    "The cleanup job doesn't touch tags [1].",
    "Tags are not touched by the cleanup job [1].",
    "The retries were removed [1].",
  ])
    expect(says(right).kept, right).toHaveLength(1)
  for (const wrong of [
    "The cleanup job does not delete stale branches every night [1].",
    "The cleanup job no longer deletes stale branches [1].",
    "The cleanup job touches tags [1].",
    "The retries were not removed [1].",
  ])
    expect(says(wrong).dropped.contradicted, wrong).toBe(1)
})

test("a negation about something else in the source does not support a negated sentence", () => {
  const says = (text: string): CheckedAnswer =>
    checkCitations(text, () => ({
      ...passages[0]!,
      text: "Hook handlers take the agent from the command that was called. Older sessions have no agent.",
    }))
  expect(says("Older sessions do not have an agent [1].").kept).toHaveLength(1)
  expect(says("Hook handlers take the agent from the command [1].").kept).toHaveLength(1)
  expect(says("Hook handlers do not take the agent from the command [1].").dropped.contradicted).toBe(1)
})

test("a heading such as “Do not:” negates the list below it, and nothing else", () => {
  const says = (text: string): CheckedAnswer =>
    checkCitations(text, () => ({
      ...passages[0]!,
      text: "**Do NOT:**\n- Read the settings file directly\n- Copy its parser\n\nUse the settings package.\n- Call its loader",
    }))
  for (const right of [
    "Never read the settings file directly [1].",
    "Do not copy its parser [1].",
    "Use the settings package [1].",
    "Call the loader of the settings package [1].",
  ])
    expect(says(right).kept, right).toHaveLength(1)
  for (const wrong of ["Read the settings file directly [1].", "Never call its loader [1]."])
    expect(says(wrong).dropped.contradicted, wrong).toBe(1)
})

test("text without spaces is compared by its characters", () => {
  const says = (text: string) =>
    checkCitations(text, () => ({ ...passages[0]!, text: "テストはポート番号が使用中なので失敗した。" }))
  expect(says("ポート番号が使用中なのでテストは失敗した [1]").kept).toHaveLength(1)
  expect(says("月はチーズでできている [1]").dropped.unrelated).toBe(1)
})

test("a sentence that introduces code is checked together with it", () => {
  expect(kept("To free it, do this [1]:\n```\nbind to port 0\n```")).toHaveLength(2)
  expect(kept("The moon is made of cheese and of several other kinds of milk [1]:\n```\nport 0\n```")).toEqual([])
})

test("code belongs to the sentence before it, and is dropped with it", () => {
  const code = "```js\nbind to port 0\n```"
  expect(kept(`Bind to port 0 [1]:\n${code}`)).toEqual(["Bind to port 0 [1]:", code])
  expect(kept(`Bind to some port:\n${code}`)).toEqual([])
})

test("whatever a model says, the kept sentences cite only what was read, and quote only what is there", () => {
  const word = fc.constantFrom(
    "port",
    "0",
    "[1]",
    "[2]",
    "[3]",
    "[99]",
    ".",
    "!",
    "\n",
    '"The hook test was flaky"',
    '"The hook test was fine"',
    "https://example.com/hooks",
    "https://evil.test/a",
    "```",
    "- ",
    "“bind to port 0.”",
  )
  fc.assert(
    fc.property(fc.array(word, { maxLength: 60 }), (words) => {
      for (const { text, numbers } of checkCitations(words.join(" "), passage).kept) {
        expect(numbers.length).toBeGreaterThan(0)
        expect(numbers.every((n) => n === 1 || n === 2)).toBe(true)
        expect(text).not.toMatch(/\[(?:3|99)\]|evil\.test|was fine/)
      }
    }),
    { numRuns: 2000 },
  )
})
