import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { OBSTACLES, type Obstacle, obstruct } from "../support/obstacles.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

/** If it waits at a pipe, the process that runs many command lines is ended, and reports at which one. */
async function run(home: string, args: string[], cwd = home) {
  const done = await warmDex(home, args, {}, cwd)
  expect({ args, ended: !/should not happen/.test(done.stderr) }).toEqual({ args, ended: true })
  return done
}

function put(home: string, path: string, content: string | object | object[]): void {
  const lines = Array.isArray(content) ? content.map((line) => `${JSON.stringify(line)}\n`).join("") : content
  mkdirSync(dirname(join(home, path)), { recursive: true })
  writeFileSync(join(home, path), typeof lines === "string" ? lines : JSON.stringify(lines))
}

const AT = "2026-11-03T10:00:00.000Z"
const ID = (letter: string) => `${letter.repeat(8)}-1111-4111-8111-111111111111`
const PROJECTS = ["git-file", "git-head", "worktree"]
const OPENCODE = ".local/share/opencode"

/** A conversation of every agent, each with the word zebrafinch in it, in projects of all kinds. */
function everyAgent(home: string): void {
  for (const [number, name] of PROJECTS.entries())
    claudeSession(home, {
      id: ID(String(number + 1)),
      cwd: join(home, "code", name),
      start: AT,
      turns: [{ user: `zebrafinch in ${name}` }, { assistant: "It sings." }],
    })
  const parent = claudeSession(home, { id: ID("a"), start: AT, turns: [{ user: "zebrafinch of Claude Code" }] })
  const [prompt] = readFileSync(parent, "utf8").split("\n")
  const session = JSON.parse(prompt!) as { uuid: string }
  const saved = "<persisted-output>\nOutput too large. Full output saved to: /x/tool-results/out.txt\n\nPreview"
  const block = { type: "tool_result", tool_use_id: "toolu_1", content: saved }
  const result = { ...session, uuid: "u-2", parentUuid: session.uuid, message: { role: "user", content: [block] } }
  writeFileSync(parent, `${prompt}\n${JSON.stringify(result)}\n`)
  const child = { ...session, isSidechain: true, agentId: "abc", uuid: "s-1", parentUuid: null }
  put(parent.replace(/\.jsonl$/, ""), "subagents/agent-abc.jsonl", [child])
  put(home, ".codex/sessions/rollout-good.jsonl", [
    { timestamp: AT, type: "session_meta", payload: { id: ID("c"), cwd: "/code/api", timestamp: AT } },
    {
      timestamp: AT,
      type: "response_item",
      payload: { type: "message", role: "user", content: [{ type: "input_text", text: "zebrafinch of Codex" }] },
    },
  ])
  put(home, ".gemini/tmp/app/chats/session-good.jsonl", [
    { sessionId: ID("e"), projectHash: "h", startTime: AT, lastUpdated: AT, kind: "main" },
    { id: "1", timestamp: AT, type: "user", content: [{ text: "zebrafinch of Gemini CLI" }] },
  ])
  put(home, ".cursor/projects/app/agent-transcripts/good.jsonl", [
    { role: "user", message: { content: [{ type: "text", text: "zebrafinch of Cursor" }] } },
  ])
  put(home, `${OPENCODE}/storage/session/p/ses_good.json`, {
    ...{ id: "ses_good", projectID: "p", directory: "/code/api", title: "Birds", version: "1.1.65" },
    time: { created: Date.parse(AT), updated: Date.parse(AT) },
  })
  const message = { id: "msg_good", sessionID: "ses_good", role: "user", time: { created: Date.parse(AT) } }
  put(home, `${OPENCODE}/storage/message/ses_good/msg_good.json`, message)
  const text = {
    id: "prt_good",
    messageID: "msg_good",
    sessionID: "ses_good",
    type: "text",
    text: "zebrafinch of OpenCode",
  }
  put(home, `${OPENCODE}/storage/part/msg_good/prt_good.json`, text)
}

const AGENTS_FOUND = ["claude_code", "codex", "cursor", "gemini_cli", "opencode"]

/** The files that dex reads or looks for, and where it reports that one could not be read. */
function filesOf(home: string): { unreadable: string[]; skipped: Record<string, string>; silent: string[] } {
  const claude = join(home, ".claude/projects/-code-api")
  const repository = join(home, "code/git-file/.git")
  return {
    unreadable: [
      join(claude, "bad.jsonl"),
      ...["sessions/rollout-bad.jsonl", "sessions/rollout-bad2.jsonl.zst", "sessions/rollout-bad3.json"].map((path) =>
        join(home, ".codex", path),
      ),
      join(home, ".claude/history.jsonl"),
      join(home, ".codex/session_index.jsonl"),
      join(home, ".codex/state_5.sqlite"),
      join(home, ".gemini/projects.json"),
      join(home, ".gemini/tmp/app/.project_root"),
      join(home, ".gemini/tmp/app/chats/session-bad.jsonl"),
      join(home, ".gemini/tmp/app/chats/session-bad2.json"),
      join(home, ".config/Cursor/User/globalStorage/state.vscdb"),
      join(home, ".config/Cursor/User/workspaceStorage/w/workspace.json"),
      join(home, ".config/Cursor/User/workspaceStorage/w/state.vscdb"),
      join(home, ".cursor/projects/app/agent-transcripts/bad.jsonl"),
      join(home, ".cursor/projects/app/agent-transcripts/bad2.txt"),
      join(home, ".cursor/chats/h/s/store.db"),
      join(home, OPENCODE, "opencode.db"),
      join(home, OPENCODE, "storage/session/p/ses_bad.json"),
    ],
    // Counted with the conversation that they belong to, by this word.
    skipped: {
      [join(claude, ID("a"), "subagents/agent-abc.meta.json")]: "a .meta.json",
      [join(claude, ID("a"), "tool-results/out.txt")]: "a saved output",
      [join(home, OPENCODE, "storage/message/ses_good/msg_bad.json")]: "",
      [join(home, OPENCODE, "storage/part/msg_good/prt_bad.json")]: "",
      [join(home, OPENCODE, "storage/project/p.json")]: "",
    },
    silent: [
      repository,
      join(home, "code/git-head/.git/HEAD"),
      join(home, "code/main/.git/worktrees/w/HEAD"),
      join(home, ".claude/settings.json"),
      ...PROJECTS.flatMap((name) => [join(home, "code", name, ".dex.json"), join(home, "code", name, "main.ts")]),
    ],
  }
}

const NO_FILE = /not a regular file|a symbolic link, not followed/
const TOO_LARGE = /larger than \d+ [kM]B|over the limit|not readable as (?:a database|zstd)/

describe.skipIf(process.platform === "win32").each(Object.keys(OBSTACLES) as Obstacle[])("%s", (obstacle) => {
  test("in the place of any file blocks nothing: everything else is read, and it is reported", async () => {
    const home = tempDir()
    everyAgent(home)
    const { unreadable, skipped, silent } = filesOf(home)
    put(home, "code/worktree/.git", `gitdir: ${join(home, "code/main/.git/worktrees/w")}\n`)
    const isHuge = obstacle === "a file of a gigabyte"
    // Lines are read one after the other, for every agent: one transcript of that size takes a second, and proves it.
    const isEnough = (path: string) => !isHuge || !path.endsWith(".jsonl") || /-code-api|session_index/.test(path)
    const expected = unreadable.filter(isEnough)
    for (const path of [...expected, ...Object.keys(skipped), ...silent]) obstruct(path, obstacle)

    const report = JSON.parse((await run(home, ["sync", "--json"])).stdout.trim().split("\n").at(-1)!) as {
      complete: boolean
      unreadable: { path: string; reason: string }[]
    }
    expect(report.complete).toBe(true)
    const sources = (
      JSON.parse((await run(home, ["sources", "--json"])).stdout) as {
        sources: { source: string; skipped: Record<string, number>; unreadable: { path: string; reason: string }[] }[]
      }
    ).sources
    const skips = sources.flatMap(({ skipped }) => Object.entries(skipped))
    const reason = isHuge ? TOO_LARGE : NO_FILE
    expect(report.unreadable.filter((file) => !reason.test(file.reason))).toEqual([])
    expect(sources.flatMap((source) => source.unreadable)).toHaveLength(report.unreadable.length)
    const reported = new Set(report.unreadable.map(({ path }) => path))
    // Cursor and Claude Code keep the files of a session in a folder.
    const isFolder = (path: string) => obstacle === "a folder" && /\/agent-transcripts\/|-code-api\//.test(path)
    const missing = expected.filter((path) => !reported.has(path) && !isFolder(path))
    if (isHuge) {
      // These are read by line or by file, and parts that are too long are counted.
      expect(missing.filter((path) => !/\.(?:jsonl|json|txt|zst)$/.test(path))).toEqual([])
      const counted = skips.filter(([why]) => TOO_LARGE.test(why)).reduce((sum, [, count]) => sum + count, 0)
      expect(counted).toBeGreaterThanOrEqual(missing.length + Object.keys(skipped).length - 1)
    } else {
      expect(missing).toEqual([])
      for (const word of new Set(Object.values(skipped)))
        expect(skips.filter(([why]) => why.startsWith(word) && reason.test(why)).length).toBeGreaterThan(0)
    }

    const found = JSON.parse((await run(home, ["search", "zebrafinch", "--json", "--limit", "30"])).stdout) as {
      results: { id: string }[]
    }
    expect([...new Set(found.results.map(({ id }) => id.split(":")[0]!))].sort()).toEqual(AGENTS_FOUND)
    for (const name of PROJECTS) {
      const cwd = join(home, "code", name)
      const { conversations } = JSON.parse((await run(home, ["list", "--json"], cwd)).stdout) as {
        conversations: { project: string }[]
      }
      expect(conversations.map(({ project }) => project)).toContain(name === "worktree" ? join(home, "code/main") : cwd)
      expect((await run(home, ["search", "zebrafinch"], cwd)).code).toBe(0)
      expect((await run(home, ["suggest", "--json"], cwd)).code).not.toBe(2)
    }
    await run(home, ["doctor"])
  }, 600_000)

  test("in the place of an agent's settings, of a document or of a package is refused with a message", async () => {
    const home = tempDir()
    obstruct(join(home, ".claude.json"), obstacle)
    obstruct(join(home, ".claude/settings.json"), obstacle)
    const isHuge = obstacle === "a file of a gigabyte"
    const install = await run(home, ["install", "claude", "--yes"])
    expect(install.code).not.toBe(0)
    expect((install.stdout + install.stderr).replaceAll(/\s+/g, " ")).toMatch(
      isHuge ? /is larger than 64 MB/ : /is not a regular file/,
    )
    put(home, "docs/good.md", "# Birds\n\nThe zebrafinch sings.\n")
    obstruct(join(home, "docs/bad.md"), obstacle)
    obstruct(join(home, "node_modules/pkg/package.json"), obstacle)
    expect((await run(home, ["docs", "add", join(home, "docs")])).code).toBe(0)
    expect((await run(home, ["search", "zebrafinch"])).code).toBe(0)
    expect((await run(home, ["docs", "add", "npm:pkg"])).stderr).toMatch(/not installed/)
  })
})

test.skipIf(process.platform === "win32")(
  "a pipe in the place of a -wal, -shm or -journal does not block",
  async () => {
    for (const suffix of ["-wal", "-shm", "-journal"]) {
      const home = tempDir()
      const path = join(home, OPENCODE, "opencode.db")
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, "")
      if (suffix === "-shm") writeFileSync(`${path}-wal`, "x".repeat(100))
      execFileSync("mkfifo", [path + suffix])
      const report = JSON.parse((await run(home, ["sync", "--json"])).stdout.trim().split("\n").at(-1)!) as {
        unreadable: { path: string; reason: string }[]
      }
      expect(report.unreadable).toEqual([{ source: "opencode", path, reason: `its ${suffix} is not a regular file` }])
    }
  },
)
