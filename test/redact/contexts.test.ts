import { describe, expect, test } from "vitest"
import { redactText } from "../../src/redact/redact.ts"
import { CONTEXTS, type Context, readable } from "./contexts.ts"
import { FAMILIES, GENERIC, random, WHOLE } from "./secrets.ts"

// Every family in every context: known formats alone, values without a format under their name, keys, addresses, headers.

type Shown = { family: string; text: string; secrets: string[] }

const r = random(2_026)
const GOALS: Record<string, number> = { wrapped: 0.9, "cut tail": 0.85, "cut head": 0.5 }
const EACH = 3

function shownIn(context: Context): Shown[] {
  const whole = [
    ...FAMILIES.map(
      ({ family, make }) =>
        () =>
          alone(family, make(r)),
    ),
    ...GENERIC.map(
      ({ family, name, make }) =>
        () =>
          named(family, name, make(r)),
    ),
    ...WHOLE.map(({ family, place, make }) => () => ({ family: `${family}, ${place}`, ...make(r) })),
  ]
  return whole.flatMap((make) =>
    Array.from({ length: EACH }, () => {
      const { family, text, secrets } = make()
      return { family, text: context.put(text, r), secrets }
    }),
  )
}

const alone = (family: string, value: string): Shown => ({ family, text: value, secrets: [value] })
const named = (family: string, name: string, value: string): Shown => ({
  family,
  text: `${name}=${value}`,
  secrets: [value],
})

describe("wherever a secret appears", () => {
  for (const context of CONTEXTS) {
    const goal = GOALS[context.name] ?? 0.98
    test(`${context.name}: ${goal * 100} % are redacted`, () => {
      const shown = shownIn(context)
      const missed = shown.filter(({ text, secrets }) => readable(secrets, redactText(text), context) !== undefined)
      expect(shown.length).toBeGreaterThan(400)
      const recall = 1 - missed.length / shown.length
      expect(recall, missed.map(({ family, text }) => `${family}: ${text}`).join("\n")).toBeGreaterThanOrEqual(goal)
    })
  }
})

describe("private keys in pieces", () => {
  const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
  const lines = [...Array.from({ length: 12 }, () => random(r.int(1e9)).of(BASE64, 64)), `${r.of(BASE64, 30)}==`]
  const begin = `-----BEGIN RSA ${"PRIVATE"} KEY-----`
  const end = `-----END RSA ${"PRIVATE"} KEY-----`
  const pieces: Record<string, string[]> = {
    whole: [begin, ...lines, end],
    "without its first line": [...lines, end],
    "without its last line": [begin, ...lines],
    "from the middle of a line on": [lines[0]!.slice(20), ...lines.slice(1), end],
    "up to the middle of a line": [begin, ...lines.slice(0, 6), lines[6]!.slice(0, 41)],
  }
  const prefixes = ["", "+", "   12→", "2026-11-15T10:00:00Z INFO [worker-3] ", "key.pem:7:", "> ", "web-1  | ", "    "]

  for (const [how, key] of Object.entries(pieces)) {
    test(`${how}, whatever precedes its lines`, () => {
      for (const prefix of prefixes) {
        for (const newline of ["\n", "\r\n", "\\n"]) {
          const text = `before${newline}${key.map((line) => prefix + line).join(newline)}`
          const redacted = redactText(text)
          for (const line of lines) {
            for (let at = 0; at + 16 <= line.length; at++) {
              expect(redacted.includes(line.slice(at, at + 16)), `${prefix} ${newline} ${redacted}`).toBe(false)
            }
          }
          expect(redacted).toContain("before")
        }
      }
    })
  }

  test("the text after a key that was cut off is kept", () => {
    const text = `${[begin, ...lines.slice(0, 5)].join("\n")}\n$ ls\nThen I went on, and all was well`
    expect(redactText(text)).toBe("[REDACTED:private-key]\n$ ls\nThen I went on, and all was well")
  })

  test("a key without its first and last line is recognised by its beginning", () => {
    const text = [`${"b3BlbnNzaC1r"}ZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAAB`, ...lines.slice(0, 4), "ok"].join("\n")
    expect(redactText(text)).toBe("[REDACTED:private-key]\nok")
  })
})

describe("tokens in pieces", () => {
  const WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
  const token = `${"gh"}p_${random(77).of(WORD, 36)}`

  test("the beginning of a token is redacted, and the sign of the cut is kept", () => {
    for (const cut of ["…", "...", "\n... [output truncated]", " [12 more lines]", "\n<truncated>"]) {
      expect(redactText(`token ${token.slice(0, 28)}${cut}`)).toBe(`token [REDACTED:github-token]${cut}`)
    }
  })

  test("a value without a mark is redacted if it was cut off, even in unclosed quotes", () => {
    const value = token.slice(4, 30)
    for (const name of ['"api_key": "', "API_KEY=", "client_secret = '", "password: `"]) {
      expect(redactText(`${name}${value}\n... [output truncated]`)).not.toContain(value)
      expect(redactText(`${name}${value}`)).not.toContain(value)
    }
  })

  test("a short part of a token, as people quote it, is kept", () => {
    for (const text of [`it begins with ${"gh"}p_…`, `${"gh"}p_abc...`, "commit 3f0c9a1…", "abc123...def456"]) {
      expect(redactText(text)).toBe(text)
    }
  })

  test("a line that a screen broke is read as one, and line breaks outside of secrets stay", () => {
    const long = random(78).of(WORD, 90)
    const text = `$ cat .env\nNAME=value\n${`export OPENROUTER_API_KEY=${long}`.match(/.{1,80}/g)!.join("\n")}\n$ ls`
    expect(redactText(text)).toBe("$ cat .env\nNAME=value\nexport OPENROUTER_API_KEY=[REDACTED:secret]\n$ ls")
  })

  test("lines of equal width without a secret are kept", () => {
    const hashes = [1, 2, 3, 4].map((seed) => random(seed).of("0123456789abcdef", 40)).join("\n")
    const paths = [1, 2, 3].map((n) => `src/components/navigation/SidebarMenuItem${n}V2.tsx`).join("\n")
    for (const text of [hashes, paths, `${"x".repeat(79)}y\n${"z".repeat(30)}`]) expect(redactText(text)).toBe(text)
  })
})
