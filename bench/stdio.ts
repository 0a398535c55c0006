import { spawn } from "node:child_process"
import { existsSync, mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { createDex } from "../src/app/dex.ts"
import { INDEX_FILE } from "../src/core/formats.ts"
import { readAs } from "../src/core/schema.ts"
import { inputOf, offered } from "../src/mcp/definitions.ts"
import { generateCorpus, generator } from "./corpus.ts"
import { DEX, median, percentile, type Row, time } from "./measure.ts"
import { ordinaryWords } from "./search.ts"

const QUERIES = 120

/** `dex_search` asked of a warm server over stdio beside the same tool run in this process, the same words in turn. */
export async function benchStdio(folder: string, messages: number): Promise<Row[]> {
  const home = join(folder, String(messages))
  if (!existsSync(join(home, ".dex"))) makeHistory(home, messages)
  const words = ordinaryWords(join(home, `.dex/${INDEX_FILE}`), messages)
  const random = generator(8)
  const queries = Array.from({ length: QUERIES }, (_, i) =>
    Array.from({ length: 1 + (i % 4) }, () => words[Math.floor(random() * words.length)]!).join(" "),
  )
  const env = { PATH: process.env.PATH ?? "", HOME: home }
  const server = await startServer(env, home)
  const dex = createDex({ env, cwd: home, version: "bench" })
  const tool = offered.find(({ mcp }) => mcp.name === "dex_search")!
  const inProcess = async (query: string) => {
    const input = readAs(inputOf(tool), { query })
    if ("wrong" in input) throw new Error(input.wrong)
    return JSON.stringify(await tool.run(dex, input.ok))
  }
  const times = { stdio: [] as number[], inside: [] as number[] }
  const timed = async (into: number[], ask: () => Promise<string>) => {
    const started = performance.now()
    const answer = await ask()
    into.push(performance.now() - started)
    return answer
  }
  try {
    // The first time round warms both, and shows that they say the same.
    for (const query of queries) {
      const inside = await inProcess(query)
      if (!(await server.search(query)).includes(inside)) throw new Error(`not the same answer to ${query}`)
    }
    for (const [i, query] of queries.entries()) {
      const one = () => timed(times.stdio, () => server.search(query))
      const other = () => timed(times.inside, () => inProcess(query))
      for (const ask of i % 2 === 0 ? [one, other] : [other, one]) await ask()
    }
  } finally {
    dex.close()
    server.end()
  }
  const ratio = percentile(times.stdio, 0.95) / percentile(times.inside, 0.95)
  const said = (values: number[]) => `${percentile(values, 0.95).toFixed(1)} (${median(values).toFixed(1)}) ms`
  const name = messages >= 1e6 ? `${messages / 1e6} M` : `${messages / 1000} k`
  return [
    {
      what: `\`dex_search\` over stdio, warm, ${name}, 1–4 ordinary words, p95 (median)`,
      measured: `${said(times.stdio)}, ${ratio.toFixed(2)} ×`,
      floor: `the same in process: ${said(times.inside)}`,
      goal: "≤ 1.3 ×",
      ok: ratio <= 1.3,
    },
  ]
}

function makeHistory(home: string, messages: number): void {
  rmSync(home, { recursive: true, force: true })
  mkdirSync(home, { recursive: true })
  generateCorpus(join(home, ".claude"), { messages, seed: 11 })
  const run = time([DEX, "sync"], { HOME: home })
  if (run.code !== 0) throw new Error(run.stderr)
  rmSync(join(home, ".claude"), { recursive: true, force: true })
}

/** A real server, asked one thing at a time. */
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
