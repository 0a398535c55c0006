import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { tempDir } from "../support/temp.ts"

const SCRIPT = join(import.meta.dirname, "../../scripts/redact.ts")
const SECRET = `ghp_${"a1B2c3D4e5F6".repeat(3)}`

function redacted(name: string, text: string): string {
  const folder = tempDir()
  writeFileSync(join(folder, name), text)
  const { stdout, stderr, status } = spawnSync(process.execPath, [SCRIPT, name], {
    env: { ...process.env, INIT_CWD: folder },
    encoding: "utf8",
  })
  expect(stderr + status).toBe("0")
  return stdout
}

test("prints a session without its secrets, as valid JSON", () => {
  const lines = [
    { type: "user", text: `my token is ${SECRET}` },
    { env: { DB_PASSWORD: "hunter2-Zk9!x" }, n: 1 },
  ]
  const torn = `{"type":"user","text":"${SECRET}`
  const [first, second, third, last] = redacted(
    "session.jsonl",
    `${lines.map((line) => JSON.stringify(line)).join("\n")}\n${torn}\n`,
  ).split("\n")
  expect(JSON.parse(first!)).toEqual({ type: "user", text: "my token is [REDACTED:github-token]" })
  expect(JSON.parse(second!)).toEqual({ env: { DB_PASSWORD: "[REDACTED:password]" }, n: 1 })
  expect(third).toMatch(/^\{"type":"user","text":"\[REDACTED/)
  expect(last).toBe("")

  const whole = redacted("session.json", JSON.stringify({ messages: lines }, undefined, 2))
  expect(JSON.parse(whole)).toMatchObject({
    messages: [{ type: "user" }, { env: { DB_PASSWORD: "[REDACTED:password]" } }],
  })
  expect(redacted("dump.sql", `INSERT INTO a VALUES ('${SECRET}');\n`)).toBe(
    "INSERT INTO a VALUES ('[REDACTED:github-token]');\n",
  )
  const key = `-----BEGIN PRIVATE KEY-----\n${`${"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC".repeat(2)}\n`.repeat(4)}-----END PRIVATE KEY-----`
  expect(redacted("notes.txt", `42\n${key}\n`)).toBe("42\n[REDACTED:private-key]\n")
})
