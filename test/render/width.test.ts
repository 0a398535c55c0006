import fc from "fast-check"
import stringWidth from "fast-string-width"
import { expect, test } from "vitest"
import {
  clip,
  markWords,
  padEnd,
  paint,
  widthOf,
  wordPattern,
  wrap,
  wrapAfter,
  wrapLine,
} from "../../src/render/terminal.ts"

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

test("the fast path gives the same as the library", () => {
  const codes = Array.from({ length: 0x10000 - 0x20 }, (_, i) => i + 0x20).filter(
    (code) => code < 0xd800 || code > 0xdfff,
  )
  expect(
    codes.filter((code) => widthOf(String.fromCodePoint(code)) !== stringWidth(String.fromCodePoint(code))),
  ).toEqual([])
})

const signs = fc.constantFrom("a", "b ", " ", "✅", "❤️", "👨‍👩‍👧", "1️⃣", "日", "𠀀", "e\u0301", "한", "…", "⚡ ", "🇩🇪")
const texts = fc.array(signs, { maxLength: 40 }).map((all) => all.join(""))

test("clipped text fits, ends with an ellipsis, and splits no character", () => {
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

test("if there is no room at all, the ellipsis remains", () => {
  for (const text of ["abc", "日本語"]) for (const columns of [-1, 0, 1]) expect(clip(text, columns)).toBe("…")
})

test("wrapped text fits, and has the same words", () => {
  fc.assert(
    fc.property(texts, fc.integer({ min: 2, max: 30 }), (text, columns) => {
      const lines = wrap(text, columns)
      for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns)
      expect(lines.join("").replaceAll(" ", "")).toBe(text.replaceAll(" ", ""))
    }),
    { numRuns: 2_000 },
  )
})

/** The wrapper before it supported colours. */
function plainWrap(text: string, columns: number): string[] {
  const lines: string[] = []
  let line = ""
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > columns) {
      lines.push(line)
      line = ""
    }
    let rest = word
    for (; rest.length > columns; rest = rest.slice(columns)) lines.push(rest.slice(0, columns))
    line = line === "" ? rest : `${line} ${rest}`
  }
  return line === "" ? lines : [...lines, line]
}

test("text without colours is wrapped as before", () => {
  const words = fc.array(fc.constantFrom("a", "word", "  ", " ", "longerthanaline", "x-y"), { maxLength: 40 })
  fc.assert(
    fc.property(words, fc.integer({ min: 2, max: 30 }), (all, columns) => {
      expect(wrap(all.join(""), columns)).toEqual(plainWrap(all.join(""), columns))
    }),
    { numRuns: 2_000 },
  )
})

const runs = fc.array(fc.tuple(texts, fc.constantFrom("bold" as const, "red" as const, undefined)), { maxLength: 8 })

test("colours change no break, and every line closes what it opened", () => {
  fc.assert(
    fc.property(runs, fc.integer({ min: 2, max: 30 }), (all, columns) => {
      const coloured = all.map(([text, style]) => (style ? paint({ color: true }, style, text) : text)).join("")
      const lines = wrap(coloured, columns)
      const bare = lines.map((line) => line.replace(/\x1b\[\d+m/g, ""))
      expect(bare).toEqual(wrap(all.map(([text]) => text).join(""), columns))
      for (const line of lines) expect(line).toMatch(/^(?:[^\x1b]|\x1b\[(?:1|31)m[^\x1b]+\x1b\[0m)*$/)
    }),
    { numRuns: 2_000 },
  )
})

test("a colour continues on the next line", () => {
  const red = (text: string) => paint({ color: true }, "red", text)
  expect(wrap(`plain ${red("some red words")} plain`, 10)).toEqual([`plain ${red("some")}`, red("red words"), "plain"])
})

test("continuation lines are indented below the first line's text", () => {
  expect(wrapAfter("label ", "one two three", 13)).toEqual(["label one two", "      three"])
  expect(wrapLine("  - one two three", 11)).toEqual(["  - one two", "    three"])
  expect(wrapLine("12. one two three", 11)).toEqual(["12. one two", "    three"])
  expect(wrapLine("one two three", 7)).toEqual(["one two", "three"])
})

test("a word of a megabyte is wrapped in linear time", () => {
  expect(wrap("x".repeat(1_000_000), 80)).toHaveLength(12_500)
  expect(wrap("✅".repeat(100_000), 80)).toHaveLength(2_500)
})

test("complete words are marked, in any case, and colours are kept", () => {
  const words = wordPattern(["token", "c++", "refresh token"])
  expect(markWords("Token tokens a_token", words)).toBe("\x1b[7mToken\x1b[0m tokens a_\x1b[7mtoken\x1b[0m")
  expect(markWords("the refresh token, C++", words)).toBe("the \x1b[7mrefresh token\x1b[0m, \x1b[7mC++\x1b[0m")
  expect(markWords("\x1b[1ma token b\x1b[0m c", words)).toBe(
    "\x1b[1ma \x1b[0m\x1b[1m\x1b[7mtoken\x1b[0m\x1b[1m b\x1b[0m c",
  )
  expect(markWords("\x1b[32mnothing\x1b[0m", words)).toBe("\x1b[32mnothing\x1b[0m")
})
