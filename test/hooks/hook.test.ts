import { spawn } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import { call, putSession, SESSION, type Writer, writer } from "../support/claude-code.ts"
import { DEX, PATIENT, type Run } from "../support/dex.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"

const ERROR = "TypeError: quokkaword is not a function"

/** A home in which a conversation of /home/dev/proj solved this error. */
async function solvedHome(home: string, learn = true): Promise<string> {
  const session = writer()
  session.prompt("Make the tests pass")
  run(session, "c1", ERROR, true)
  const filePath = "/home/dev/proj/src/token.ts"
  session.answer("m_e", [call("e1", "Edit", { file_path: filePath, old_string: "a", new_string: "b" })])
  const structuredPatch = [
    { oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines: ["-quokka()", "+quokka.run()"] },
  ]
  session.result("e1", "The file was updated.", { toolUseResult: { filePath, structuredPatch } })
  run(session, "c2", "12 passed", false)
  putSession(home, session.records)
  await syncHome(home)
  if (learn) expect(await warmDex(home, ["fix", ERROR])).toMatchObject({ code: 0 })
  return home
}

function run(session: Writer, id: string, output: string, isError: boolean): void {
  session.answer(`m_${id}`, [call(id, "Bash", { command: "npm test" })])
  const toolResult = isError ? `Error: ${output}` : { stdout: output, stderr: "", interrupted: false }
  session.result(id, output, { toolUseResult: toolResult }, { is_error: isError })
}

const failed = (session: string, cwd = "/home/dev/proj") =>
  JSON.stringify({
    session_id: session,
    cwd,
    hook_event_name: "PostToolUseFailure",
    tool_name: "Bash",
    tool_input: { command: "npm test" },
    error: `Exit code 1\n${ERROR}`,
  })
const SPEAK = { ...PATIENT, DEX_PROACTIVE_MODE: "speak" }
const EVENT = ["claude_code", "PostToolUseFailure"]

function hook(home: string, stdin: string, env: Record<string, string> = SPEAK, words = EVENT): Promise<Run> {
  const child = spawn(process.execPath, [DEX, "hook", ...words], {
    env: { PATH: process.env.PATH, HOME: home, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  })
  const printed = { stdout: "", stderr: "" }
  child.stdout.on("data", (text) => {
    printed.stdout += text
  })
  child.stderr.on("data", (text) => {
    printed.stderr += text
  })
  child.stdin.on("error", () => {}) // it was stopped before it had read everything
  child.stdin.end(stdin)
  return new Promise((ended) => child.on("close", (code) => ended({ code, ...printed })))
}

async function heard(home: string, session: string): Promise<string> {
  const { code, stdout, stderr } = await hook(home, failed(session))
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
  expect(stdout).not.toBe("")
  return stdout
}
const SILENT = { code: 0, stdout: "", stderr: "" }
const kept = (home: string) => {
  const suggestions = openSuggestions(join(home, ".dex", "suggest.db"))
  try {
    return suggestions.list({ limit: 100 })
  } finally {
    suggestions.close()
  }
}

let home: string
beforeAll(async () => {
  home = await solvedHome(realpathSync(mkdtempSync(join(tmpdir(), "dex-hook-"))))
})
afterAll(() => rmSync(home, { recursive: true, force: true }))

test("after a failed command it shows what fixed it before, once in a session", async () => {
  const { hookSpecificOutput } = JSON.parse(await heard(home, "one"))
  expect(hookSpecificOutput.hookEventName).toBe("PostToolUseFailure")
  expect(hookSpecificOutput.additionalContext).toMatch(/^<dex-context>\n.*not an instruction.*\n- fix: .*token\.ts/)
  expect(hookSpecificOutput.additionalContext).toContain(`[claude_code:${SESSION}#`)
  for (let i = 0; i < 3; i++) expect(await hook(home, failed("one"))).toEqual(SILENT)
  await heard(home, "two")
})

test("after the first hook, the next sync learns from conversations", async () => {
  const own = await solvedHome(tempDir(), false)
  expect(await hook(own, failed("early"))).toEqual(SILENT)
  await syncHome(own)
  await heard(own, "later")
})

test("in the mode log, it only records, once, what it would have shown", async () => {
  const log = { ...PATIENT, DEX_PROACTIVE_MODE: "log" }
  for (let i = 0; i < 2; i++) expect(await hook(home, failed("logged"), log)).toEqual(SILENT)
  const noted = kept(home).filter(({ moment }) => moment.session === "logged")
  expect(noted).toMatchObject([{ would: true, moment: { event: "failed_command" }, items: [{ kind: "fix" }] }])
})

test("what solved an error is shown from the first day, once, while the user has not decided yet", async () => {
  expect((await hook(home, failed("first day"), PATIENT)).stdout).toContain("Solved on")
  expect(await hook(home, failed("first day"), PATIENT)).toEqual(SILENT)
  const noted = kept(home).filter(({ moment }) => moment.session === "first day")
  expect(noted).toMatchObject([{ would: false, items: [{ kind: "fix" }] }])
})

test("the record of a moment contains no secret", async () => {
  const secret = `ghp_${"aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA1bC4"}`
  const input = failed("secret").replace("npm test", `TOKEN=${secret} npm test`)
  await hook(home, input)
  const [one] = kept(home).filter(({ moment }) => moment.session === "secret")
  expect(one!.moment.command).toContain("npm test")
  for (const file of ["suggest.db", "suggest.db-wal", "hook.log"])
    if (existsSync(join(home, ".dex", file)))
      expect(readFileSync(join(home, ".dex", file)).includes(secret)).toBe(false)
})

test("every switch turns it off", async () => {
  expect(await hook(home, failed("q1"), { ...SPEAK, DEX_QUIET: "1" })).toEqual(SILENT)
  expect(await hook(home, failed("q2"), { ...SPEAK, DEX_PROACTIVE_ENABLED: "false" })).toEqual(SILENT)
  const mute = async (...words: string[]) => expect(await warmDex(home, ["mute", ...words])).toMatchObject({ code: 0 })
  for (const what of ["fix", "/home/dev/proj"]) {
    await mute(what)
    expect(await hook(home, failed(`muted ${what}`)), what).toEqual(SILENT)
    await mute(what, "--off")
    await heard(home, `heard ${what}`)
  }
  expect(kept(home).some(({ moment }) => /^q|^muted/.test(moment.session!))).toBe(false)
})

test("another project gets nothing of it, and a project's own file can silence it but not let it speak", async () => {
  const project = join(tempDir(), "proj")
  mkdirSync(project)
  expect(await hook(home, failed("elsewhere", project))).toEqual(SILENT)

  const own = await solvedHome(tempDir())
  const folder = join(own, "proj")
  mkdirSync(folder)
  writeFileSync(join(folder, ".dex.json"), '{ "proactive.mode": "speak" }')
  const noted = join(own, ".dex", "suggest.db")
  expect(await hook(own, failed("a", folder), PATIENT)).toEqual(SILENT)
  expect(existsSync(noted)).toBe(true)
  writeFileSync(join(folder, ".dex.json"), '{ "proactive.enabled": false }')
  expect(await hook(own, failed("b", folder))).toEqual(SILENT)
  expect(existsSync(noted)).toBe(true)
})

test.each([
  ["no JSON", "no json"],
  ["a list", "[]"],
  ["another type", JSON.stringify({ session_id: 1, cwd: {}, tool_input: [] })],
  ["nothing", ""],
  ["more than it takes", JSON.stringify({ prompt: "x".repeat(5 << 20) })],
])("%s on stdin gives no output", async (_, stdin) => {
  expect(await hook(home, stdin)).toEqual(SILENT)
})

test("if there is no history, or no such agent or event, it prints nothing and creates nothing", async () => {
  const empty = tempDir()
  expect(await hook(empty, failed("x"))).toEqual(SILENT)
  expect(existsSync(join(empty, ".dex"))).toBe(false)
  for (const words of [[], ["claude_code"], ["claude_code", "Stop"], ["toString", "x"], ["vim", "x"]])
    expect(await hook(home, failed("x"), SPEAK, words)).toEqual(SILENT)
})

test("damaged or locked files give no output, and are reported in a small file", async () => {
  const own = await solvedHome(tempDir())
  expect(kept(own)).toEqual([])
  const lock = openSqlite(join(own, ".dex", "suggest.db"))
  lock.exec("begin immediate")
  expect(await hook(own, failed("locked"))).toEqual(SILENT)
  lock.exec("rollback")
  lock.close()
  writeFileSync(join(own, ".dex", KNOWLEDGE_FILE), "no database ".repeat(1000))
  expect(await hook(own, failed("damaged"))).toEqual(SILENT)
  const log = join(own, ".dex", "hook.log")
  expect(readFileSync(log, "utf8").split("\n").length).toBeGreaterThan(2)
  expect(statSync(log).mode & 0o077).toBe(0)
  writeFileSync(log, "x".repeat(70 << 10))
  await hook(own, failed("damaged again"))
  expect(statSync(log).size).toBeLessThan(1000)
})
