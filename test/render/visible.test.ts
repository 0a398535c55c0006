import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { visibleText, withVisibleTexts } from "../../src/render/visible.ts"
import { HIDDEN, hiddenIn } from "../support/hidden.ts"

const person = fc.string({ unit: "grapheme", maxLength: 12 })
const hiding = fc.constantFrom(...HIDDEN)

test("nothing hidden in a text is left, and everything visible is", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.stringMatching(/^[\p{L}\p{N} .,:/]{0,9}$/u), hiding), { maxLength: 20 }),
      (pieces) => {
        const clean = visibleText(pieces.flat().join(""))
        expect(hiddenIn(clean)).toEqual([])
        expect(visibleText(clean)).toBe(clean)
      },
    ),
    { numRuns: 2_000 },
  )
  const words = ["zebra", "finch 12", "Ünïcödé", "日本語"]
  for (const sign of HIDDEN) expect(visibleText(words.join(sign))).toBe(words.join(sign === "\u2028" ? "\n" : ""))
})

test("plain text of any language is unchanged", () => {
  fc.assert(
    fc.property(person, (text) => {
      fc.pre(hiddenIn(text).length === 0 && text.isWellFormed() && !/[\r\u2028\u2029]|\p{Cf}/u.test(text))
      expect(visibleText(text)).toBe(text)
    }),
  )
})

describe("joiners and selectors that belong to a sign or a word", () => {
  test.each([
    ["a family", "👨‍👩‍👧‍👦"],
    ["skin tone and profession", "👩🏽‍🚀 👨🏿‍💻"],
    ["a heart in colour", "❤️ ❤️‍🔥 🏳️‍🌈"],
    ["keycaps and flags", "1️⃣ #️⃣ 🇩🇪"],
    ["a sign drawn as text", "☎︎"],
    ["Persian", "می‌روم کتاب‌ها"],
    ["Hindi", "क्‍ष र्‍य"],
    ["Malayalam", "അവന്‍"],
    ["Sinhala", "ශ්‍රී"],
    ["an ideograph's form", "葛\u{e0100}城"],
  ])("%s is kept", (_, text) => {
    expect(visibleText(text)).toBe(text)
  })

  test.each([
    ["joiners between Latin letters", "ze\u200dbra\u200c", "zebra"],
    ["a second joiner", "می\u200c\u200dروم", "می\u200cروم"],
    ["bits as selectors after a smile", `😊${"\u{e0100}\u{e0101}\ufe01\ufe02".repeat(20)}`, "😊"],
    ["a run of selectors", "❤️️︎", "❤️"],
    ["selectors after letters", "a\ufe0fb\ufe0e", "ab"],
    ["a flag spelt in tags", "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", "🏴"],
    ["letters spelt in tags", "run\u{e0072}\u{e006d}\u{e0020}\u{e002d} it", "run it"],
  ])("%s are removed", (_, text, left) => {
    expect(visibleText(text)).toBe(left)
  })
})

test("escape sequences are removed completely, line ends are unified, and lone surrogates are replaced", () => {
  expect(visibleText("\u001b[1;31mred\u001b[0m \u001b]8;;http://x.test\u0007link\u001b]8;;\u0007")).toBe("red link")
  expect(visibleText("a\r\nb\rc\u2029d")).toBe("a\nb\nc\nd")
  expect(visibleText("a\ud83d")).toBe("a\ufffd")
})

test("every text of an answer is cleaned, names too, and removed characters are counted; the original is unchanged", () => {
  const answer = {
    title: "a\u200bb",
    rows: [{ "k\u202e": "c\u{e0041}\u001b[31m", n: 1, no: null, yes: true }, ["\ufeff"]],
    same: "plain",
    gone: undefined,
  }
  const before = structuredClone(answer)
  expect(withVisibleTexts(answer)).toEqual({
    output: { title: "ab", rows: [{ k: "c", n: 1, no: null, yes: true }, [""]], same: "plain" },
    removed: 4,
  })
  expect(answer).toEqual(before)
  const own = JSON.parse('{"__proto__": {"a\u200b": 1}}')
  expect(JSON.stringify(withVisibleTexts(own).output)).toBe('{"__proto__":{"a":1}}')
  const clean = { a: ["b"] }
  expect(withVisibleTexts(clean)).toEqual({ output: clean, removed: 0 })
})

test("an undefined field is not in the answer", () => {
  const partly = { rows: [{ id: "a", title: undefined }], note: undefined, own: { naïve: "x", gone: undefined } }
  expect(withVisibleTexts(partly).output).toStrictEqual({ rows: [{ id: "a" }], own: { naïve: "x" } })
})
