import { expect, test } from "vitest"
import { errorLines, errorSimilarity, errorText, isInformative, normaliseError } from "../../src/core/error-text.ts"
import { fixesIn, isSimilarCommand } from "../../src/learn/fixes/fixes.ts"
import { toStoredFix } from "../../src/learn/learn.ts"
import { hostileTexts, processorMs } from "../support/hostile.ts"

const NOTHING = { role: "assistant" as const, parts: [], abandoned: false, superseded: false, copied: false }

test("any error is parsed quickly", () => {
  for (const text of hostileTexts(100_000))
    expect(
      processorMs(() => {
        for (const line of errorLines(text)) errorText(line)
        normaliseError(text)
        errorSimilarity(errorText(text), errorText(text))
        isInformative(text)
        isSimilarCommand(`npm test ${text}`, text)
        fixesIn([
          {
            ...NOTHING,
            number: 1,
            effects: [{ type: "command", command: "npm run a && npm run b", failed: true, error: text }],
          },
          { ...NOTHING, number: 2, effects: [{ type: "file", action: "edited", path: "/p/a.ts" }] },
          { ...NOTHING, number: 3, effects: [{ type: "command", command: text, failed: true, error: text }] },
        ])
      }),
    ).toBeLessThan(1_000)
})

test("a long line with an unclosed quote is parsed quickly", () => {
  const parts = ["a/", "'", "a.", "1:", "[a] ", "test ", "(a", "● › ", "a.b:1: ", "make: *** [a: ", 'script "a']
  const took = processorMs(() => {
    for (const text of parts.map((part) => part.repeat(50_000))) {
      normaliseError(text)
      errorLines(text)
      errorText(text)
      isInformative(text)
      fixesIn([
        {
          ...NOTHING,
          number: 1,
          effects: [{ type: "command", command: "make fmt && make lint", failed: true, exit_status: 1, error: text }],
        },
        { ...NOTHING, number: 2, effects: [{ type: "file", path: "a.ts", action: "edited", added: 1, removed: 1 }] },
      ])
    }
  })
  expect(took).toBeLessThan(5_000)
})

test("only the stored lines of a long edit are formatted", () => {
  const edits = Array.from({ length: 100 }, (_, i) => {
    const path = `f${i}`
    const lines = Array.from({ length: 2_000 }, (_, line) => `+${line}`)
    const hunk = { path, old_start: 1, old_lines: 0, new_start: 1, new_lines: 2_000, lines }
    return { path, number: 1, added: 1, removed: 0, hunks: [hunk] }
  })
  const fixed = { command: "make", error: "x", normalised: "x", lines: ["x"], failed_at: 1, edits }
  const took = processorMs(() => {
    for (let i = 0; i < 100; i++) expect(toStoredFix(fixed, []).edit_lines_left_out).toBe(100 * 2_003 - 40)
  })
  expect(took).toBeLessThan(1_000)
})
