import { spawn } from "node:child_process"
import { join } from "node:path"
import { createInterface } from "node:readline"
import Database from "better-sqlite3"
import { createDex } from "../src/app/dex.ts"
import { INDEX_FILE } from "../src/core/formats.ts"
import { readAs } from "../src/core/schema.ts"
import { parseQuery } from "../src/search/query.ts"
import { searchHistory } from "../src/search/search.ts"
import { agentInputOf, offeredTools } from "../src/serve/mcp/definitions.ts"
import { openStore } from "../src/store/history/sqlite-history.ts"
import { openIndex } from "../src/store/index/search-index.ts"
import { generator, makeVocabulary } from "./corpus.ts"
import { DEX, homeWith, shortCount } from "./measure.ts"
import { anyOf, ordinaryWords } from "./prepare.ts"
import { median, percentile, type Row } from "./report.ts"

const QUERIES = 120

/** Repeated searches in one process, like a server: compared with FTS5 alone, and over stdio compared with in-process. */
export async function benchWarm(sizes = "100000,1000000"): Promise<Row[]> {
  const rows: Row[] = []
  for (const messages of sizes.split(",").map(Number)) {
    const home = homeWith(messages)
    rows.push(...(await inProcess(home, messages)), await overStdio(home, messages))
  }
  return rows
}

async function inProcess(home: string, messages: number): Promise<Row[]> {
  const path = join(home, `.dex/${INDEX_FILE}`)
  const db = new Database(path, { readonly: true })
  const bare = db.prepare("select rowid, bm25(words) as score from words where words match ? order by score limit 20")
  const store = openStore(join(home, ".dex/history.db"))
  const index = openIndex(path)
  const measure = async (words: string[]) => {
    const times = { mine: [] as number[], floor: [] as number[] }
    for (const chosen of queriesOf(words)) {
      const query = { query: parseQuery(chosen.join(" ")), by: "conversation" as const, limit: 10, offset: 0 }
      await timed(times.mine, () => searchHistory(store, index, query))
      await timed(times.floor, async () => bare.all(anyOf(chosen)))
    }
    return times
  }
  const row = (what: string, times: { mine: number[]; floor: number[] }, most: number, ms: number): Row => {
    const ratio = percentile(times.mine, 0.95) / percentile(times.floor, 0.95)
    return {
      what: `search in a warm process, ${shortCount(messages)} messages, 1 to 4 ${what}, p95 (median)`,
      measured: `${spread(times.mine)}, ${ratio.toFixed(2)} ×`,
      floor: `FTS5 alone: ${spread(times.floor)}`,
      goal: `≤ ${most} ×, < ${ms} ms`,
      ok: ratio <= most && percentile(times.mine, 0.95) < ms,
    }
  }
  const ordinary = await measure(ordinaryWords(path))
  const commonest = await measure(makeVocabulary(generator(12)).slice(0, 12))
  db.close()
  store.close()
  index.close()
  const isBig = messages > 1e6
  return [
    row("ordinary words", ordinary, 1.5, isBig ? 200 : 100),
    row("of the twelve commonest words", commonest, 0.3, isBig ? 300 : 150),
  ]
}

async function overStdio(home: string, messages: number): Promise<Row> {
  const env = { PATH: process.env.PATH ?? "", HOME: home }
  const server = await startServer(env, home)
  const dex = createDex({ env, cwd: home, version: "bench" })
  const tool = offeredTools.find(({ mcp }) => mcp.name === "dex_search")!
  const inside = async (query: string) => {
    const input = readAs(agentInputOf(tool), { query })
    if ("wrong" in input) throw new Error(input.wrong)
    return JSON.stringify(await tool.run(dex, input.ok))
  }
  const times = { stdio: [] as number[], inside: [] as number[] }
  try {
    const queries = queriesOf(ordinaryWords(join(home, `.dex/${INDEX_FILE}`))).map((words) => words.join(" "))
    // The first round warms both, and shows that they give the same answers.
    for (const query of queries)
      if (!(await server.search(query)).includes(await inside(query)))
        throw new Error(`not the same answer to ${query}`)
    for (const [i, query] of queries.entries()) {
      const one = () => timed(times.stdio, () => server.search(query))
      const other = () => timed(times.inside, () => inside(query))
      for (const ask of i % 2 === 0 ? [one, other] : [other, one]) await ask()
    }
  } finally {
    dex.close()
    server.end()
  }
  const ratio = percentile(times.stdio, 0.95) / percentile(times.inside, 0.95)
  return {
    what: `\`dex_search\` over stdio, warm, ${shortCount(messages)} messages, 1 to 4 ordinary words, p95 (median)`,
    measured: `${spread(times.stdio)}, ${ratio.toFixed(2)} ×`,
    floor: `the same in process: ${spread(times.inside)}`,
    goal: "≤ 1.3 ×",
    ok: ratio <= 1.3,
  }
}

function queriesOf(words: string[]): string[][] {
  const random = generator(4)
  return Array.from({ length: QUERIES }, (_, i) =>
    Array.from({ length: 1 + (i % 4) }, () => words[Math.floor(random() * words.length)]!),
  )
}

async function timed(into: number[], work: () => Promise<unknown>): Promise<void> {
  const started = performance.now()
  await work()
  into.push(performance.now() - started)
}

function spread(values: number[]): string {
  return `${percentile(values, 0.95).toFixed(1)} (${median(values).toFixed(1)}) ms`
}

/** A real server, with one request at a time. */
async function startServer(env: Record<string, string>, cwd: string) {
  const child = spawn(process.execPath, [DEX, "serve"], { env, cwd, stdio: ["pipe", "pipe", "inherit"] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const ask = async (method: string, params: object): Promise<string> => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })}\n`)
    const { value, done } = await lines.next()
    if (done) throw new Error("the server ended")
    JSON.parse(value)
    return value
  }
  const clientInfo = { name: "bench", version: "1" }
  await ask("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo })
  return {
    search: (query: string) => ask("tools/call", { name: "dex_search", arguments: { query } }),
    end: () => child.stdin.end(),
  }
}
