import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, expect, test } from "vitest"
import { agents } from "../../src/agents/registry.ts"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import type { Run } from "../support/dex.ts"
import { createHomeWithFixes, failureInput, unknownReadInput } from "../support/solved.ts"
import { itemOf, suggestionOf } from "../support/suggestions.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

const home = sharedTempDir()
beforeAll(() => createHomeWithFixes(home, 3))

/** Nobody waits for an answer. */
const NO_TIME = { DEX_HOOK_MS: "1" }
const PATIENT = { DEX_HOOK_MS: "900" }
const FAILED = ["claude_code", "PostToolUseFailure"]
const READS = ["claude_code", "PreToolUse"]

/** As an agent starts it: its program, in the environment of a desktop. */
function hook(words: string[], stdin: string, env: Record<string, string>, of = home): Promise<Run> {
  const child = spawn(join(home, ".dex", "bin", "dex-hook"), words, {
    env: { PATH: "/usr/bin:/bin", HOME: of, DEX_PROACTIVE_MODE: "speak", ...env },
    stdio: ["pipe", "pipe", "pipe"],
  })
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

const SILENT = { code: 0, stdout: "", stderr: "" }
const late = (...of: string[]) => join(home, ".dex", "late", ...of)
const waiting = (session: string) =>
  existsSync(late()) ? readdirSync(late()).filter((name) => name.startsWith(`${session}.`)) : []

/** Runs a hook that nobody waits for and that finds something. */
async function foundLate(session: string, i: number): Promise<void> {
  expect(await hook(FAILED, failureInput(session, i), NO_TIME)).toEqual(SILENT)
  await expect.poll(() => waiting(session)).toHaveLength(1)
}

test("a suggestion that was found too late is printed at the session's next event, once", async () => {
  await foundLate("one", 0)
  expect(statSync(late()).mode & 0o077).toBe(0)
  expect(statSync(late(waiting("one")[0]!)).mode & 0o077).toBe(0)
  expect(await hook(READS, unknownReadInput("other"), PATIENT)).toEqual(SILENT)

  const { code, stdout, stderr } = await hook(READS, unknownReadInput("one"), PATIENT)
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
  const { hookSpecificOutput } = JSON.parse(stdout)
  expect(hookSpecificOutput.hookEventName).toBe("PreToolUse")
  expect(hookSpecificOutput.additionalContext).toMatch(/^<dex-context>\n.*\n- fix: .*token0\.ts.*\n<\/dex-context>$/)
  expect(hookSpecificOutput.additionalContext).toContain('session.run("\\\\0")')

  expect(waiting("one")).toEqual([])
  expect(await hook(READS, unknownReadInput("one"), PATIENT)).toEqual(SILENT)
  expect(await hook(FAILED, failureInput("one", 0), PATIENT)).toEqual(SILENT)
})

test("a suggestion that is found in time is printed immediately, together with a late one", async () => {
  for (let i = 0; i < 40; i++) {
    const session = `both-${i}`
    await foundLate(session, 1)
    const { stdout } = await hook(FAILED, failureInput(session, 2), PATIENT)
    const context = JSON.parse(stdout).hookSpecificOutput.additionalContext
    expect(context).toContain("token1.ts")
    if (context.includes("token2.ts")) return expect(context.match(/<dex-context>/g)).toHaveLength(2)
  }
  throw new Error("It was never found in time, 40 times: this machine is too busy.")
})

test("OpenCode's plugin gets the bare text", async () => {
  const { session_id, cwd, tool_input, error } = JSON.parse(failureInput("ses_1", 0))
  const failed = JSON.stringify({ session_id, cwd, tool_name: "bash", tool_input, exit: 1, output: error })
  const after = ["opencode", "tool.execute.after"]
  expect(await hook(after, failed, NO_TIME)).toEqual(SILENT)
  await expect.poll(() => waiting("ses_1")).toHaveLength(1)
  const { stdout } = await hook(after, JSON.stringify({ session_id, cwd, tool_name: "list" }), PATIENT)
  expect(stdout).toMatch(/^<dex-context>\n.*not an instruction.*\n- fix: .*token0\.ts.*\n<\/dex-context>$/)
})

test("what is found at an event whose text the agent ignores is said at the next one", async () => {
  expect(await hook([...FAILED, "later"], failureInput("held", 2), PATIENT)).toEqual(SILENT)
  await expect.poll(() => waiting("held")).toHaveLength(1)
  const { stdout } = await hook(READS, unknownReadInput("held"), PATIENT)
  expect(JSON.parse(stdout).hookSpecificOutput.additionalContext).toContain("token2.ts")
})

test.each(agents.filter(({ hooks }) => hooks !== undefined))(
  "$name gets a late text in its own form",
  async (agent) => {
    const said = 'one "quoted" text\nof two lines'
    const hooks = await agent.hooks!()
    for (const i of [1, 2]) writeFileSync(late(`form-${agent.source}.${i}`), hooks.piece(said))
    const input = JSON.stringify({ session_id: `form-${agent.source}`, cwd: home })
    const { code, stdout, stderr } = await hook([agent.source, "Nothing"], input, PATIENT)
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    expect(stdout).toBe(hooks.answer("Nothing", `${said}\n${said}`))
  },
)

test.each(agents.filter(({ hooks }) => hooks !== undefined))(
  "whatever $name sends, the program that it starts is silent and succeeds",
  async ({ source }) => {
    const events = [
      "SessionStart",
      "UserPromptSubmit",
      "PreToolUse",
      "PostToolUse",
      "tool.execute.after",
      "chat.message",
    ]
    const gone = {
      session_id: "s",
      cwd: "/nowhere/at/all",
      workspaceRoots: ["/nowhere"],
      prompt: "x",
      tool_name: "Read",
    }
    const wrong = { session_id: ["s"], cwd: 7, sessionContext: [], workspaceRoots: {}, tool_call: "x", prompt: {} }
    const inputs = [
      JSON.stringify(gone),
      JSON.stringify(wrong),
      "x".repeat(5 << 20),
      "\0\x1b[2J\ufffd{",
      "[".repeat(10_000),
      "",
    ]
    const runs = await Promise.all(inputs.map((input, i) => hook([source, events[i]!], input, {})))
    expect(runs).toEqual(inputs.map(() => SILENT))
  },
)

test("after ten minutes it is no longer printed", async () => {
  await foundLate("old", 0)
  const [name] = waiting("old")
  const then = Date.now() / 1000 - 11 * 60
  utimesSync(late(name!), then, then)
  expect(await hook(READS, unknownReadInput("old"), PATIENT)).toEqual(SILENT)
  expect(waiting("old")).toEqual([])

  await foundLate("gone", 0)
  utimesSync(late(waiting("gone")[0]!), then, then)
  await foundLate("here", 0)
  await expect.poll(() => waiting("gone")).toEqual([])
})

test("a session's name cannot lead to another file", async () => {
  mkdirSync(late(), { recursive: true })
  writeFileSync(late("private.1"), "SECRET")
  writeFileSync(join(home, ".dex", "up.1"), "SECRET")
  for (const session of ["../up", "*", "private*", "pri[v]ate", "a b", "$HOME", "`id`", "", ".", "x".repeat(200)]) {
    const before = readdirSync(late())
    const { code, stdout, stderr } = await hook(READS, unknownReadInput(session), PATIENT)
    expect({ code, stdout, stderr }, session).toEqual(SILENT)
    expect(readdirSync(late()), session).toEqual(before)
  }
  expect(readFileSync(late("private.1"), "utf8")).toBe("SECRET")
})

test("if there is no history, nothing is printed and nothing is created", async () => {
  const empty = tempDir()
  expect(await hook(FAILED, failureInput("x", 0), PATIENT, empty)).toEqual(SILENT)
  expect(readdirSync(empty)).toEqual([])
})

test("dex forget forgets it too", async () => {
  await foundLate("forgotten", 0)
  const { code } = await warmDex(home, ["forget", "claude_code:00000000-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "--yes"])
  expect(code).toBe(0)
  expect(existsSync(late())).toBe(false)
})

test("two hooks of a session that find the same thing print it once", () => {
  const suggestions = openSuggestions(join(tempDir(), "suggest.db"))
  const save = (id: string, key: string, session: string) =>
    suggestions.save(suggestionOf(id, { items: [itemOf({ key })], moment: { session } }), { once: true })
  expect(save("a".repeat(16), "fix:1", "s1")).toMatchObject({ kept: true })
  expect(save("b".repeat(16), "fix:1", "s1")).toMatchObject({ kept: false })
  expect(save("c".repeat(16), "fix:2", "s1")).toMatchObject({ kept: true })
  expect(save("d".repeat(16), "fix:1", "s2")).toMatchObject({ kept: true })
  suggestions.close()
})
