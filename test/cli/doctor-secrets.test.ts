import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { expect, test } from "vitest"
import type { OutputOf } from "../../src/core/tool.ts"
import type { secrets } from "../../src/tools/doctor/doctor.ts"
import { make as makeCrush } from "../fixtures/crush/0.1-first-schema/make.ts"
import { random } from "../redact/secrets.ts"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
const token = (seed: number) => `${"gh"}p_${random(seed).of(LETTERS, 36)}`
const npmToken = (seed: number) => `${"np"}m_${random(seed).of(LETTERS, 36)}`

const listed = async (home: string, cwd = home): Promise<OutputOf<typeof secrets>> =>
  JSON.parse((await dex(home, ["doctor", "secrets", "--json"], {}, cwd)).stdout)

const session = (home: string, n: number, text: string, cwd = "/code/api") =>
  claudeSession(home, {
    id: `${n}1111111-1111-4111-8111-111111111111`,
    cwd,
    start: `2026-11-0${n}T10:00:00Z`,
    turns: [{ user: text, assistant: "Done." }],
  })

test("dex doctor secrets counts the secrets of each kind in each file, and never shows one", async () => {
  const home = tempDir()
  const [first, second, third] = [token(1), token(2), npmToken(3)]
  const many = session(home, 1, `Use ${first}, or ${second}. The registry wants ${third}.`)
  const one = session(home, 2, `Use ${first}`)
  session(home, 3, "Use nothing, <private>my own affair</private>")
  await syncHome(home)
  const output = await listed(home)
  expect(output).toEqual({
    secrets: 4,
    kinds: { "github-token": 3, "npm-token": 1 },
    files: [
      {
        source: "claude_code",
        path: many,
        state: "present",
        secrets: 3,
        kinds: { "github-token": 2, "npm-token": 1 },
        conversations: ["claude_code:11111111-1111-4111-8111-111111111111"],
      },
      {
        source: "claude_code",
        path: one,
        state: "present",
        secrets: 1,
        kinds: { "github-token": 1 },
        conversations: ["claude_code:21111111-1111-4111-8111-111111111111"],
      },
    ],
    in_private_projects: 0,
  })
  const shown = await dex(home, ["doctor", "secrets"])
  expect(shown.code).toBe(0)
  expect(shown.stdout).toBe(
    [
      "4 secrets in 2 files:",
      "  in all: 3 × github-token, 1 × npm-token",
      "~/.claude/projects/-code-api/11111111-1111-4111-8111-111111111111.jsonl",
      "  claude_code: 2 × github-token, 1 × npm-token",
      "~/.claude/projects/-code-api/21111111-1111-4111-8111-111111111111.jsonl",
      "  claude_code: 1 × github-token",
      "",
    ].join("\n"),
  )
  expect(shown.stderr).toMatch(/Replace these secrets.*\n.*delete the files/s)
  for (const secret of [first, second, third])
    expect(JSON.stringify(output) + shown.stdout + shown.stderr).not.toContain(secret.slice(4))
})

test("a file that was deleted is listed as gone, and counts no longer", async () => {
  const home = tempDir()
  const path = session(home, 1, `Use ${token(1)}`)
  await syncHome(home)
  rmSync(path)
  const gone = { secrets: 0, kinds: {}, files: [{ path, state: "gone", secrets: 1 }] }
  expect(await listed(home)).toMatchObject(gone)
  await syncHome(home)
  expect(await listed(home)).toMatchObject(gone)
  expect((await dex(home, ["doctor", "secrets"])).stdout).toContain(
    "No secrets in files that still exist.\n~/.claude/projects/-code-api/11111111-1111-4111-8111-111111111111.jsonl\n  claude_code, gone: 1 × github-token",
  )
})

test("a conversation that was deleted from a database is gone, although the database is there", async () => {
  const home = tempDir()
  makeCrush(home)
  const path = join(home, "code", "list", ".crush", "crush.db")
  const change = (sql: string) => {
    const db = new DatabaseSync(path)
    db.exec(sql)
    db.close()
  }
  change(`update messages set parts = replace(parts, 'Sort it', 'Sort it with ${token(4)}')`)
  await syncHome(home)
  expect(await listed(home)).toMatchObject({ secrets: 1, files: [{ source: "crush", path, state: "present" }] })
  change("delete from messages; delete from sessions")
  await syncHome(home)
  expect(await listed(home)).toMatchObject({ secrets: 0, files: [{ source: "crush", path, state: "gone" }] })
})

test("files of a private project are counted elsewhere, and listed inside it", async () => {
  const home = tempDir()
  const acme = join(home, "acme")
  mkdirSync(acme)
  const path = session(home, 1, `Use ${token(1)}`, acme)
  await syncHome(home)
  await dex(home, ["private", "acme"])
  expect(await listed(home)).toEqual({ secrets: 0, kinds: {}, files: [], in_private_projects: 1 })
  const shown = await dex(home, ["doctor", "secrets"])
  expect(shown.stdout + shown.stderr).toContain("1 more secret in private projects, not shown")
  expect(shown.stdout + shown.stderr).not.toContain("acme")
  expect(await listed(home, acme)).toMatchObject({ in_private_projects: 0, files: [{ path, state: "present" }] })
})

test("what came from another machine is not looked for on this one", async () => {
  const [here, there] = [tempDir(), tempDir()]
  session(here, 1, "hello")
  const path = session(there, 2, `Use ${token(1)}`)
  for (const home of [here, there]) await syncHome(home)
  await dex(here, ["import", join(there, ".dex", "history.db")])
  expect(await listed(here)).toMatchObject({ secrets: 0, files: [{ path, state: "other_machine", secrets: 1 }] })
})

test("without secrets, and before the first sync, it says so and exits with 1", async () => {
  const home = tempDir()
  for (const _ of [1, 2]) {
    const { code, stderr } = await dex(home, ["doctor", "secrets"])
    expect([code, stderr]).toEqual([1, expect.stringContaining("dex found no secrets")])
    session(home, 1, "hello")
    await syncHome(home)
  }
})
