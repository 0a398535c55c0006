import { execFileSync, spawn } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, utimesSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, beforeEach, expect, test } from "vitest"
import { call, put, SESSION, writer } from "../support/claude-code.ts"
import { DEX, PATIENT, type Run } from "../support/dex.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

const PROJECT = "/home/dev/proj"
const OTHER = "22222222-2222-4333-8444-555555555555"
const SECRET = `ghp_${"aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA1bC4"}`
const SILENT = { code: 0, stdout: "", stderr: "" }

const home = sharedTempDir()
const kept = (session = SESSION) => join(home, ".dex", "late", `${session}.compaction`)

beforeAll(async () => {
  putConversation(home, OTHER, "Leave the marmalade archive alone")
  for (const words of [["sync"], ["install", "claude-code", "--yes", "--hooks"]])
    expect(await warmDex(home, words)).toMatchObject({ code: 0 })
})
// Claude Code has not synced this conversation yet.
beforeEach(() => putConversation(home, SESSION, `Make the token refresh work with ${SECRET} again`))

function putConversation(home: string, sessionId: string, prompt: string): void {
  const session = writer({ sessionId }, `${sessionId.slice(0, 2)}-`)
  session.prompt(prompt)
  const filePath = `${PROJECT}/src/token.ts`
  session.answer("m_e", [call("e1", "Edit", { file_path: filePath, old_string: "a", new_string: "b" })])
  const structuredPatch = [{ oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines: ["-a", "+refreshToken()"] }]
  session.result("e1", "The file was updated.", { toolUseResult: { filePath, structuredPatch } })
  put(home, `.claude/projects/-home-dev-proj/${sessionId}.jsonl`, session.records)
}

const input = (event: string, more: object = {}) =>
  JSON.stringify({ session_id: SESSION, cwd: PROJECT, hook_event_name: event, ...more })

function run(program: string, words: string[], stdin: string, env: Record<string, string>): Promise<Run> {
  const child = spawn(program, words, { env: { PATH: "/usr/bin:/bin", HOME: home, ...env }, stdio: "pipe" })
  const output = { stdout: "", stderr: "" }
  child.stdout.on("data", (text) => {
    output.stdout += text
  })
  child.stderr.on("data", (text) => {
    output.stderr += text
  })
  child.stdin.end(stdin)
  return new Promise((ended) => child.on("close", (code) => ended({ code, ...output })))
}

/** As an agent starts it. */
function hook(source: string, event: string, more: object = {}, env: Record<string, string> = PATIENT): Promise<Run> {
  return run(join(home, ".dex", "bin", "dex-hook"), [source, event], input(event, more), env)
}

/** Like the second half of what the hook's program does before a compaction, but this waits for it. */
async function prepare(more: object = {}, env: Record<string, string> = {}): Promise<void> {
  const { session_id = SESSION } = more as { session_id?: string }
  const late = { DEX_HOOK_LATE: kept(session_id) }
  const words = [DEX, "hook", "claude_code", "PreCompact"]
  mkdirSync(join(home, ".dex", "late"), { recursive: true, mode: 0o700 })
  expect(await run(process.execPath, words, input("PreCompact", more), { ...late, ...env })).toEqual(SILENT)
}

const START = { source: "compact" }
const textIn = ({ stdout }: Run): string => JSON.parse(stdout).hookSpecificOutput.additionalContext

test("before a compaction the conversation is kept, and what it did is given back at its next event, once", async () => {
  expect(await hook("claude_code", "PreCompact", { trigger: "auto" })).toEqual(SILENT)
  await expect.poll(() => existsSync(kept())).toBe(true)
  expect(statSync(kept()).mode & 0o077).toBe(0)
  expect((await warmDex(home, ["show", `claude_code:${SESSION}`])).stdout).toContain("Make the token refresh work")

  expect(await hook("claude_code", "SessionStart", { ...START, session_id: OTHER })).toEqual(SILENT)
  expect(await hook("claude_code", "PreToolUse", { agent_id: "a1", tool_name: "Grep" })).toEqual(SILENT)
  const answer = await hook("claude_code", "SessionStart", START)
  expect(JSON.parse(answer.stdout).hookSpecificOutput.hookEventName).toBe("SessionStart")
  const lines = textIn(answer).split("\n")
  expect(lines[0]).toBe("<dex-context>")
  expect(lines[1]).toContain("before it was compacted")
  expect(lines[2]).toMatch(/^The developer first asked: "Make the token refresh work with .* again"$/)
  expect(lines.slice(3)).toEqual(["- src/token.ts +1 −1: refreshToken", `[claude_code:${SESSION}#3]`, "</dex-context>"])
  expect(textIn(answer)).not.toContain(SECRET)

  expect(existsSync(kept())).toBe(false)
  expect(await hook("claude_code", "SessionStart", START)).toEqual(SILENT)
})

test("a second compaction replaces what was prepared for the first", async () => {
  for (let i = 0; i < 2; i++) await prepare()
  const text = textIn(await hook("claude_code", "UserPromptSubmit", { prompt: "Go on" }))
  expect(text.match(/<dex-context>/g)).toHaveLength(1)
})

test("it waits for a day, and no longer", async () => {
  const hoursAgo = (hours: number) => Date.now() / 1000 - hours * 3_600
  await prepare()
  utimesSync(kept(), hoursAgo(23), hoursAgo(23))
  expect(textIn(await hook("claude_code", "UserPromptSubmit", { prompt: "Go on" }))).toContain("src/token.ts")
  await prepare()
  utimesSync(kept(), hoursAgo(25), hoursAgo(25))
  expect(await hook("claude_code", "UserPromptSubmit", { prompt: "Go on" })).toEqual(SILENT)
  expect(existsSync(kept())).toBe(false)
})

test("every switch turns it off", async () => {
  const expectNothing = () => expect(existsSync(kept())).toBe(false)
  for (const [name, value] of [
    ["DEX_QUIET", "1"],
    ["DEX_PROACTIVE_ENABLED", "false"],
    ["DEX_PROACTIVE_MODE", "log"],
  ] as const) {
    await prepare({}, { [name]: value })
    expectNothing()
  }
  for (const what of ["conversation", PROJECT]) {
    await warmDex(home, ["mute", what])
    await prepare()
    expectNothing()
    await warmDex(home, ["mute", what, "--off"])
  }
  expect(await hook("claude_code", "PreCompact", {}, { DEX_QUIET: "1" })).toEqual(SILENT)
  await prepare()
  expect(existsSync(kept())).toBe(true)
  await hook("claude_code", "SessionStart", START)
})

test("nothing is given of a subagent's compaction, in another project, or of an unknown session", async () => {
  const elsewhere = tempDir()
  const unknown = "33333333-2222-4333-8444-555555555555"
  for (const more of [{ agent_id: "a1" }, { cwd: elsewhere }, { session_id: unknown }, { session_id: "../up" }])
    await prepare(more)
  expect(readdirSync(join(home, ".dex", "late"))).toEqual([])
})

test("no text is prepared for a file of another session", async () => {
  await prepare({}, { DEX_HOOK_LATE: kept(OTHER) })
  expect(existsSync(kept(OTHER))).toBe(false)
})

test("the path that an agent names as its transcript is never opened", async () => {
  const folder = tempDir()
  const fifo = join(folder, "fifo")
  execFileSync("mkfifo", [fifo])
  symlinkSync(`${home}/.claude/projects/-home-dev-proj/${OTHER}.jsonl`, join(folder, "link"))
  for (const transcript_path of [fifo, join(folder, "link"), "/dev/zero", "/etc/passwd"]) {
    await prepare({ transcript_path })
    expect(readFileSync(kept(), "utf8")).not.toMatch(/marmalade|root:/)
    expect(await hook("claude_code", "SessionStart", START)).toMatchObject({ code: 0 })
  }
})

test("each agent gets it in its own format", async () => {
  await prepare()
  const text = readFileSync(kept(), "utf8")
  for (const [source, event] of [
    ["codex", "SessionStart"],
    ["gemini_cli", "BeforeAgent"],
  ] as const) {
    put(home, `.dex/late/${SESSION}.compaction`, text)
    expect(textIn(await hook(source, event, { prompt: "Go on" }))).toContain("src/token.ts")
  }
})
