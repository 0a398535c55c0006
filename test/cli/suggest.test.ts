import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { connect } from "../mcp/client.ts"
import { call, putSession, type Writer, writer } from "../support/claude-code.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const ONE = "11111111-2222-4333-8444-555555555555"
const FAILED = "TypeError: Cannot read properties of undefined (reading 'expiry')"

function edit(session: Writer, id: string, filePath: string): void {
  session.answer(`m_${id}`, [call(id, "Edit", { file_path: filePath, old_string: "a", new_string: "b" })])
  const lines = ["-  return token.expiry", "+  return readExpiry(token)"]
  const structuredPatch = [{ oldStart: 3, oldLines: 1, newStart: 3, newLines: 1, lines }]
  session.result(id, "The file was updated.", { toolUseResult: { filePath, structuredPatch } })
}

const inside = (cwd: string, home: string, args: string[]) => dex(home, args, {}, cwd)

/** A repository on the branch `tokens`, and a conversation there that fixed a failing test. */
async function worked(): Promise<{ home: string; project: string }> {
  const home = tempDir()
  const project = join(home, "shop")
  mkdirSync(join(project, "src"), { recursive: true })
  execFileSync("git", ["init", "-q", "-b", "tokens", project])
  for (const name of ["token.ts", "token.test.ts", "clock.ts"]) writeFileSync(join(project, "src", name), "")
  const session = writer({ cwd: project, gitBranch: "tokens" })
  session.prompt("Make the tests pass")
  session.answer("m_c1", [call("c1", "Bash", { command: "npm test" })])
  session.result("c1", FAILED, { toolUseResult: `Error: ${FAILED}` }, { is_error: true })
  edit(session, "e1", join(project, "src/token.ts"))
  edit(session, "e2", join(project, "src/token.test.ts"))
  edit(session, "e3", join(project, "src/clock.ts"))
  session.answer("m_c2", [call("c2", "Bash", { command: "npm test" })])
  session.result("c2", "12 passed", { toolUseResult: { stdout: "12 passed", stderr: "", interrupted: false } })
  putSession(home, session.records, ONE)
  await syncHome(home)
  return { home, project }
}

test("suggests what belongs to a file, what fixed an error, and what was worked on last", async () => {
  const { home, project } = await worked()
  const suggest = async (...args: string[]) =>
    JSON.parse((await inside(project, home, ["suggest", ...args, "--json"])).stdout)
  expect((await suggest("--file", "src/token.ts")).suggestions).toMatchObject([
    { kind: "related_code", file: "src/clock.ts", reason: expect.stringContaining("on this branch") },
    { kind: "conversation", file: "src/token.ts" },
  ])
  expect((await suggest("--error", FAILED)).suggestions[0]).toMatchObject({
    kind: "fix",
    title: expect.stringContaining("by editing src/token.ts, src/token.test.ts"),
    ref: expect.stringMatching(/^claude_code:.*#\d+$/),
  })
  expect(await suggest()).toMatchObject({
    project_id: project,
    status: "shown",
    suggestions: [{ kind: "conversation", reason: "It was on the same branch." }],
  })
})

test("suggestions are listed with their summaries, not only with their titles", async () => {
  const { home, project } = await worked()
  const { stdout } = await inside(project, home, ["suggest", "--file", "src/token.ts", "--json"])
  const [{ summary }] = JSON.parse(stdout).suggestions
  expect(summary).toContain("Edited on this branch")
  expect((await inside(project, home, ["suggestions"])).stdout).toContain(`     ${summary}\n`)
})

test("muted suggestions are omitted even on request, and the answer says so", async () => {
  const { home, project } = await worked()
  const suggest = async () =>
    JSON.parse((await inside(project, home, ["suggest", "--file", "src/token.ts", "--json"])).stdout)
  const mute = (...args: string[]) => inside(project, home, ["mute", ...args])
  await mute("related_code")
  const without = await suggest()
  expect(without.suggestions).toMatchObject([{ kind: "conversation" }])
  expect(without.notes).toContain("Muted: related_code. `dex suggest --mute related_code --off` turns it on again.")
  await mute("related_code", "--off")
  await mute(".")
  const muted = await suggest()
  expect([muted.suggestions, muted.notes]).toEqual([
    [],
    ["This project is muted. `dex suggest --mute . --off` turns suggestions on again."],
  ])
})

test("uses git for recent changes and for files that change together", async () => {
  const { home, project } = await worked()
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=d", "-c", "user.email=d@example.org", ...args], { cwd: project })
  for (const n of [1, 2, 3]) {
    writeFileSync(join(project, "src/clock.ts"), `${n}`)
    writeFileSync(join(project, "src/zone.ts"), `${n}`)
    git("add", ".")
    git("commit", "-qm", `clock: step ${n}`)
  }
  const { stdout } = await inside(project, home, ["suggest", "--file", "src/clock.ts", "--json"])
  const { suggestions } = JSON.parse(stdout)
  expect(suggestions).toContainEqual(
    expect.objectContaining({
      kind: "change",
      summary: "clock: step 3",
      ref: expect.stringMatching(/^git:[0-9a-f]{40}$/),
    }),
  )
  expect(suggestions).toContainEqual(expect.objectContaining({ kind: "related_code", file: "src/zone.ts" }))
  expect(JSON.parse(readFileSync(join(home, ".dex/projects.json"), "utf8"))).toEqual({ projects: [project] })
})

test("uses the code for callers of the current symbol and for deprecations", async () => {
  const { home, project } = await worked()
  writeFileSync(
    join(project, "src/clock.ts"),
    "export function now() {\n  return 1\n}\n/** @deprecated use now */\nexport function time() {}\n",
  )
  writeFileSync(
    join(project, "src/shop.ts"),
    'import { now, time } from "./clock.ts"\nexport function open() {\n  time()\n  return now()\n}\n',
  )
  const about = async (...args: string[]) =>
    JSON.parse((await inside(project, home, ["suggest", ...args, "--json"])).stdout).suggestions
  expect(await about("--file", "src/clock.ts", "--line", "2")).toContainEqual(
    expect.objectContaining({
      kind: "related_code",
      title: "open in src/shop.ts:4",
      summary: "Calls now of clock.ts.",
    }),
  )
  expect(await about("--symbol", "now")).toContainEqual(expect.objectContaining({ file: "src/shop.ts" }))
  expect(await about("--file", "src/shop.ts")).toContainEqual(
    expect.objectContaining({ kind: "warning", title: "shop.ts uses deprecated symbols: time" }),
  )
  const all = async (symbol: string) =>
    (await inside(project, home, ["suggest", "--symbol", symbol, "--all", "--json"])).stdout
  expect(JSON.parse(await all("now")).code).toEqual({
    definitions: [{ file: "src/clock.ts", line: 1, kind: "function" }],
    callers: [{ file: "src/shop.ts", line: 4, in: "open", kind: "call", resolution: "resolved" }],
    callees: [],
  })
  expect(JSON.parse(await all("open")).code.callees).toEqual([
    { file: "src/clock.ts", line: 5, name: "time", resolution: "resolved" },
    { file: "src/clock.ts", line: 1, name: "now", resolution: "resolved" },
  ])
  const { stdout } = await inside(project, home, ["suggest", "--symbol", "open", "--all"])
  expect(stdout).toContain("Calls (2)\n  src/clock.ts:5  time\n  src/clock.ts:1  now\n")
  expect(await inside(project, home, ["suggest", "--all"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--all needs a symbol"),
  })
})

test("suggests sections of documents that name the file, unless they are turned off", async () => {
  const { home, project } = await worked()
  mkdirSync(join(project, "docs"))
  writeFileSync(join(project, "docs/guide.md"), "# Guide\n\n## Tokens\n\nEverything of token.ts is explained here.\n")
  expect(await inside(project, home, ["docs", "add", "docs"])).toMatchObject({ code: 0 })
  const kinds = async () =>
    JSON.parse((await inside(project, home, ["suggest", "--file", "src/token.ts", "--json"])).stdout).suggestions.map(
      ({ kind, ref }: { kind: string; ref?: string }) => `${kind} ${ref}`,
    )
  expect(await kinds()).toContain("document docs:docs/guide.md§Tokens")
  expect(await dex(home, ["config", "set", "proactive.off", "document"])).toMatchObject({ code: 0 })
  expect((await kinds()).join()).not.toContain("document")
})

test("says why, and exits with 1 if nothing is known", async () => {
  const { home, project } = await worked()
  const printed = await inside(project, home, ["suggest", "--file", "src/token.ts"])
  expect(printed).toMatchObject({ code: 0, stderr: expect.stringContaining("dex suggest --feedback") })
  expect(printed.stdout).toContain("\n    clock.ts was edited on this branch, where token.ts is being edited now.\n")
  expect(await inside(project, home, ["suggest", "--error", "zebra: no stripes"])).toMatchObject({ code: 1 })
  expect(await dex(tempDir(), ["suggest"])).toMatchObject({ code: 2, stderr: expect.stringContaining("dex sync") })
})

test("suggests nothing from another project, and from a private one only inside it", async () => {
  const { home, project } = await worked()
  const elsewhere = join(home, "other")
  mkdirSync(elsewhere)
  expect(await inside(elsewhere, home, ["suggest", "--error", FAILED])).toMatchObject({ code: 1 })
  expect(await dex(home, ["private", project])).toMatchObject({ code: 0 })
  const hidden = await inside(elsewhere, home, ["suggest", "--error", FAILED, "--project", project])
  expect(hidden).toMatchObject({ code: 1, stderr: expect.stringContaining("private") })
})

test("a folder names its project, and a folder that does not exist names none", async () => {
  const { home, project } = await worked()
  const run = (...args: string[]) => inside(project, home, args)
  mkdirSync(join(project, "cmd"))
  const made = JSON.parse((await run("subscribe", "src/**", "--project", "cmd", "--json")).stdout)
  expect(made.project).toBe(project)
  const refused = { code: 2, stderr: expect.stringContaining("folder") }
  for (const args of [
    ["mute", "resume.go"],
    ["mute", "/nope"],
    ["mute", "src/token.ts"],
  ])
    expect(await run(...args)).toMatchObject(refused)
  expect(await run("suggest", "--project", "/nope")).toMatchObject(refused)
  expect(await run("subscribe", "src/**", "--project", "/nope")).toMatchObject(refused)
  expect(await run("mute", "fixes")).toMatchObject({ code: 0, stdout: expect.stringContaining("fix is now muted") })
  expect(await run("mute", "cmd")).toMatchObject({ code: 0 })
  expect(JSON.parse((await run("mute", "--list", "--json")).stdout).mutes).toMatchObject([
    { type: "kind", name: "fix" },
    { type: "project", name: project },
  ])
})

test("an agent gets the same over MCP, for its own session", async () => {
  const { home, project } = await worked()
  // If learning takes long, a server answers with what is known so far. So everything is learned before.
  expect(await inside(project, home, ["suggest"])).toMatchObject({ code: 0 })
  const client = await connect(home, { cwd: project, env: { CLAUDE_CODE_SESSION_ID: "now" } })
  const answer = await client.call("context_suggest", { current_file: "src/token.ts", cursor_position: { line: 3 } })
  expect(answer).toMatchObject({ structuredContent: { session_id: "now", suggestions: [{}, {}] } })
  const { id } = answer.structuredContent as { id: string }
  const text = answer.content[0]!.text
  expect(text).toMatch(/^2 suggestions\.\n1 related_code: src\/clock\.ts\n {2}Edited on this branch/)
  expect(text).toMatch(/^ {2}why: clock\.ts was edited on this branch/m)
  expect(text).toMatch(/^ {2}\d\d % likely$/m)
  expect(text).toMatch(new RegExp(`likely; .*; ref claude_code:${ONE}#\\d+$`, "m"))
  expect(text.length).toBeLessThan(JSON.stringify(answer.structuredContent).length)
  const next = /^next: read one: (dex_get) (\{.*\})$/m.exec(text)!
  expect(await client.call(next[1]!, JSON.parse(next[2]!))).not.toHaveProperty("isError")
  const verdict = /^next: .*: suggestion_feedback (\{.*\})$/m.exec(text)!
  expect(JSON.parse(verdict[1]!)).toEqual({ id, verdict: "used", item: 1 })
  expect(await client.call("suggestion_feedback", JSON.parse(verdict[1]!))).not.toHaveProperty("isError")
  const again = await client.call("context_suggest", { current_file: "src/token.ts" })
  expect(again.structuredContent).toMatchObject({ suggestions: [] })
  const nothing = await client.call("context_suggest", { error: "zebra: no stripes" })
  expect(nothing.content[0]!.text).toMatch(/^No suggestions here\.\n(?:note: .*\n)?next: .*dex_search \{/)
  client.child.stdin!.end()
  await client.exited
})
