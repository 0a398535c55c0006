import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { hintsOf } from "../../src/redact/hints.ts"
import { redactText } from "../../src/redact/redact.ts"
import { visibleView as viewOf } from "../../src/redact/view.ts"
import { CONTEXTS, readable } from "./contexts.ts"
import { FAMILIES, random } from "./secrets.ts"

const WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
const ESC = "\u001b"
const seenView = (text: string) => viewOf(text, hintsOf(text).hasWideCharacters)
const value = random(5).of(WORD, 40)
const token = `${"gh"}p_${random(6).of(WORD, 36)}`

describe("secrets are found in what a reader sees", () => {
  test("a colour before, after or around a name does not hide the value", () => {
    const shown = (name: string, rest: string) => [
      `${ESC}[32m${name}${ESC}[0m${rest}`,
      `${ESC}[01;31m${ESC}[K${name}${ESC}[m${ESC}[K${rest}`,
      `${ESC}[38;5;214m${name}${rest}${ESC}[0m`,
      `${name}${rest.replace(value, `${ESC}[32m${value}${ESC}[39m`)}`,
      `\\u001b[32m${name}\\u001b[0m${rest}`,
      `[32m${name}[0m${rest}`,
      `^[[32m${name}^[[0m${rest}`,
    ]
    const texts = [
      ...shown("AWS_SECRET_ACCESS_KEY", `=${value}`),
      ...shown("password", `: '${value}'`),
      ...shown('"api_key"', `: "${value}"`),
      ...shown("Authorization", `: Bearer ${value}`),
    ]
    for (const text of texts) expect(redactText(text), JSON.stringify(text)).not.toContain(value.slice(0, 12))
  })

  test("hidden characters inside a secret are redacted with it, and nothing else is", () => {
    expect(redactText(`a ${ESC}[32mAPI_KEY${ESC}[0m=${ESC}[1m${value}${ESC}[0m b`)).toBe(
      `a ${ESC}[32mAPI_KEY${ESC}[0m=${ESC}[1m[REDACTED:secret]${ESC}[0m b`,
    )
    const split = `${token.slice(0, 9)}\u200b${token.slice(9, 20)}${ESC}[4m${token.slice(20)}`
    expect(redactText(`\u200bsee ${split}\u200b!`)).toBe("\u200bsee [REDACTED:github-token]\u200b!")
  })

  test("a secret in a link or a title that the terminal does not show is found too", () => {
    expect(redactText(`${ESC}]8;;https://sam:${value}@example.com${ESC}\\link${ESC}]8;;${ESC}\\`)).not.toContain(value)
    expect(redactText(`${ESC}]0;${token}\u0007done`)).not.toContain(token)
  })

  test("overstruck letters, as in a manual page, are read once", () => {
    const bold = [..."PASSWORD"].map((letter) => `${letter}\b${letter}`).join("")
    expect(redactText(`${bold}=${value}`)).toBe(`${bold}=[REDACTED:password]`)
  })

  test("a text that hides nothing has no view", () => {
    for (const text of ["", "plain\ttext\r\n", "naïve → “quotes” … │ ✓ 😀", "list[3], a[m], [12 m]"]) {
      expect(seenView(text), text).toBeUndefined()
    }
  })

  test("every family is found despite colours and invisible characters", () => {
    const r = random(31)
    const missed: string[] = []
    for (const name of ["ansi", "invisible"]) {
      const context = CONTEXTS.find((one) => one.name === name)!
      for (const { family, name: variable, make } of FAMILIES) {
        for (let i = 0; i < 4; i++) {
          const secret = make(r)
          const plain = `${variable}=${secret}`
          if (readable([secret], redactText(plain), context) !== undefined) continue
          const text = context.put(plain, r)
          if (readable([secret], redactText(text), context) !== undefined) missed.push(`${family}: ${text}`)
        }
      }
    }
    expect(missed).toEqual([])
  })

  test("offsets in the view map back to the text, wherever it hides something", () => {
    const hidden = fc.constantFrom(`${ESC}[0m`, "\u200b", `${ESC}[1;31m`, "\\u001b[0m", `${ESC}]8;;x\u0007`, "")
    const letters = fc.string({ unit: fc.constantFrom(..."abc =:\n"), maxLength: 6 })
    fc.assert(
      fc.property(fc.array(fc.tuple(letters, hidden), { maxLength: 12 }), (pieces) => {
        const text = pieces.flat().join("")
        const view = seenView(text)
        if (!view) return text === pieces.map(([seen]) => seen).join("")
        return [...view.text].every((letter, at) => {
          const { start, end } = view.inText({ start: at, end: at + 1, rule: "x" })
          return text.slice(start, end) === letter
        })
      }),
      { numRuns: 2_000, seed: 3 },
    )
  })
})
