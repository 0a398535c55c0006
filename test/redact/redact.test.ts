import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { agents } from "../../src/agents/registry.ts"
import type { RawRecord } from "../../src/core/record.ts"
import { redactRecord, redactText } from "../../src/redact/redact.ts"
import type { Span } from "../../src/redact/rules.ts"
import { findTokens } from "../../src/redact/tokens.ts"
import { isPlainText } from "../../src/tools/observe.ts"
import { leakOf, type Planted, plant, random } from "./secrets.ts"

const WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
const planted = plant(20_26, 12)
const githubToken = (seed: number) => `${"gh"}p_${random(seed).of(WORD, 36)}`

describe("planted secrets", () => {
  const missed = (known: boolean) =>
    planted.filter((p) => p.known === known).filter((p) => leakOf(p, redactText(p.text, p.key)) !== undefined)
  const recall = (known: boolean) => 1 - missed(known).length / planted.filter((p) => p.known === known).length

  test("there are more than a thousand, of more than forty families", () => {
    expect(planted.length).toBeGreaterThan(1_000)
    expect(new Set(planted.map((p) => p.family)).size).toBeGreaterThan(100)
  })

  test("98 % of known formats are redacted, wherever they appear", () => {
    expect(recall(true), missed(true).map(nameOf).join("\n")).toBeGreaterThanOrEqual(0.98)
  })

  test("85 % of secrets that only their name reveals are redacted", () => {
    expect(recall(false), missed(false).map(nameOf).join("\n")).toBeGreaterThanOrEqual(0.85)
  })

  test("the text around a secret is kept", () => {
    for (const p of planted) for (const kept of p.kept) expect(redactText(p.text, p.key), nameOf(p)).toContain(kept)
  })

  test("a record is redacted like its strings, stays valid JSON and keeps its other fields", () => {
    for (const p of planted) {
      const record = { uuid: "3f0c", message: { content: [{ type: "text", [p.key ?? "text"]: p.text }], n: 1 } }
      const result = redactRecord(structuredClone(record))
      expect(result.record.message).toMatchObject({
        n: 1,
        content: [{ [p.key ?? "text"]: redactText(p.text, p.key ?? "text") }],
      })
      const changed = redactText(p.text, p.key) !== p.text
      expect(Object.keys(result.redactions).length > 0, nameOf(p)).toBe(changed)
    }
  })

  test("a secret is found at every offset of a long text", () => {
    const filler = "All work and no play. ".repeat(6_000)
    for (let offset = 65_516; offset <= 65_556; offset++) {
      const text = `${filler.slice(0, offset - 1)} ${githubToken(offset)} ${filler}`
      expect(redactText(text)).not.toContain(githubToken(offset).slice(8, 20))
    }
  })

  test("redacting twice changes nothing, and the same secret gives the same text", () => {
    for (const p of planted) {
      const once = redactText(p.text, p.key)
      expect(redactText(once, p.key), nameOf(p)).toBe(once)
      expect(redactText(p.text, p.key)).toBe(once)
    }
  })
})

describe("names that reveal a secret", () => {
  test("the name of a field is enough for a password that is not a word", () => {
    expect(redactRecord({ password: "hunter2hunter2" }).record).toEqual({ password: "[REDACTED:password]" })
  })

  test("an environment inside a record is redacted by its variables' names", () => {
    const value = random(1).of(WORD, 32)
    const { record, redactions } = redactRecord({ env: { API_KEY: value, PATH: "/usr/bin:/bin" } })
    expect(record).toEqual({ env: { API_KEY: "[REDACTED:secret]", PATH: "/usr/bin:/bin" } })
    expect(redactions).toEqual({ secret: 1 })
  })

  test("a pair of name and value is treated as a variable", () => {
    const list = {
      list: [
        { name: "DB_PASSWORD", value: "tr0ub4dor&3x" },
        { name: "DB_HOST", value: "tr0ub4dor.lan" },
      ],
    }
    expect(redactRecord(list).record).toEqual({
      list: [
        { name: "DB_PASSWORD", value: "[REDACTED:password]" },
        { name: "DB_HOST", value: "tr0ub4dor.lan" },
      ],
    })
  })

  test("an argument list names its secret one item earlier", () => {
    const { record } = redactRecord({ argv: ["deploy", "--db-password", "tr0ub4dor&3x", "--verbose"] })
    expect(record).toEqual({ argv: ["deploy", "--db-password", "[REDACTED:password]", "--verbose"] })
  })

  test("a secret that is an object's key is redacted, and no entry is lost when two become the same", () => {
    const { record } = redactRecord({ [githubToken(1)]: 1, [githubToken(2)]: 2, plain: 3 })
    expect(record).toEqual({ "[REDACTED:github-token]": 1, "[REDACTED:github-token] (2)": 2, plain: 3 })
  })

  test("a key named __proto__ stays a key", () => {
    const hostile = JSON.parse(`{"__proto__":{"password":"hunter2hunter2"},"${githubToken(3)}":1}`) as RawRecord
    const { record } = redactRecord(hostile)
    expect(JSON.stringify(record)).toBe('{"__proto__":{"password":"[REDACTED:password]"},"[REDACTED:github-token]":1}')
    expect(({} as RawRecord).password).toBeUndefined()
  })

  test("an issuer's mark determines the rule, wherever the token appears", () => {
    expect(redactText(`GITHUB_TOKEN=${githubToken(4)}`)).toBe("GITHUB_TOKEN=[REDACTED:github-token]")
    expect(redactText(`{\\"password\\": \\"${githubToken(4)}\\"}`)).toBe(
      '{\\"password\\": \\"[REDACTED:github-token]\\"}',
    )
    expect(redactText(`line\\n${githubToken(4)}\\nline`)).toBe("line\\n[REDACTED:github-token]\\nline")
  })
})

describe("blocks marked as private", () => {
  test("a thousand blocks, nested and unclosed, leak nothing", () => {
    const r = random(7)
    for (let i = 0; i < 1_000; i++) {
      const open = () =>
        r.pick(["<private>", "<private>", "<PRIVATE>", "<private >", '<private why="x">', "\\u003cprivate\\u003e"])
      const depth = 1 + r.int(30)
      const closed = r.int(2) === 0
      let text = "before "
      for (let d = 0; d < depth; d++) text += `${open()} SECRET${r.of(WORD, 4)} `
      for (let d = 0; d < (closed ? depth : r.int(depth)); d++) text += `SECRET${r.of(WORD, 4)} ${"</private>"}`
      text += closed ? " after" : " SECRET tail"
      const redacted = redactText(text)
      expect(redacted).not.toContain("SECRET")
      expect(redacted).toBe(closed ? "before [REDACTED:private] after" : "before [REDACTED:private]")
    }
  })

  test("a closing tag alone, or another tag, hides nothing", () => {
    for (const text of ["a </private> b", "<privateer> b", "private> b", "List<Private> x", "C<Private Use> points"]) {
      expect(redactText(text)).toBe(text)
    }
  })
})

test("text that only looks like a secret is kept", () => {
  const lookalikes = [
    "const token = getToken()",
    "const password = user.password",
    "password: process.env.DB_PASSWORD,",
    `api_key = os.environ["API_KEY"]`,
    `API_KEY=$${"{API_KEY}"}`,
    "API_KEY=$(cat /run/secrets/api_key)",
    "TOKEN=<your-token>",
    "OPENAI_API_KEY=your-api-key-here",
    `password: "password"`,
    `"password": "string"`,
    `password: "changeme123"`,
    `{"token": "xxxxxxxxxxxxxxxxxxxxxxxx"}`,
    `secret: "********************"`,
    `${"gh"}p_${"x".repeat(36)}`,
    `${"AK"}IAIOSFODNN7EXAMPLE`,
    `"integrity": "sha512-${Buffer.from(random(3).of(WORD, 64)).toString("base64")}"`,
    `commit ${random(4).of("0123456789abcdef", 40)}`,
    `"sessionId": "0b0c5c1e-7d4b-4c0e-9a61-2f1f9b7a3c55"`,
    `"id": "toolu_01${random(5).of(WORD, 22)}"`,
    `"input_tokens": 12345, "cache_read_input_tokens": 998877`,
    "maxTokens: 200000",
    `cacheKey = "user:42:profile:v2:compressed1"`,
    `primary_key = "conversation_message_id_2"`,
    `"public_key": "${random(6).of(WORD, 43)}="`,
    "const tokenizer = new Tokenizer2(options)",
    "secretKeyRef:\n  name: db-credentials-2\n  key: password-v1",
    "https://user:password@example.com/",
    "postgres://postgres:postgres@localhost:5432/test",
    `postgres://app:$${"{DB_PASSWORD}"}@db/app`,
    "http://localhost:3000/@scope/package@1.2.3",
    "https://github.com/a/b/blob/0c1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6a7b8c9d/src/token.ts",
    "Authorization: Bearer <token>",
    `headers: { Authorization: \`Bearer \${token}\` }`,
    "Bearer authentication is required",
    "Basic usage of the library",
    `admin:${"$2y$"}10$${random(8).of(WORD, 53)}`,
    "it('rejects a wrong password for user2', async () => {",
    ".token.keyword { color: #07a; }",
    "--token-color-secondary: #ff00aa;",
    "export const API_KEY_HEADER = 'x-api-key-header-v1'",
    "-----BEGIN CERTIFICATE-----",
    `if (text.startsWith("-----BEGIN ${"PRIVATE"} KEY-----")) return "-----END ${"PRIVATE"} KEY-----"`,
    "key: src/components/TokenList2/index.tsx",
    "auth: required",
    "Cookie: theme=dark; lang=en",
    "curl -u $USER:$PASS https://example.com",
    "mysql -p app",
    "the password is required to be 8 characters long",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExample user@host",
  ]
  for (const text of lookalikes) expect(redactText(text)).toBe(text)
})

describe("whatever the text", () => {
  const pieces = fc.constantFrom(
    ...[
      "password",
      "=",
      ":",
      '"',
      "'",
      "\\",
      "\n",
      " ",
      "api_key",
      "token",
      "://",
      "@",
      "<private>",
      "</private>",
      "Bearer ",
    ],
    ...[
      "[REDACTED:",
      "[REDACTED:password]",
      "]",
      "-----BEGIN ",
      "PRIVATE KEY-----",
      "-----END ",
      "eyJ",
      "sk-",
      `${"gh"}p_`,
      ".",
    ],
    ...[
      "Cookie: ",
      "curl -u ",
      "&sig=",
      "%3A%2F%2F",
      "hunter2hunter2",
      "aB3dE5gH7jK9mN1pQr",
      "é",
      "\u001b[32m",
      "\u001b[0m",
      "[0m",
      "\u200b",
      "\ud83d",
      "é".normalize("NFD"),
    ],
    githubToken(9),
    `eyJ${random(1).of(WORD, 20)}.eyJ${random(2).of(WORD, 20)}.${random(3).of(WORD, 30)}`,
  )
  const texts = fc.oneof(
    fc.array(pieces, { maxLength: 30 }).map((list) => list.join("")),
    fc
      .array(fc.oneof(pieces, fc.string({ unit: "binary", maxLength: 12 })), { maxLength: 20 })
      .map((list) => list.join("")),
  )

  test("redacting twice changes nothing", () => {
    const keys = fc.constantFrom(undefined, "text", "password", "API_KEY", "authorization", "cookie")
    fc.assert(
      fc.property(texts, keys, (text, key) => {
        const once = redactText(text, key)
        return redactText(once, key) === once
      }),
      { numRuns: 3_000, seed: 1 },
    )
  })

  test("a redacted record contains nothing more to redact, and no record throws", () => {
    const records = fc.dictionary(
      fc.oneof(fc.constantFrom("text", "password", "API_KEY", "name", "value"), texts),
      fc.oneof(texts, fc.array(texts, { maxLength: 3 }), fc.jsonValue({ maxDepth: 3 })),
      { maxKeys: 5, noNullPrototype: true },
    )
    fc.assert(
      fc.property(records, (record) => {
        const once = redactRecord(JSON.parse(JSON.stringify(record)) as RawRecord).record
        const twice = redactRecord(JSON.parse(JSON.stringify(once)) as RawRecord)
        return Object.keys(twice.redactions).length === 0
      }),
      { numRuns: 3_000, seed: 2 },
    )
  })
})

describe("false redactions", () => {
  const root = fileURLToPath(new URL("../..", import.meta.url))

  test("no file of this repository contains anything that looks like a secret", () => {
    for (const file of globSync(join(root, "{src,test,bench}/ingest/*.ts"))) {
      const tokens: Span[] = []
      findTokens(readFileSync(file, "utf8"), tokens)
      expect(tokens, file).toEqual([])
    }
  })
})

function nameOf(p: Planted): string {
  return `${p.family} in ${p.place}: ${p.text.slice(0, 200)}`
}

test("a trace is kept without the rules only where they would find nothing: words and refs of agents", () => {
  fc.assert(
    fc.property(fc.constantFrom(...agents), fc.uuid(), fc.option(fc.nat(99_999)), ({ source }, id, message) => {
      const ref = `${source}:${id}${message === null ? "" : `#${message}`}`
      expect(isPlainText(ref)).toBe(true)
      expect(redactText(ref)).toBe(ref)
    }),
  )
  const id = "0f8fad5b-d9cb-469f-a165-70867728950e"
  for (const text of [
    `heroku:${id}`,
    `password claude_code:${id}`,
    `claude_code:${id} is my key`,
    `claude_code:${id}#1 ${id}`,
  ])
    expect(isPlainText(text), text).toBe(false)
})
