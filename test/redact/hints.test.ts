import fc from "fast-check"
import { expect, test } from "vitest"
import { hintsInJavaScript, hintsOf } from "../../src/redact/hints.ts"

/** Beginnings of everything that a scanner looks for, and characters that change what they mean. */
const PIECES =
  'password|Pwd|TOKEN|secret |key:|ssh-keyscan|auth|login(|ied by | / |<private>|vpn|://|:\\/|:\\\\|5432:db:me:x|12:30:00|--user|--users| -u| -p |-b a=b| -b abc=|sudo -S|sud|"kty"|kty:|\\u0061|\\u0031|[31m|&|%2F|\u200b|\u001b|á|东京|İ|\ud83d|\n|\0'
const piece = fc.oneof(fc.constantFrom(...PIECES.split("|")), fc.string({ maxLength: 12, unit: "binary" }))

test("WebAssembly finds the same hints as JavaScript", () => {
  const text = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join("").padEnd(128, "x"))
  fc.assert(
    fc.property(text, (one) => {
      expect(hintsOf(one)).toEqual(hintsInJavaScript(one))
    }),
    { numRuns: 300 },
  )
})

test("a hint that begins in one chunk of a long text and ends in the next one is found where it is", () => {
  const chunk = 1 << 15
  const around = fc.integer({ min: -12, max: 12 })
  fc.assert(
    fc.property(around, fc.array(piece, { minLength: 1, maxLength: 8 }), (offset, pieces) => {
      const text = `${".".repeat(2 * chunk + offset)}${pieces.join("")}${".".repeat(chunk)} password`
      expect(hintsOf(text)).toEqual(hintsInJavaScript(text))
      expect(hintsOf(text).names.at(-1)).toBe(text.length - "password".length)
    }),
    { numRuns: 60 },
  )
})
