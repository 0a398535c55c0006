// Runs in Node for Windows, without any development tools. Started by `npm run test:windows`.
import assert from "node:assert/strict"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative } from "node:path"
import { createInterface } from "node:readline"
import { pathToFileURL } from "node:url"
import type * as Killing from "../../src/git/run.ts"

const SOURCE = join(import.meta.dirname, "..", "..", "src")
const [DEX, FOLDER] = process.argv.slice(2) as [string, string]
const WORK = mkdtempSync(join(tmpdir(), "dex checks "))
const children: ChildProcess[] = []

const MANY = 400
/** More than the two seconds that dex promises, because the machine may be busy. */
const END_WITHIN_MS = 10_000
const ERROR = "TypeError: quokkaword is not a function"
/** The input that Claude Code sends to a hook after a command failed. */
const failure = (session: string) =>
  JSON.stringify({
    session_id: session,
    cwd: project(),
    hook_event_name: "PostToolUseFailure",
    tool_name: "Bash",
    tool_input: { command: "npm test" },
    error: `Exit code 1\n${ERROR}`,
  })
const SPEAK = { DEX_HOOK_MS: "900", DEX_PROACTIVE_MODE: "speak" }

type Run = { code: number | null; stdout: string; stderr: string }

let home = ""
/** Copies one of the prepared homes, and uses the copy as the home. */
function begin(name: string): void {
  home = mkdtempSync(join(WORK, `${name}-`))
  cpSync(join(FOLDER, name), home, { recursive: true })
}

/** Begins with the home in which an error was solved, with its paths changed to a project on this machine. */
function beginSolved(): void {
  begin("solved")
  mkdirSync(project(), { recursive: true })
  const folder = join(home, ".claude", "projects", "-home-dev-proj")
  for (const name of readdirSync(folder)) {
    const text = readFileSync(join(folder, name), "utf8")
    const asHere = (path: string) => JSON.stringify(join(project(), path)).slice(1, -1)
    writeFileSync(
      join(folder, name),
      text.replaceAll("/home/dev/proj/src/token.ts", asHere("src/token.ts")).replaceAll("/home/dev/proj", asHere("")),
    )
  }
}

const project = () => join(home, "my project")

function environment(more: Record<string, string> = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(HOME|DEX_|XDG_|CLAUDE|CODEX|GEMINI)/i.test(name))
  const roaming = join(home, "AppData", "Roaming")
  return { ...Object.fromEntries(kept), USERPROFILE: home, APPDATA: roaming, TZ: "UTC", ...more }
}

type Start = {
  input?: string
  env?: Record<string, string>
  cwd?: string
  /** Passes the arguments to the command line without quoting. */
  asTyped?: boolean
}

function start(program: string, args: string[], more: Start = {}): Run {
  const run = () =>
    spawnSync(program, args, {
      env: environment(more.env),
      cwd: more.cwd ?? home,
      encoding: "utf8",
      input: more.input ?? "",
      timeout: 60_000,
      maxBuffer: 64 << 20,
      windowsVerbatimArguments: more.asTyped ?? false,
    })
  let ended = run()
  // On a busy machine Wine sometimes creates no process, so nothing ran. This tries once more, and logs it.
  if (codeOf(ended.error) === "UNKNOWN" && ended.pid === 0) {
    console.log(`AGAIN   Wine made no process for ${args.join(" ")}`)
    ended = run()
  }
  const { status, stdout, stderr, error } = ended
  if (error) throw error
  return { code: status, stdout, stderr }
}

function codeOf(error: Error | undefined): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code
}

function dex(args: string[], more: Start = {}): Run {
  return start(process.execPath, [DEX, ...args], more)
}

type Row = { kind: string; id: string; title: string; project: string; source: string; message_count: number }
/** The fields of the commands' JSON that the checks read. */
type Answer = {
  read: number
  added_messages: number
  total: number
  total_conversations: number
  total_messages: number
  mode: string
  ok: boolean
  checks: { name: string; status: string; message: string }[]
  conversations: Row[]
  results: Row[]
  sources: { source: string; found: number; kept: number; unreadable: unknown[] }[]
}

/** The JSON of a command that must succeed. */
function json(...args: string[]): Answer {
  const { code, stdout, stderr } = dex([...args, "--json"])
  assert.equal(code, 0, `dex ${args.join(" ")} ended with ${code}: ${stderr}`)
  return JSON.parse(stdout.trim().split("\n").at(-1)!) as Answer
}

type Reply = {
  id: number
  result?: { serverInfo: { name: string }; structuredContent: Answer; isError?: boolean }
  error?: unknown
}
type Server = { call(name: string, input: object): Promise<Answer>; end(): Promise<void> }

/** A real MCP server, started like agents start it: with pipes and without a shell. */
async function serve(command = [process.execPath, DEX, "serve"]): Promise<Server> {
  const child = spawn(command[0]!, command.slice(1), { env: environment(), cwd: home, stdio: ["pipe", "pipe", "pipe"] })
  children.push(child)
  const waiting = new Map<number, (reply: Reply) => void>()
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve))
  createInterface({ input: child.stdout }).on("line", (line) => {
    const reply = JSON.parse(line) as Reply
    waiting.get(reply.id)?.(reply)
  })
  let next = 1
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
  const request = (method: string, params: object) =>
    new Promise<Reply>((resolve, reject) => {
      const id = next++
      waiting.set(id, resolve)
      child.once("error", reject)
      ended.then((code) => reject(new Error(`the server ended with ${code}`)))
      send({ id, method, params })
    })
  const clientInfo = { name: "checks", version: "1" }
  const greeted = await request("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo })
  assert.equal(greeted.result?.serverInfo.name, "dex")
  send({ method: "notifications/initialized" })
  return {
    call: async (name, input) => {
      const { result, error } = await request("tools/call", { name, arguments: input })
      assert.ok(result && !result.isError, JSON.stringify(error ?? result))
      return result.structuredContent
    },
    end: async () => {
      const closed = performance.now()
      child.stdin.end()
      await ended
      assert.ok(performance.now() - closed < END_WITHIN_MS, "it did not end in time")
    },
  }
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  const deadline = Date.now() + 30_000
  while (!isSo()) {
    if (Date.now() > deadline) throw new Error(`${what}: not within 30 s`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Returns the reason if the check was not run. */
type Check = () => undefined | string | Promise<undefined | string>
const checks: [title: string, work: Check][] = []
const check = (title: string, work: () => unknown) => checks.push([title, work as Check])

/** The agents that have data in the prepared homes. */
const AT_HOME = ["claude_code", "codex", "cursor", "gemini_cli", "opencode", "pi"]

check("a sync reads all agents, with the same result as on Linux", () => {
  begin("agents")
  assert.ok(json("sync").read >= 50)
  const listed = json("list", "--all", "--limit", "1000")
  const sources = new Set(listed.conversations.map(({ source }) => source))
  assert.deepEqual([...sources].sort(), AT_HOME)
  const expected = join(FOLDER, "expected.json")
  if (!existsSync(expected)) return
  const brief = ({ conversations }: Answer) =>
    conversations.map(({ id, title, project, message_count }) =>
      // One fixture names its folder by another system's URI, which is not converted to a path here.
      [id, title, id === "cursor:linked" ? "" : project, message_count].join(" "),
    )
  assert.deepEqual(brief(listed).sort(), brief(JSON.parse(readFileSync(expected, "utf8"))).sort())
})

check("a second sync reads nothing", () => {
  const { read, added_messages } = json("sync")
  assert.deepEqual({ read, added_messages }, { read: 0, added_messages: 0 })
})

check("sources, list, search, show and stats answer", () => {
  const { sources } = json("sources")
  for (const { source, found, kept, unreadable } of sources.filter(({ source }) => !source.startsWith("dex_"))) {
    const isHere = AT_HOME.includes(source)
    assert.ok(isHere ? found > 0 && kept > 0 : found + kept === 0, `${source}: ${found} found, ${kept} kept`)
    assert.deepEqual(unreadable, [])
  }
  assert.match(dex(["list", "--all"]).stdout, /Scripted title .* proj .* opencode/)
  const { results, mode } = json("search", "flaky date test")
  assert.equal(mode, "lexical")
  assert.match(results[0]!.id, /^cursor:/)
  assert.match(dex(["show", results[0]!.id]).stdout, /Depends on the timezone|Fix the flaky date test/)
  const { total, conversations } = json("list", "--all", "--limit", "1000")
  assert.equal(total, conversations.length)
  assert.equal(json("stats").total_conversations, conversations.filter(({ kind }) => kind === "person").length)
})

check("doctor finds no problem", () => {
  const { ok, checks: found } = json("doctor")
  assert.ok(ok, JSON.stringify(found))
  assert.match(found[0]!.message, /win32/)
  assert.ok(!/by you only/.test(JSON.stringify(found)), "it claims rights that it did not look at")
})

check("documents are added, searched and read", () => {
  const docs = join(home, "notes", "guides")
  mkdirSync(docs, { recursive: true })
  writeFileSync(join(docs, "Übersicht.md"), "# Deploying\r\n\r\nThe wallabyword goes first.\r\n")
  const added = dex(["docs", "add", "notes", "--name", "notes", "--global"])
  assert.equal(added.code, 0, added.stderr)
  const { results } = json("search", "wallabyword")
  assert.match(results[0]!.id, /^docs:notes\/guides\/Übersicht\.md/)
  assert.match(dex(["docs", "outline", "notes/guides/Übersicht.md"]).stdout, /Deploying/)
})

check("serve answers over pipes, finds conversations, and ends when its input ends", async () => {
  const server = await serve()
  const { results } = await server.call("dex_search", { query: "flaky date test" })
  assert.match(results[0]!.id, /^cursor:/)
  await server.end()
})

check("reindex and an open server both continue, and the server finds what is read later", async () => {
  const server = await serve()
  assert.match((await server.call("dex_search", { query: "flaky date test" })).results[0]!.id, /^cursor:/)
  for (let i = 0; i < 3; i++) {
    // The server syncs when it is called, and the index cannot be rebuilt during a sync.
    let run: Run
    do run = dex(["reindex"])
    while (/Another dex (?:process )?is syncing/.test(run.stderr))
    assert.equal(run.code, 0, run.stderr)
    assert.match((await server.call("dex_search", { query: "flaky date test" })).results[0]!.id, /^cursor:/)
  }
  cpSync(join(FOLDER, "solved"), home, { recursive: true })
  json("sync")
  assert.match((await server.call("dex_search", { query: "quokkaword" })).results[0]!.id, /^claude_code:/)
  await server.end()
  assert.ok(json("doctor").ok)
  assert.deepEqual(
    readdirSync(join(home, ".dex")).filter((name) => /building|\.old/.test(name)),
    [],
  )
})

check("forget leaves no byte of a conversation, and it is not read again", () => {
  beginSolved()
  json("sync")
  const { id } = json("list", "--all").conversations[0]!
  assert.equal(dex(["forget", id, "--yes"]).code, 0)
  assert.equal(json("sync").added_messages, 0)
  const listed = dex(["list", "--all", "--json"])
  assert.deepEqual([listed.code, JSON.parse(listed.stdout).total], [1, 0])
  for (const name of readdirSync(join(home, ".dex")))
    if (/\.db/.test(name)) assert.ok(!readFileSync(join(home, ".dex", name)).includes("quokka"), name)
})

check("gc ends without an error", () => {
  const { code, stderr } = dex(["gc"])
  assert.equal(code, 0, stderr)
})

check("suggest and the hook show what solved an error", () => {
  beginSolved()
  json("sync")
  assert.match(JSON.stringify(json("suggest", "--error", ERROR, "--project", "my project")), /src\/token\.ts/)
  const spoken = heard((session) =>
    dex(["hook", "claude_code", "PostToolUseFailure"], { input: failure(session), env: SPEAK }),
  )
  assert.match(JSON.parse(spoken).hookSpecificOutput.additionalContext, /fix: .*token\.ts/)
})

check("a private project is one project in every spelling of its path", () => {
  beginSolved()
  json("sync")
  const hidden = dex(["private", "MY PROJECT"])
  assert.equal(hidden.code, 0, hidden.stderr)
  const found = (cwd: string) => dex(["search", "quokkaword", "--json"], { cwd }).code === 0
  assert.ok(!found(home), "it was told elsewhere")
  for (const cwd of [project(), project().toUpperCase(), project().toLowerCase().replaceAll("\\", "/")])
    assert.ok(found(cwd), `it was not told in ${cwd}`)
  const folder = join(home, ".claude", "projects", "-home-dev-proj")
  const spelled = JSON.stringify(project()).slice(1, -1)
  const text = readFileSync(join(folder, readdirSync(folder)[0]!), "utf8")
    .replaceAll("11111111-2222", "99999999-2222")
    .replaceAll(/"u(\d+)"/g, '"v$1"')
    .replaceAll(spelled, spelled.toUpperCase())
  writeFileSync(join(folder, "99999999-2222-4333-8444-555555555555.jsonl"), text)
  assert.ok(json("sync").added_messages > 0)
  assert.ok(!found(home), "its other spelling was told elsewhere")
  assert.equal(json("stats").total_conversations, 2)
  const suggested = dex(["suggest", "--file", "SRC\\TOKEN.TS", "--json"], { cwd: project() })
  assert.match(suggested.stdout, /99999999-2222|11111111-2222/)
})

check("a sync that is killed loses nothing, and the next one reads the rest", async () => {
  begin("many")
  const child = spawn(process.execPath, [DEX, "sync"], { env: environment(), cwd: home, stdio: "ignore" })
  children.push(child)
  const ended = new Promise<boolean>((resolve) => child.once("exit", (_, signal) => resolve(signal !== null)))
  const wal = join(home, ".dex", "history.db-wal")
  // The empty tables are 160 kB.
  await until("something was stored", () => (statSync(wal, { throwIfNoEntry: false })?.size ?? 0) > 400_000)
  child.kill("SIGKILL")
  assert.ok(await ended, "it had ended before it could be killed")
  const before = json("stats").total_conversations
  assert.ok(before < MANY, `all ${before} were read before it was killed`)
  json("sync")
  const { total_conversations, total_messages } = json("stats")
  assert.deepEqual({ total_conversations, total_messages }, { total_conversations: MANY, total_messages: MANY * 20 })
  assert.ok(json("doctor").ok)
})

/** Like `beginSolved`, with settings of every agent. */
function beginWired(): void {
  beginSolved()
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), text)
  }
  put(".claude.json", '{\r\n  "numStartups": 4\r\n}\r\n')
  put(".codex/config.toml", 'model = "x"\r\n')
  put(".gemini/settings.json", "{}")
  put(".cursor/mcp.json", "{}")
  put(".copilot/config.json", "{}")
  put(".config/opencode/opencode.json", "{}")
  put(".config/opencode/node_modules/.keep", "")
  put(".config/opencode/package-lock.json", '{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"1.18.33"}}}}')
  put("AppData/Roaming/Code/User/settings.json", "{}")
  json("sync")
  json("fix", ERROR)
}

/** Every file below a folder except dex's own, with its content. */
function filesOf(folder: string): Map<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = files.map((entry) => relative(home, join(entry.parentPath, entry.name)))
  return new Map(
    paths.filter((path) => !path.startsWith(".dex")).map((path) => [path, readFileSync(join(home, path), "utf8")]),
  )
}

type Entry = { command: string; args?: string[] }
const settingsOf = (path: string) => JSON.parse(readFileSync(join(home, path), "utf8"))

/** The commands of a file's hooks, by event. */
function hooksIn(path: string): (Entry & { event: string })[] {
  const hooks = settingsOf(path).hooks as Record<string, { hooks: Entry[] }[]>
  return Object.entries(hooks).flatMap(([event, items]) =>
    items.flatMap((item) => item.hooks.map((hook) => ({ event, ...hook }))),
  )
}

/** The words that PowerShell reads from `& 'a' 'b' c`. */
function powershellWords(command: string): string[] {
  assert.match(command, /^& /)
  return [...command.slice(2).matchAll(/'((?:[^']|'')*)'|(\S+)/g)].map(([, quoted, bare]) =>
    quoted === undefined ? bare! : quoted.replaceAll("''", "'"),
  )
}

/** The hook's output. On a busy machine a hook may end before it prints anything, so this retries with another session. */
function heard(ask: (session: string) => Run): string {
  for (let i = 0; i < 20; i++) {
    const { code, stdout } = ask(`session ${Math.random()} ${i}`)
    assert.equal(code, 0)
    if (stdout.trim() !== "") return stdout
  }
  throw new Error("Nothing was said, 20 times.")
}

let untouched: Map<string, string>

check("processes that git started end with it", async () => {
  if (!/\/t\b/i.test(start("taskkill", ["/?"]).stdout)) return "Wine's taskkill knows no /t"
  begin("solved")
  const pids = join(home, "pids.txt")
  const sleeps = "setTimeout(() => {}, 60000)"
  const starts = `require("fs").appendFileSync(${JSON.stringify(pids)}, process.pid + "\\n")`
  const grandchild = `${starts}; ${sleeps}`
  const middle = `${starts}; require("child_process").spawn(process.execPath, ["-e", ${JSON.stringify(grandchild)}], { detached: true, stdio: "ignore" }); ${sleeps}`
  const child = spawn(process.execPath, ["-e", middle], { stdio: "ignore", windowsHide: true })
  children.push(child)
  const ended = new Promise((resolve) => child.once("exit", resolve))
  const started = () => (existsSync(pids) ? readFileSync(pids, "utf8").trim().split("\n").map(Number) : [])
  await until("both have started", () => started().length === 2)
  const { killProcessTree } = (await import(pathToFileURL(join(SOURCE, "git", "kill-tree.ts")).href)) as typeof Killing
  killProcessTree(child)
  await ended
  await until("the grandchild is gone", () => !started().some(isThere))
})

check("a git.exe in the folder in which dex runs is not used as git", () => {
  begin("solved")
  const other = join(process.env.SystemRoot ?? "C:\\Windows", "System32", "hostname.exe")
  cpSync(other, join(home, "git.exe"))
  const env = { PATH: join(process.env.SystemRoot ?? "C:\\Windows", "System32") }
  const { stdout, stderr } = dex(["docs", "add", "https://git.invalid/x.git", "--name", "x"], { env })
  assert.match(stdout + stderr, /git cannot be started/)
})

check("install writes complete files, and each agent's server starts without a shell", async () => {
  beginWired()
  untouched = filesOf(home)
  const { code, stdout, stderr } = dex(["install", "--yes"])
  assert.equal(code, 0, stdout + stderr)
  const written = [...filesOf(home)].filter(([path, text]) => untouched.get(path) !== text)
  assert.deepEqual(
    written.filter(([, text]) => text.trim() === ""),
    [],
  )
  const toml = readFileSync(join(home, ".codex/config.toml"), "utf8")
  const inToml = (name: string) => JSON.parse(new RegExp(`^${name} = (.*)$`, "m").exec(toml)![1]!)
  const opencode = settingsOf(".config/opencode/opencode.json").mcp.dex.command as string[]
  const servers: Entry[] = [
    settingsOf(".claude.json").mcpServers.dex,
    { command: inToml("command"), args: inToml("args") },
    { command: opencode[0]!, args: opencode.slice(1) },
    settingsOf(".gemini/settings.json").mcpServers.dex,
    settingsOf(".cursor/mcp.json").mcpServers.dex,
    settingsOf("AppData/Roaming/Code/User/mcp.json").servers.dex,
    settingsOf(".copilot/mcp-config.json").mcpServers.dex,
  ]
  for (const { command, args } of servers)
    assert.deepEqual({ command, args }, { command: servers[0]!.command, args: servers[0]!.args })
  const server = await serve([servers[0]!.command, ...servers[0]!.args!])
  assert.match((await server.call("dex_search", { query: "quokkaword" })).results[0]!.id, /^claude_code:/)
  await server.end()
  const checked = dex(["install", "--check"])
  assert.equal(checked.code, 0, checked.stdout + checked.stderr)
})

check("Claude Code's hooks are programs with arguments that print what dex knows and read what is new", async () => {
  const hooks = hooksIn(".claude/settings.json")
  for (const { command, args } of hooks) assert.ok(args !== undefined && /node\.exe$/i.test(command))
  const [failed] = hooks.filter(({ event }) => event === "PostToolUseFailure")
  const said = heard((session) => start(failed!.command, failed!.args!, { input: failure(session), env: SPEAK }))
  assert.match(JSON.parse(said).hookSpecificOutput.additionalContext, /fix: .*token\.ts/)
  assert.match(said, /^[\x20-\x7e]*$/)

  const [ended] = hooks.filter(({ event }) => event === "SessionEnd")
  const folder = join(home, ".claude", "projects", "-home-dev-proj")
  const [first] = readdirSync(folder)
  const other = readFileSync(join(folder, first!), "utf8")
    .replaceAll("11111111-2222", "99999999-2222")
    .replaceAll("quokka", "numbat")
    .replaceAll(/"u(\d+)"/g, '"v$1"')
  writeFileSync(join(folder, "99999999-2222-4333-8444-555555555555.jsonl"), other)
  const { code, stdout, stderr } = start(ended!.command, ended!.args!, { input: "{}" })
  assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: "", stderr: "" })
  await until("the sync behind the hook", () => dex(["search", "numbatword", "--json"]).code === 0)
})

check("Codex's hooks work in its shell, even with spaces in their path", () => {
  const hooks = hooksIn(".codex/hooks.json")
  assert.deepEqual(
    hooks.map(({ event }) => event),
    ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"],
  )
  const { command } = hooks.find(({ event }) => event === "PostToolUse")!
  const told = (session: string) =>
    JSON.stringify({ ...JSON.parse(failure(session)), tool_response: `${ERROR}\n    at x (src/token.ts:1:1)` })
  const ask = (line: string, session: string) =>
    start(process.env.COMSPEC ?? "cmd.exe", ["/d", "/s", "/c", line], {
      input: told(session),
      env: SPEAK,
      asTyped: true,
    })
  assert.match(
    heard((session) => ask(`"${command}"`, session)),
    /token\.ts/,
  )
})

check("Gemini CLI's hooks are PowerShell calls of the same programs", () => {
  const hooks = hooksIn(".gemini/settings.json").map(({ event, command }) => ({
    event,
    words: powershellWords(command),
  }))
  for (const { words } of hooks) assert.ok(existsSync(words[0]!) && existsSync(words[1]!), words.join(" "))
  const [program, ...args] = hooks.find(({ event }) => event === "AfterTool")!.words
  const told = (session: string) =>
    JSON.stringify({
      ...JSON.parse(failure(session)),
      tool_name: "run_shell_command",
      tool_response: { llmContent: `Output: ${ERROR}\nExit Code: 1` },
    })
  assert.match(
    heard((session) => start(program!, args, { input: told(session), env: SPEAK })),
    /token\.ts/,
  )
})

check("OpenCode's plugin starts dex without a shell", async () => {
  const plugin = join(home, ".config/opencode/plugin/dex.js")
  const asking = join(home, "ask.mjs")
  writeFileSync(
    asking,
    `const { Dex } = await import(${JSON.stringify(pathToFileURL(plugin).href)})
const { "tool.execute.after": after } = await Dex({ directory: ${JSON.stringify(project())} })
const output = { output: ${JSON.stringify(ERROR)}, metadata: { exit: 1 } }
await after({ tool: "bash", sessionID: process.argv[2], args: { command: "npm test" } }, output)
process.stdout.write(output.output.slice(${ERROR.length}))`,
  )
  assert.match(
    heard((session) => start(process.execPath, [asking, session], { env: SPEAK })),
    /token\.ts/,
  )
})

check("the sub-agent's guard allows only commands that read", () => {
  const front = readFileSync(join(home, ".claude/agents/dex-retrieval.md"), "utf8")
  const command = JSON.parse(/^ +command: (.*)$/m.exec(front)![1]!) as string
  const args = JSON.parse(/^ +args: (.*)$/m.exec(front)![1]!) as string[]
  const shown = /\| list \| `dex_list` \| `(.*?) list --json`/.exec(front)![1]!
  const ask = (typed: string) =>
    start(command, args, { input: JSON.stringify({ tool_name: "Bash", tool_input: { command: typed } }) })
  const passed = ask(`${shown} search "two words" --json`)
  assert.equal(passed.code, 0, passed.stderr)
  assert.equal(JSON.parse(passed.stdout).hookSpecificOutput.permissionDecision, "allow")
  for (const typed of [
    `${shown} forget 1 --yes`,
    `${shown} list; calc`,
    `${shown} list > x`,
    "calc",
    `${shown} list $(calc)`,
  ])
    assert.equal(ask(typed).code, 2, typed)
})

check("uninstall restores every file", () => {
  const { code, stdout, stderr } = dex(["uninstall", "--yes"])
  assert.equal(code, 0, stdout + stderr)
  const left = filesOf(home)
  for (const path of [
    "ask.mjs",
    join(".claude", "projects", "-home-dev-proj", "99999999-2222-4333-8444-555555555555.jsonl"),
  ])
    left.delete(path)
  assert.deepEqual(left, untouched)
  assert.ok(!existsSync(join(home, ".dex", "bin")))
})

let [passed, failed] = [0, 0]
for (const [title, work] of checks) {
  const started = performance.now()
  try {
    const reason = await work()
    if (reason === undefined) passed++
    const took = `(${Math.round(performance.now() - started)} ms)`
    console.log(reason === undefined ? `ok      ${title} ${took}` : `NOT RUN ${title}: ${reason}`)
  } catch (error) {
    failed++
    console.log(`FAILED  ${title}\n${(error as Error).stack ?? error}`)
  }
}
for (const child of children) child.kill()
rmSync(WORK, { recursive: true, force: true, maxRetries: 10 })
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
