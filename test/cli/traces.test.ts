import { spawn } from "node:child_process"
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { addsUp } from "../../src/core/trace.ts"
import { shellOnTerminal } from "../integrations/terminal.ts"
import { DEX } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { synced } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const AUTH = "claude_code:11111111-1111-4111-8111-111111111111"
const SIDEBAR = "claude_code:22222222-2222-4222-8222-222222222222"

const json = async (home: string, args: string[], env: Record<string, string> = {}) =>
  JSON.parse((await dex(home, [...args, "--json"], env)).stdout)
const newest = async (home: string) => (await json(home, ["trace"])).trace
const folder = (home: string) => join(home, ".dex", "traces")

function bytesOf(home: string, below = ""): string {
  return readdirSync(join(home, ".dex", below), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    .join("\n")
}

describe("tracing", () => {
  test("a search: its query, its place, its inputs, and every row with the parts of its score", async () => {
    const home = await synced()
    const found = await json(home, ["search", "refresh token", "--project", "api", "-l", "3"])
    const trace = await newest(home)
    expect(trace).toMatchObject({
      trace_id: expect.stringMatching(/^T-[0-9a-f]{16}$/),
      ts: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      command: "search",
      query: "refresh token",
      args: { project: "api", limit: 3 },
      mode: found.mode,
      project: home,
      inputs: { index_is_current: true },
      budgets: { limit: 3 },
      state_revision: expect.stringMatching(/^[0-9a-f-]{36}@\d+$/),
      skipped_total: expect.any(Number),
    })
    expect(trace.error).toBe(undefined)
    expect(trace.duration_ms).toBeGreaterThan(0)
    expect(trace.ranking.map((row: { ref: string }) => row.ref.split("#")[0])).toEqual(
      found.results.map((hit: { id: string }) => hit.id),
    )
    expect(trace.ranking[0]).toMatchObject({ rank: 1, summary: "Refresh token race" })
    for (const row of trace.ranking) {
      expect(row.score_final).not.toBe(0)
      expect([row, addsUp(row)]).toEqual([row, true])
    }
  })

  test("a row number is recorded as the ref it meant", async () => {
    const home = await synced()
    for (const [command, args] of Object.entries({
      "show 2": { ids: [AUTH] },
      "scan 2": { id: AUTH },
      "read 2 1-2": { id: AUTH },
    })) {
      const run = await shellOnTerminal(home, ["dex list >/dev/null", `dex ${command} >/dev/null`])
      if (!run) return console.log("NOT RUN: rows on a terminal, which cannot be made here")
      expect(await newest(home)).toMatchObject({ args, ranking: [{ ref: AUTH }] })
      expect((await json(home, ["trace", "--replay"])).replay).toMatchObject({ same: true, unchanged: 1 })
    }
  })

  test("defaults are left out of the arguments", async () => {
    const home = await synced()
    await dex(home, ["search", "token", "--limit", "10", "--offset", "0"])
    expect((await newest(home)).args).toEqual({})
    await dex(home, ["show", `${AUTH}#5`, "--format", "stripped", "--max-tokens", "200"])
    expect(await newest(home)).toMatchObject({
      command: "get",
      args: { ids: [`${AUTH}#5`], max_tokens: 200 },
      budgets: { max_tokens: 200 },
      inputs: { conversations: 1 },
      ranking: [{ ref: AUTH, summary: "Refresh token race", terms: [] }],
      truncation: { messages_left_out: expect.any(Number) },
    })
    await dex(home, ["show", AUTH, "--expand", "4", "--before", "2", "--after", "1"])
    expect((await newest(home)).args).toEqual({ ids: [AUTH], expand: { message_index: 4, after: 1 } })
    await dex(home, ["timeline", "current#5"], { CLAUDE_CODE_SESSION_ID: AUTH.split(":")[1]! })
    expect(await newest(home)).toMatchObject({
      command: "timeline",
      args: { id: `${AUTH}#5` },
      ranking: [{ ref: AUTH }],
    })
  })

  test("errors and empty answers too, but not commands that only store or list", async () => {
    const home = await synced()
    await dex(home, ["show", "nothing"])
    await dex(home, ["search", "zebra"])
    await dex(home, ["reindex"])
    for (const command of ["list", "stats", "sources", "traces"]) await dex(home, [command])
    const { traces } = await json(home, ["traces"])
    expect(traces).toMatchObject([
      { command: "get", about: "nothing", hits: 0, error: "not_found" },
      { command: "search", about: "zebra", hits: 0 },
      { command: "reindex", hits: 0 },
    ])
    expect((await json(home, ["trace", traces[0].trace_id])).trace.error).toEqual({
      code: "not_found",
      message: expect.stringMatching(/No conversation "nothing" was found/),
    })
  })

  test("a secret in the query, an argument or an error reaches no file", async () => {
    const home = await synced()
    const secret = `ghp_${"Ab3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"}`
    await dex(home, ["search", `why does ${secret} fail`, "--file", secret])
    await dex(home, ["show", secret])
    expect(await json(home, ["traces"])).toMatchObject({
      traces: [{ about: expect.stringMatching(/^why does \[REDACTED:.*\] fail$/) }, { error: "not_found" }],
    })
    expect(bytesOf(home)).not.toContain(secret)
    const { replay, notes } = await json(home, ["trace", (await json(home, ["traces"])).traces[0].trace_id, "--replay"])
    expect(replay.same).toBe(true)
    expect(notes.join()).toMatch(/was redacted when it was recorded/)
  })

  test("DEX_TRACES=off writes nothing, and a command succeeds even if its trace cannot be written", async () => {
    const home = await synced()
    expect((await dex(home, ["search", "mutex"], { DEX_TRACES: "off" })).code).toBe(0)
    expect((await dex(home, ["show", "nothing"], { DEX_TRACES: "off" })).code).toBe(2)
    writeFileSync(join(home, ".dex", "config.json"), '{ "traces": false }')
    await dex(home, ["search", "mutex"])
    expect(existsSync(folder(home))).toBe(false)
    await dex(home, ["search", "mutex"], { DEX_TRACES: "on" })
    expect(existsSync(folder(home))).toBe(true)
    rmSync(folder(home), { recursive: true })
    writeFileSync(join(home, ".dex", "config.json"), "{ torn")
    writeFileSync(folder(home), "in the way")
    expect(await dex(home, ["search", "mutex"])).toMatchObject({ code: 0, stdout: expect.stringContaining("mutex") })
    expect((await dex(home, ["show", "nothing"])).stderr).toMatch(/No conversation "nothing" was found/)
    rmSync(folder(home))
    await dex(home, ["search", "mutex"])
    expect(statSync(folder(home)).mode & 0o777).toBe(0o700)
  })

  test("a pipe that closes early does not lose the trace", async () => {
    const home = await synced()
    const child = spawn(process.execPath, [DEX, "search", "token"], {
      env: { PATH: process.env.PATH ?? "", HOME: home },
      stdio: ["ignore", "pipe", "ignore"],
      cwd: home,
    })
    child.stdout.destroy()
    await new Promise((resolve) => child.on("exit", resolve))
    expect(await newest(home)).toMatchObject({ command: "search", query: "token" })
  })
})

describe("dex trace and dex trace --list", () => {
  test("list the last ones, newest last, and explain one as a sum", async () => {
    const home = await synced()
    for (const word of ["token", "theme", "mutex"]) await dex(home, ["search", word])
    const run = await dex(home, ["traces", "--limit", "2"])
    expect(run.stdout.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/^T-[0-9a-f]{16} {2}\d{4}-\d\d-\d\d \d\d:\d\d {2}search +theme +1 hit +\d+ ms$/),
      expect.stringMatching(/^T-[0-9a-f]{16} .* search +mutex +1 hit +\d+ ms$/),
    ])
    expect(run.stderr).toMatch(/The last 2 traces, newest last/)
    const id = run.stdout.split("\n")[1]!.slice(0, 10)
    const one = await dex(home, ["trace", id])
    expect(one.stdout).toMatch(/^T-[0-9a-f]{16} {2}search "mutex"$/m)
    expect(one.stdout).toMatch(new RegExp(`^ {2}1 {2}${AUTH}#7\\b`, "m"))
    expect(one.stdout).toMatch(/^ {5}Refresh token race$/m)
    const [, sum, total] = /^ {5}(.*) = (-?[\d.]+)$/m.exec(one.stdout)!
    const parts = [...sum!.matchAll(/(− )?[^\s]+ ([\d.]+)/g)].map(
      ([, minus, value]) => (minus ? -1 : 1) * Number(value),
    )
    expect(parts.reduce((a, b) => a + b, 0)).toBeCloseTo(Number(total), 2)
    expect((await json(home, ["trace", id])).adds_up).toBe(true)
  })

  test("say so when there is nothing, no such trace, or several", async () => {
    const home = await synced()
    expect(await dex(home, ["traces"])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/There are no traces yet/),
    })
    expect((await dex(home, ["trace"])).stderr).toMatch(/There are no traces yet/)
    await dex(home, ["search", "token"])
    await dex(home, ["search", "theme"])
    expect(await dex(home, ["trace", "T-xyz"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/No trace "T-xyz" was found. `dex trace --list` lists them/),
    })
    expect((await dex(home, ["trace", "T-"])).stderr).toMatch(/matches several traces: T-[0-9a-f]{16}, T-[0-9a-f]{16}/)
  })

  test("a wrong sum is reported, not shown as if it were right", async () => {
    const home = await synced()
    await dex(home, ["search", "mutex"])
    const [file] = readdirSync(folder(home)).map((name) => join(folder(home), name))
    const trace = JSON.parse(readFileSync(file!, "utf8").trim())
    trace.ranking[0].terms[0].value += 1
    writeFileSync(file!, `${JSON.stringify(trace)}\n`)
    const run = await dex(home, ["trace"])
    expect(run.stdout).toMatch(/ ≠ /)
    expect(run.stderr).toMatch(/do not add up/)
    expect((await json(home, ["trace"])).adds_up).toBe(false)
  })

  test("replay says that nothing changed, and later what came, went and moved", async () => {
    const home = await synced()
    await dex(home, ["search", "token", "--limit", "2"])
    const id = (await newest(home)).trace_id
    expect((await json(home, ["trace", id, "--replay"])).replay).toMatchObject({
      same: true,
      came: [],
      went: [],
      moved: [],
      unchanged: 2,
    })
    expect((await dex(home, ["trace", id, "--replay"])).stdout).toMatch(/the same rows from the same history/)
    claudeSession(home, {
      id: "77777777-7777-4777-8777-777777777777",
      start: "2026-11-12T09:00:00Z",
      title: "token token token",
      turns: [{ user: "token token token token" }, { assistant: "token" }],
    })
    await syncHome(home)
    const { replay, trace } = await json(home, ["trace", id, "--replay"])
    expect(replay.same).toBe(false)
    expect(replay.state_revision).not.toBe(trace.state_revision)
    expect(replay.came).toMatchObject([{ ref: expect.stringMatching(/^claude_code:77777777/), rank: 1 }])
    expect(replay.came.length + replay.moved.length + replay.unchanged).toBe(2)
    expect(replay.went.length + replay.moved.length + replay.unchanged).toBe(2)
    const run = await dex(home, ["trace", id, "--replay"])
    expect(run.stdout).toMatch(/Run again: other rows from history/)
    expect(run.stdout).toMatch(/^came {2}at 1 +claude_code:77777777/m)
    expect(run.stdout).toMatch(/^went {2}from 2/m)
    expect((await json(home, ["traces"])).traces.length).toBe(1) // looking at a trace leaves none
  })

  test("replay notices that a conversation has grown", async () => {
    const home = await synced()
    await dex(home, ["show", SIDEBAR])
    const path = join(home, ".claude", "projects", "-code-web", `${SIDEBAR.split(":")[1]}.jsonl`)
    const [line] = readFileSync(path, "utf8").split("\n")
    appendFileSync(
      path,
      `${JSON.stringify({ ...JSON.parse(line!), uuid: "later", message: { role: "user", content: "more" } })}\n`,
    )
    await syncHome(home)
    expect((await json(home, ["trace", "--replay"])).replay).toMatchObject({
      same: false,
      unchanged: 1,
      counts: [{ name: "messages", before: 2, now: 3 }],
    })
    expect((await dex(home, ["trace", "--replay"])).stdout).toContain("messages: 2 then, 3 now")
  })

  test("replay shows an error again, and does not repeat commands that change the history", async () => {
    const home = await synced()
    await dex(home, ["show", "77777777"])
    expect((await json(home, ["trace", "--replay"])).replay).toMatchObject({ same: true, error: { code: "not_found" } })
    await dex(home, ["reindex"])
    expect(await dex(home, ["trace", "--replay"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/A trace of reindex cannot be replayed/),
    })
  })

  test("an answer and a suggestion leave redacted traces, which are forgotten with their sources", async () => {
    const DECIDED = "claude_code:66666666-6666-4666-8666-666666666666"
    let cwd = ""
    const home = await synced((dir) => {
      cwd = join(dir, "acme")
      mkdirSync(join(cwd, "src"), { recursive: true })
      const input = { file_path: join(cwd, "src/auth.ts"), old_string: "refresh()", new_string: "refresh(lock)" }
      const user = "the wombat token should always expire within the hour of its region, see src/auth.ts"
      const turns = [{ user }, { tool: { name: "Edit", input, output: "updated" } }]
      claudeSession(dir, { id: DECIDED.split(":")[1]!, cwd, start: "2026-11-04T10:00:00Z", turns })
    })
    const secret = `ghp_${"A1b2C3d4E5".repeat(4).slice(0, 36)}`
    const answer = await json(home, ["ask", "why does the second request wait for the refresh", "--use-case", secret])
    const recorded = await newest(home)
    expect(recorded).toMatchObject({ command: "ask", mode: "quotes", args: { use_case: "[REDACTED:github-token]" } })
    expect(recorded.ranking.map(({ ref }: { ref: string }) => ref)).toEqual(
      answer.sources.map(({ ref }: { ref: string }) => ref),
    )
    expect(JSON.stringify(recorded)).toContain(AUTH)
    // The first suggestion in a project learns from its conversations.
    for (let i = 0; i < 2; i++) await json(home, ["suggest", "--project", cwd, "--file", join(cwd, "src/auth.ts")])
    const suggested = await newest(home)
    expect(suggested).toMatchObject({ command: "suggest", args: { project_id: cwd } })
    expect(JSON.stringify(suggested.ranking)).toContain(DECIDED)
    expect(suggested.ranking.every(addsUp)).toBe(true)
    expect((await dex(home, ["traces"])).stdout).toMatch(/ask .*source[\s\S]*suggest .*hit/)
    expect((await dex(home, ["trace", suggested.trace_id, "--replay"])).stderr).toContain("cannot be replayed")
    expect(bytesOf(home)).not.toContain(secret)
    for (const ref of [AUTH, DECIDED]) expect((await dex(home, ["forget", ref, "--yes"])).code).toBe(0)
    const left = (await json(home, ["traces"])).traces.map(({ command }: { command: string }) => command)
    expect(left).not.toContain("ask")
    expect(left).not.toContain("suggest")
    expect(bytesOf(home, "traces")).not.toMatch(/11111111-1111|66666666-6666/)
  })

  test("forgetting a conversation removes its traces from every file, and leaves the others", async () => {
    const home = await synced()
    await dex(home, ["search", "mutex"])
    await dex(home, ["search", "theme"])
    await dex(home, ["show", "11111111"])
    expect(bytesOf(home)).toMatch(/11111111-1111-4111.*Refresh token race/)
    expect((await dex(home, ["forget", AUTH, "--yes"])).code).toBe(0)
    expect(bytesOf(home)).not.toMatch(/mutex|Refresh token/)
    expect(bytesOf(home, "traces")).not.toContain("11111111")
    expect((await json(home, ["traces"])).traces).toMatchObject([{ about: "theme" }])
  })

  test("a query in a private project, or a hit in one, is shown only there", async () => {
    const home = tempDir()
    const project = join(home, "acme")
    mkdirSync(project)
    claudeSession(home, {
      id: "55555555-5555-4555-8555-555555555555",
      cwd: project,
      start: "2026-11-01T00:00:00Z",
      title: "the acme invoice",
      turns: [{ user: "the acme invoice format" }],
    })
    await syncHome(home)
    const inside = (args: string[]) =>
      new Promise<string>((resolve) => {
        const child = spawn(process.execPath, [DEX, ...args], {
          env: { PATH: process.env.PATH ?? "", HOME: home, NO_COLOR: "1" },
          cwd: project,
        })
        let out = ""
        child.stdout.on("data", (data) => {
          out += data
        })
        child.on("close", () => resolve(out))
      })
    await dex(home, ["search", "invoice"])
    await inside(["search", "invoice secretly"])
    await dex(home, ["private", project])
    const listed = await dex(home, ["traces"])
    expect(listed.stdout).not.toContain("secretly")
    expect(listed.stderr).toMatch(/1 of the latest traces were made in private projects/)
    expect(await inside(["traces"])).toContain("invoice secretly")
    const outside = await json(home, ["trace"])
    expect(outside.trace).toMatchObject({ query: "invoice", ranking: [{ summary: "(private)" }] })
    expect(outside.notes.join()).toMatch(/the content of 1 row from private projects/)
    const [, hidden] = JSON.parse(await inside(["traces", "--json"])).traces
    expect((await dex(home, ["trace", hidden.trace_id])).stderr).toMatch(/made in a private project/)
    expect(await inside(["trace", hidden.trace_id])).toContain("the acme invoice")
  })

  test("nothing in a trace reaches the terminal as a control sequence", async () => {
    const home = tempDir()
    const hostile = "\u001b[2J\u001b]0;owned\u0007 \u009b31m \u202egnp.exe zebra \r overwritten"
    claudeSession(home, {
      id: "66666666-6666-4666-8666-666666666666",
      start: "2026-11-01T00:00:00Z",
      title: hostile,
      turns: [{ user: hostile }],
    })
    await syncHome(home)
    await dex(home, ["search", `zebra ${hostile.replaceAll("\0", "")}`])
    for (const args of [["traces"], ["trace"], ["trace", "--replay"], ["traces", "--json"], ["trace", "--json"]]) {
      const run = await dex(home, args)
      expect(run.stdout).toContain("zebra")
      expect([args, /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/.test(run.stdout)]).toEqual([
        args,
        false,
      ])
    }
  })
})
