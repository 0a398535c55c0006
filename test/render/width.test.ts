import fc from "fast-check"
import stringWidth from "fast-string-width"
import { expect, test } from "vitest"
import { clip, padEnd, widthOf, wrap } from "../../src/render/terminal.ts"

test.each([
  ["abc …", 5],
  ["✅", 2],
  ["⚡", 2],
  ["⌚", 2],
  ["❤️", 2],
  ["⚠️", 2],
  ["⚠", 1],
  ["1️⃣", 2],
  ["🇩🇪", 2],
  ["👨‍👩‍👧", 2],
  ["👩🏽‍🚀", 2],
  ["日本語", 6],
  ["한국", 4],
  ["ｆｕｌｌ", 8],
  ["𠀀", 2],
  ["e\u0301", 1],
  ["é", 1],
  ["█·", 2],
  ["", 0],
])("%s takes %i columns", (text, columns) => {
  expect(widthOf(text)).toBe(columns)
  expect(widthOf(`a${text}b`)).toBe(columns + 2)
  expect(widthOf(padEnd(text, 10))).toBe(10)
})

test("the short way gives what the library gives", () => {
  const codes = Array.from({ length: 0x10000 - 0x20 }, (_, i) => i + 0x20).filter(
    (code) => code < 0xd800 || code > 0xdfff,
  )
  expect(
    codes.filter((code) => widthOf(String.fromCodePoint(code)) !== stringWidth(String.fromCodePoint(code))),
  ).toEqual([])
})

const signs = fc.constantFrom("a", "b ", " ", "✅", "❤️", "👨‍👩‍👧", "1️⃣", "日", "𠀀", "e\u0301", "한", "…", "⚡ ", "🇩🇪")
const texts = fc.array(signs, { maxLength: 40 }).map((all) => all.join(""))

test("what is clipped fits, ends with an ellipsis, and tears no sign apart", () => {
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 30 }), (text, columns) => {
      const clipped = clip(text, columns)
      expect(widthOf(clipped)).toBeLessThanOrEqual(columns)
      if (widthOf(text) <= columns) {
        expect(clipped).toBe(text)
        return
      }
      const kept = clipped.slice(0, -1)
      expect(clipped.endsWith("…") && text.startsWith(kept)).toBe(true)
      const ends = [...new Intl.Segmenter().segment(text)].map(({ index }) => index)
      const isWhole = [...ends, text.length].some((end) => text.slice(0, end).trimEnd() === kept)
      expect([clipped, isWhole]).toEqual([clipped, true])
    }),
    { numRuns: 2_000 },
  )
})

test("where there is no room at all, the ellipsis stays", () => {
  for (const text of ["abc", "日本語"]) for (const columns of [-1, 0, 1]) expect(clip(text, columns)).toBe("…")
})

test("what is wrapped fits, and says the same words", () => {
  fc.assert(
    fc.property(texts, fc.integer({ min: 2, max: 30 }), (text, columns) => {
      const lines = wrap(text, columns)
      for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns)
      expect(lines.join("").replaceAll(" ", "")).toBe(text.replaceAll(" ", ""))
    }),
    { numRuns: 2_000 },
  )
})
