import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { parseArgs, promisify } from "node:util"
import { parseQuery } from "../src/search/query.ts"
import { searchHistory } from "../src/search/search.ts"
import { type EvalHome, openHome } from "./home.ts"
import { measureHistory } from "./sde-history.ts"
import { type HookFigures, measureHook } from "./sde-hook.ts"
import { Absent, type Chat } from "./set.ts"
import { type BugReport, sdeBench, taskOf } from "./sets/sde.ts"

// Bug reports of sde-bench, used as queries unchanged: is the conversation that decided it in row 1, and is dex ever silent?
// Then as prompts: what does the hook tell the agent, and does it name the deciding commit where there is no conversation?
//   npm run eval:sde [-- --part search|hook|history]

const DEX = fileURLToPath(new URL("../dist/dex.js", import.meta.url))
/** Conversations of other tasks are removed from the answer, so more rows are requested than anyone would read. */
const ROWS = 40

/** One query at a time. */
type Ask = (report: string) => Promise<string[]>

const { values } = parseArgs({ options: { part: { type: "string" } } })
const isWanted = (part: string) => values.part === undefined || values.part === part

try {
  const { chats, reports, history, repository } = sdeBench()
  if (isWanted("search")) await measureSearch(chats, reports)
  if (isWanted("hook")) {
    const own = await measureHook(chats, reports, "each")
    const all = await measureHook(chats, reports, "one")
    console.table({ "a history for each task": rowOf(own), "all tasks in one history": rowOf(all) })
    warn([...own.failures, ...all.failures])
  }
  if (isWanted("history")) {
    const unrelated = chats.filter(({ id }) => taskOf(id) === undefined)
    const { failures, ...figures } = await measureHistory(unrelated, history, repository)
    console.table({ "deciding commit named": figures })
    warn(failures)
  }
} catch (error) {
  if (!(error instanceof Absent)) throw error
  console.error(`NOT RUN: ${error.message}. Get sde-bench, and set DEX_BENCH_DIR to the folder that contains it.`)
  process.exitCode = 1
}

function rowOf({ reports, spoken, right, spoken_without, share, enough, told, marked, changed }: HookFigures) {
  return {
    spoken: `${spoken} of ${reports}`,
    right: `${right} of ${reports}`,
    "spoken without the conversation": `${spoken_without} of ${reports}`,
    "policy's words": `${Math.round(share * 100)} %`,
    "at least 60 %": `${enough} of ${reports}`,
    "change told": `${told} of ${changed}`,
    "by search": `${marked} of ${changed}`,
  }
}

function warn(failures: string[]): void {
  if (failures.length > 0) console.error(`${failures.length} hooks failed or were stopped: ${failures[0]}`)
}

async function measureSearch(chats: Chat[], reports: BugReport[]): Promise<void> {
  const home = await openHome({ name: "sde", unit: "conversation", chats, questions: [] })
  const decided = reports.filter(({ changedBy }) => changedBy === undefined)
  const changed = reports.filter(({ changedBy }) => changedBy !== undefined)
  const mcp = await overMcp(home)
  for (const [name, ask] of Object.entries({ "dex search": inTerminal(home), dex_search: mcp.ask })) {
    let [first, silent, newer] = [0, 0, 0]
    for (const report of decided) {
      const found = relevant(report, await ask(report.text))
      if (found.length === 0) silent++
      if (found[0] === report.decidedIn) first++
    }
    for (const report of changed) if (isNewerFirst(report, await ask(report.text))) newer++
    console.log(
      `${name}: deciding conversation first ${first} of ${decided.length}, silent ${silent}; changed decisions, newer one first ${newer} of ${changed.length}`,
    )
  }
  mcp.close()
  let silent = 0
  for (const report of decided) if (await isSilentWithout(home, report)) silent++
  console.log(`without the deciding conversation: silent ${silent} of ${decided.length}`)
  home.close()
}

function relevant({ task }: BugReport, chats: string[]): string[] {
  return chats.filter((chat) => [undefined, task].includes(taskOf(chat)))
}

function isNewerFirst({ decidedIn, changedBy }: BugReport, chats: string[]): boolean {
  return chats.find((chat) => chat === decidedIn || chat === changedBy) === changedBy
}

function inTerminal(home: EvalHome): Ask {
  const options = { cwd: home.dir, env: environment(home), maxBuffer: 64 * 1024 * 1024 }
  return async (report) => {
    const args = [DEX, "search", report, "--limit", String(ROWS), "--json"]
    // Finding nothing is exit code 1.
    const { stdout } = await promisify(execFile)(process.execPath, args, options).catch((error) => error)
    return chatsOf(home, JSON.parse(stdout))
  }
}

async function overMcp(home: EvalHome): Promise<{ ask: Ask; close(): void }> {
  const child = spawn(process.execPath, [DEX, "serve"], {
    cwd: home.dir,
    env: environment(home),
    stdio: ["pipe", "pipe", "ignore"],
  })
  const lines = createInterface(child.stdout)
  let last = 0
  const request = async (method: string, params: object) => {
    const id = ++last
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`)
    for (;;) {
      const [line] = await once(lines, "line")
      const reply = JSON.parse(line)
      if (reply.id === id) return reply.result
    }
  }
  const clientInfo = { name: "eval", version: "1" }
  await request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo })
  child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`)
  const ask: Ask = async (query) => {
    const result = await request("tools/call", { name: "dex_search", arguments: { query, limit: ROWS } })
    return chatsOf(home, result.structuredContent)
  }
  return { ask, close: () => void child.kill() }
}

function environment(home: EvalHome): NodeJS.ProcessEnv {
  const { DEX_HOME: _, CLAUDE_CONFIG_DIR: __, ...env } = process.env
  return { ...env, HOME: home.dir, DEX_TRACES: "off", NO_COLOR: "1" }
}

function chatsOf(home: EvalHome, { results }: { results: { id: string }[] }): string[] {
  return results.map(({ id }) => home.chatOf(id.replace(/^claude_code:|#.*/g, "")))
}

async function isSilentWithout(home: EvalHome, { task, text }: BugReport): Promise<boolean> {
  const { rows } = await home.store.list({ limit: 1_000, offset: 0 })
  const excluded = rows.map(({ ref }) => ref).filter(({ id }) => taskOf(home.chatOf(id)) !== undefined)
  if (!excluded.some(({ id }) => taskOf(home.chatOf(id)) === task)) throw new Error(`${task} has no conversation`)
  const { hits } = await searchHistory(home.store, home.index, {
    query: parseQuery(text),
    excludedConversations: excluded,
    by: "conversation",
    limit: 10,
    offset: 0,
  })
  return hits.length === 0
}
