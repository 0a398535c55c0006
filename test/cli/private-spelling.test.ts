import { expect, onTestFinished, test } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import { runTool } from "../../src/app/run.ts"
import { readArguments } from "../../src/cli/args.ts"
import { messageOf } from "../../src/core/error.ts"
// Imported before the platform is changed, because it chooses its native module by platform.
import "../../src/store/sqlite/engine.ts"
import { commands } from "../../src/cli/commands.ts"
import { call, putSession, SESSION, writer } from "../support/claude-code.ts"
import { dex as command } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"

const KEPT = "/Users/dev/Caf\u00e9"
const OTHER = "/users/DEV/cafe\u0301"
const ELSEWHERE = "/Users/dev/open"
const ERROR = "TypeError: wombatword is not a function"
const SECOND = "22222222-2222-4222-8222-222222222222"

/** Everything below runs as on a Mac, where these spellings name the same folder. */
function onMac(): void {
  const real = Object.getOwnPropertyDescriptor(process, "platform")!
  Object.defineProperty(process, "platform", { ...real, value: "darwin" })
  onTestFinished(() => void Object.defineProperty(process, "platform", real))
}

/** Two conversations of one folder, as an older dex stored them: each spelling as a separate project. */
async function privateHome(): Promise<string> {
  const home = tempDir()
  const session = writer({ cwd: OTHER })
  session.prompt("We decided to use wombatword instead of the queue. Make the tests pass")
  const run = (id: string, output: string, failed: boolean) => {
    session.answer(`m_${id}`, [call(id, "Bash", { command: "npm test" })])
    const toolUseResult = failed ? `Error: ${output}` : { stdout: output, stderr: "", interrupted: false }
    session.result(id, output, { toolUseResult }, { is_error: failed })
  }
  run("c1", ERROR, true)
  const filePath = `${OTHER}/src/wombat.ts`
  session.answer("m_e", [call("e1", "Edit", { file_path: filePath, old_string: "a", new_string: "b" })])
  const structuredPatch = [
    { oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines: ["-wombat()", "+wombat.run()"] },
  ]
  session.result("e1", "The file was updated.", { toolUseResult: { filePath, structuredPatch } })
  run("c2", "12 passed", false)
  putSession(home, session.records)
  const start = "2026-11-03T10:00:00Z"
  claudeSession(home, { id: SECOND, cwd: KEPT, start, turns: [{ user: "wombatword again" }, { assistant: "Yes" }] })
  const other = "33333333-3333-4333-8333-333333333333"
  claudeSession(home, { id: other, cwd: ELSEWHERE, start, turns: [{ user: "platypusword" }, { assistant: "Yes" }] })
  expect(await command(home, ["sync"])).toMatchObject({ code: 0 })
  expect(await command(home, ["private", KEPT])).toMatchObject({ code: 0 })
  return home
}

async function ask(home: string, cwd: string, ...words: string[]): Promise<string> {
  const dex = createDex({ env: { HOME: home }, cwd, version: "0" })
  try {
    const tool = commands.find(({ tool: { name, cli } }) => name === words[0] || cli.aliases?.includes(words[0]!))!
      .tool as never
    return JSON.stringify((await runTool(tool, dex, readArguments(tool, words.slice(1)).input)).output)
  } catch (error) {
    return messageOf(error)
  } finally {
    dex.close()
  }
}

const QUESTIONS = [
  ["search", "wombatword"],
  ["list", "--all"],
  ["show", SESSION],
  ["show", SECOND],
  ["timeline", SESSION],
  ["scan", SECOND],
  ["read", SESSION, "1"],
  ["fix", ERROR],
  ["decisions", "wombatword", "--all"],
]
const showsProject = (answer: string) =>
  /wombat/.test(answer.replaceAll(ERROR, "")) || (/"(?:conversations|projects)":/.test(answer) && /caf/i.test(answer))

test("a project that is private under another spelling of its path is shown by no command elsewhere", async () => {
  const home = await privateHome()
  // The older dex still has one of the spellings as a project that is not private.
  expect((await command(home, ["search", "wombatword"], {}, undefined, "", "/")).stdout).toContain("wombatword")
  onMac()
  const leaks: string[] = []
  for (const question of [...QUESTIONS, ["suggest", "--error", ERROR], ["stats"]]) {
    const answer = await ask(home, ELSEWHERE, ...question)
    if (showsProject(answer)) leaks.push(`${question.join(" ")}: ${answer}`)
  }
  expect(leaks).toEqual([])
  expect(await ask(home, ELSEWHERE, "search", "platypusword")).toContain("platypusword")
})

test("inside it, in any spelling, everything is shown", async () => {
  const home = await privateHome()
  onMac()
  const silent: string[] = []
  for (const cwd of [KEPT, OTHER, KEPT.toUpperCase()])
    for (const question of QUESTIONS)
      if (!showsProject(await ask(home, cwd, ...question))) silent.push(`${cwd} ${question}`)
  expect(silent).toEqual([])
})

test("dex private and dex forget accept any spelling", async () => {
  const home = await privateHome()
  onMac()
  expect(JSON.parse(await ask(home, ELSEWHERE, "private", KEPT.toLowerCase(), "--off"))).toMatchObject({
    private: false,
  })
  expect(showsProject(await ask(home, ELSEWHERE, "search", "wombatword"))).toBe(true)
  expect(JSON.parse(await ask(home, ELSEWHERE, "forget", KEPT.toUpperCase(), "--yes"))).toMatchObject({ count: 2 })
  expect(showsProject(await ask(home, ELSEWHERE, "search", "wombatword"))).toBe(false)
})
