// Runs on Windows' Node, without any of the development tools: `npm run test:windows` starts it.
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
import { join } from "node:path"
import { createInterface } from "node:readline"

const [DEX, FOLDER] = process.argv.slice(2) as [string, string]
const WORK = mkdtempSync(join(tmpdir(), "dex checks "))
const children: ChildProcess[] = []

const MANY = 400
const ERROR = "TypeError: quokkaword is not a function"
/** What Claude Code tells a hook after a command failed. */
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
/** Starts in a copy of one of the homes that were made for this. */
function begin(name: string): void {
  home = mkdtempSync(join(WORK, `${name}-`))
  cpSync(join(FOLDER, name), home, { recursive: true })
}

/** The home with an error and what solved it, as of a project of this machine. */
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

function start(program: string, args: string[], more: { input?: string; env?: Record<string, string> } = {}): Run {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    env: environment(more.env),
    cwd: home,
    encoding: "utf8",
    input: more.input ?? "",
    timeout: 60_000,
    maxBuffer: 64 << 20,
  })
  if (error) throw error
  return { code: status, stdout, stderr }
}

function dex(args: string[], more: { input?: string; env?: Record<string, string> } = {}): Run {
  return start(process.execPath, [DEX, ...args], more)
}

type Row = { id: string; title: string; project: string; source: string; message_count: number }
/** What the checks look at of what commands answer. */
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

/** What a command answers, where it must succeed. */
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
type Server = { call(name: string, input: object): Promise<Answer>; end(): Promise<number | null> }

/** A real MCP server, started as agents start it: without a shell, with pipes. */
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
    end: () => {
      child.stdin.end()
      return ended
    },
  }
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  const deadline = Date.now() + 30_000
  while (!isSo()) {
    if (Date.now() > deadline) throw new Error(`${what}: not within 30 s`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const checks: [title: string, work: () => void | Promise<void>][] = []
const check = (title: string, work: () => void | Promise<void>) => checks.push([title, work])

check("a sync reads the five agents, and tells what it tells on Linux", () => {
  begin("agents")
  assert.ok(json("sync").read >= 50)
  const listed = json("list", "--all", "--limit", "1000")
  const sources = new Set(listed.conversations.map(({ source }) => source))
  assert.deepEqual([...sources].sort(), ["claude_code", "codex", "cursor", "gemini_cli", "opencode"])
  const expected = join(FOLDER, "expected.json")
  if (!existsSync(expected)) return
  const brief = ({ conversations }: Answer) =>
    conversations.map(({ id, title, project, message_count }) =>
      // One fixture names its folder by an address of another system, which stays an address here.
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
  for (const { source, found, kept, unreadable } of sources.filter(({ source }) => source !== "dex_chat")) {
    assert.ok(found > 0 && kept > 0, `${source}: ${found} found, ${kept} kept`)
    assert.deepEqual(unreadable, [])
  }
  assert.match(dex(["list", "--all"]).stdout, /Scripted title .* opencode .* proj/)
  const { results, mode } = json("search", "flaky date test")
  assert.equal(mode, "lexical")
  assert.match(results[0]!.id, /^cursor:/)
  assert.match(dex(["show", results[0]!.id]).stdout, /Depends on the timezone|Fix the flaky date test/)
  assert.equal(json("stats").total_conversations, json("list", "--all", "--limit", "1000").total)
})

check("doctor finds nothing wrong", () => {
  const { ok, checks: found } = json("doctor")
  assert.ok(ok, JSON.stringify(found))
  assert.match(found[0]!.message, /win32/)
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

check("serve answers over pipes, finds, and ends when its input ends", async () => {
  const server = await serve()
  const { results } = await server.call("dex_search", { query: "flaky date test" })
  assert.match(results[0]!.id, /^cursor:/)
  assert.equal(await server.end(), 0)
})

check("forget leaves no byte, and it is not read again", () => {
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

check("gc gives back what is not needed", () => {
  const { code, stderr } = dex(["gc"])
  assert.equal(code, 0, stderr)
})

check("suggest knows what solved an error, and the hook says so", () => {
  beginSolved()
  json("sync")
  assert.match(JSON.stringify(json("suggest", "--error", ERROR, "--project", "my project")), /src\/token\.ts/)
  const said = dex(["hook", "claude_code", "PostToolUseFailure"], { input: failure("one"), env: SPEAK })
  assert.deepEqual([said.code, said.stderr], [0, ""])
  assert.match(JSON.parse(said.stdout).hookSpecificOutput.additionalContext, /fix: .*token\.ts/)
})

check("a sync that is killed loses nothing, and the next one reads the rest", async () => {
  begin("many")
  const child = spawn(process.execPath, [DEX, "sync"], { env: environment(), cwd: home, stdio: "ignore" })
  children.push(child)
  const ended = new Promise<boolean>((resolve) => child.once("exit", (_, signal) => resolve(signal !== null)))
  const wal = join(home, ".dex", "history.db-wal")
  await until("something was stored", () => (statSync(wal, { throwIfNoEntry: false })?.size ?? 0) > 200_000)
  child.kill("SIGKILL")
  assert.ok(await ended, "it had ended before it could be killed")
  const before = json("stats").total_conversations
  assert.ok(before < MANY, `all ${before} were read before it was killed`)
  json("sync")
  const { total_conversations, total_messages } = json("stats")
  assert.deepEqual({ total_conversations, total_messages }, { total_conversations: MANY, total_messages: MANY * 20 })
  assert.ok(json("doctor").ok)
})

let [passed, failed] = [0, 0]
for (const [title, work] of checks) {
  const started = performance.now()
  try {
    await work()
    passed++
    console.log(`ok      ${title} (${Math.round(performance.now() - started)} ms)`)
  } catch (error) {
    failed++
    console.log(`FAILED  ${title}\n${(error as Error).stack ?? error}`)
  }
}
for (const child of children) child.kill()
rmSync(WORK, { recursive: true, force: true, maxRetries: 10 })
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
