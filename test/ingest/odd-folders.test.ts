import { spawnSync } from "node:child_process"
import { chmodSync, lchownSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { DEX } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { oddFolders, PLAIN_USER } from "../support/odd-folders.ts"
import { tempDir } from "../support/temp.ts"

/** The program itself, run by a user without access to every folder. */
function dexAs(home: string, args: string[], cwd = home) {
  const env = { PATH: process.env.PATH ?? "", HOME: home, TZ: "UTC", NO_COLOR: "1" }
  const run = spawnSync(process.execPath, [DEX, ...args], {
    env,
    cwd,
    encoding: "utf8",
    timeout: 100_000,
    ...PLAIN_USER,
  })
  return { code: run.status, stdout: run.stdout, stderr: run.stderr }
}

function give(dir: string): void {
  if (!("uid" in PLAIN_USER)) return
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true }))
    lchownSync(join(entry.parentPath, entry.name), PLAIN_USER.uid!, PLAIN_USER.gid!)
  lchownSync(dir, PLAIN_USER.uid!, PLAIN_USER.gid!)
}

const idOf = (number: number) => `${String(number).repeat(8)}-1111-4111-8111-111111111111`

describe.skipIf(process.platform === "win32")("a folder that cannot be accessed", () => {
  test("its conversation is still read, stored and found, under the recorded folder", () => {
    const home = tempDir()
    const folders = oddFolders()
    const cwds = ["/code/plain", ...Object.values(folders)]
    for (const [number, cwd] of cwds.entries()) {
      const file = claudeSession(home, {
        id: idOf(number),
        cwd: `/code/stand-in-${number}`,
        start: "2026-11-03T10:00:00Z",
        turns: [{ user: `zebrafinch number ${number}` }, { assistant: "It sings." }],
      })
      const text = readFileSync(file, "utf8")
      writeFileSync(file, text.replaceAll(`"/code/stand-in-${number}"`, JSON.stringify(cwd)))
    }
    give(home)
    expect(dexAs(home, ["sync"])).toMatchObject({ code: 0, stderr: "" })
    const { conversations } = JSON.parse(dexAs(home, ["list", "--json"]).stdout) as {
      conversations: { project: string }[]
    }
    const seen = cwds.map((cwd) => cwd.replace("\0", "")) // what people cannot see is not shown
    expect(conversations.map(({ project }) => project).sort()).toEqual(seen.sort())
    const found = JSON.parse(dexAs(home, ["search", "zebrafinch", "--json", "--limit", "20"]).stdout) as {
      total: number
    }
    expect(found.total).toBe(cwds.length)
    for (const number of cwds.keys()) {
      const { code, stderr } = dexAs(home, ["resume", idOf(number), "--json"])
      expect({ code, stderr }).toEqual({ code: expect.any(Number), stderr: expect.not.stringMatching(/should not/) })
    }
    const resumed = JSON.parse(dexAs(home, ["resume", idOf(1), "--json"]).stdout) as { problem: string }
    expect(resumed.problem).toMatch(/^The conversation's folder cannot be opened \(/)
  })

  test("a folder of transcripts that can be listed but not entered does not hide others", () => {
    const home = tempDir()
    const sessions = join(home, ".codex", "sessions")
    const chats = join(home, ".gemini", "tmp")
    const meta = { timestamp: "2026-01-02T10:00:00Z", type: "session_meta", payload: { id: "x", cwd: "/code" } }
    const line = { sessionId: "s", projectHash: "h", startTime: "2026-01-02T10:00:00Z" }
    for (const name of ["a", "b", "c"]) {
      mkdirSync(join(sessions, name), { recursive: true })
      writeFileSync(join(sessions, name, `rollout-${name}.jsonl`), `${JSON.stringify(meta)}\n`)
      mkdirSync(join(chats, name, "chats"), { recursive: true })
      writeFileSync(join(chats, name, "chats", `session-${name}.jsonl`), `${JSON.stringify(line)}\n`)
    }
    symlinkSync("loop", join(sessions, "loop"))
    symlinkSync("loop", join(chats, "b", "chats", "loop"))
    give(home)
    for (const folder of [join(sessions, "b"), join(chats, "b", "chats")]) chmodSync(folder, 0o444)
    try {
      const report = JSON.parse(dexAs(home, ["sync", "--json"]).stdout.trim().split("\n").at(-1)!) as {
        found: number
        read: number
        unreadable: { path: string; reason: string }[]
      }
      expect(report).toMatchObject({ found: 4, read: 4 })
      expect(
        report.unreadable.map(({ path, reason }) => [path.slice(home.length), reason.split(":")[0]]).sort(),
      ).toEqual([
        ["/.codex/sessions/b/rollout-b.jsonl", "EACCES"],
        ["/.gemini/tmp/b/chats/session-b.jsonl", "EACCES"],
      ])
    } finally {
      for (const folder of [join(sessions, "b"), join(chats, "b", "chats")]) chmodSync(folder, 0o755)
    }
  })
})
