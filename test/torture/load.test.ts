import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { generateCorpus } from "../../bench/corpus.ts"
import { INDEX_FILE } from "../../src/core/formats.ts"
import { type Client, connect } from "../mcp/client.ts"
import { dex } from "../support/dex.ts"
import { tempDir } from "../support/temp.ts"

/** 10 s in CI, 5 minutes by `npm run torture -- load`. */
const SECONDS = Number(process.env.DEX_LOAD_SECONDS ?? 10)
const SERVERS = 24
const CALLS_PER_SECOND = 10
/** What the agents write meanwhile; the first third of it is there at once, for one long sync. */
const MESSAGES_PER_SECOND = 1_000
const MOST_WAL_BYTES = 64 << 20
/** What other programs and machines take of the processors makes every time longer: beyond this, p99 is said, not asserted. */
const STARVED = 0.1

const CALLS: [string, object][] = [
  ["dex_search", { query: "function error" }],
  ["dex_search", { query: "docker test", by: "message", limit: 20 }],
  ["dex_list", { limit: 20 }],
  ["dex_search", { query: "import const return" }],
  ["dex_timeline", { id: "PLACE" }],
  ["dex_get", { ids: ["PLACE"] }],
  ["dex_stats", {}],
]

test(
  `${SERVERS} servers on one home, ${CALLS_PER_SECOND} calls a second in all, beside a sync, for ${SECONDS} s`,
  async () => {
    const home = tempDir()
    generateCorpus(join(home, ".claude"), { messages: 20_000, seed: 100 })
    expect((await dex(home, ["sync"])).code).toBe(0)
    const messages = MESSAGES_PER_SECOND * SECONDS
    generateCorpus(join(home, "later"), { messages, messagesPerConversation: 50, seed: 200 })
    const clients = await Promise.all(Array.from({ length: SERVERS }, () => connect(home)))
    const [listed] = await Promise.all(clients.map((client) => client.call("dex_list", { limit: 1 })))
    const place = `${(listed!.structuredContent!.conversations as { id: string }[])[0]!.id}#5`

    const before = cpuTimes(clients)
    const until = performance.now() + SECONDS * 1000
    const wal = watchWal(home)
    const [syncs, calls] = await Promise.all([keepSyncing(home, until), askSteadily(clients, place)])
    const largest = wal.stop()
    const cpu = cpuShares(before, cpuTimes(clients))

    const took = calls.map(({ ms }) => ms).sort((a, b) => a - b)
    const p = (share: number) => took[Math.min(took.length - 1, Math.ceil(share * took.length) - 1)]!
    console.log(
      `${calls.length} calls in ${SECONDS} s: median ${p(0.5).toFixed(0)} ms, p95 ${p(0.95).toFixed(0)} ms, p99 ${p(0.99).toFixed(0)} ms, slowest ${took.at(-1)!.toFixed(0)} ms; ` +
        `${await messagesIn(home)} of ${20_000 + messages} messages read, ${syncs} syncs; largest log ${(largest / 2 ** 20).toFixed(1)} MB; ` +
        (cpu ? `CPU: ${percent(cpu.ours)} ours, ${percent(cpu.others)} of others` : "CPU: not known"),
    )
    const wrong = calls.filter(({ error }) => error !== undefined)
    expect(wrong).toEqual([])
    expect(clients.map(({ stderr }) => stderr()).filter((said) => /busy|locked|SQLITE/i.test(said))).toEqual([])
    expect(calls.length).toBe(SECONDS * CALLS_PER_SECOND)
    expect(largest).toBeLessThan(MOST_WAL_BYTES)
    for (const { child } of clients) child.stdin!.end()
    await Promise.all(clients.map(({ exited }) => exited))
    expect((await dex(home, ["sync"])).code).toBe(0)
    expect(await messagesIn(home)).toBe(20_000 + messages)
    if (!cpu || cpu.others > STARVED) console.log("NOT ASSERTED: p99 under 1 s; this machine has other work")
    else expect(p(0.99)).toBeLessThan(1_000)
  },
  SECONDS * 1000 + 240_000,
)

type Called = { ms: number; error?: string }

/** One call every so often, whether or not the one before came back; each is timed from when it was due. */
async function askSteadily(clients: Client[], place: string): Promise<Called[]> {
  const started = performance.now()
  const calls: Promise<Called>[] = []
  for (let n = 0; n < SECONDS * CALLS_PER_SECOND; n++) {
    const due = started + (n * 1000) / CALLS_PER_SECOND
    if (due > performance.now()) await new Promise((resolve) => setTimeout(resolve, due - performance.now()))
    const [name, input] = CALLS[n % CALLS.length]!
    calls.push(
      callOnce(clients[n % clients.length]!, name, JSON.parse(JSON.stringify(input).replace("PLACE", place)), due),
    )
  }
  return Promise.all(calls)
}

async function callOnce(client: Client, name: string, input: object, due: number): Promise<Called> {
  const done = (error?: string) => ({ ms: performance.now() - due, ...(error !== undefined && { error }) })
  try {
    const result = await client.call(name, input)
    return result.isError ? done(`${name}: ${result.content[0]!.text}`) : done()
  } catch (error) {
    return done(String(error))
  }
}

/** There is always something to read. The servers look for it too: whoever has the lock reads. */
async function keepSyncing(home: string, until: number): Promise<number> {
  const later = join(home, "later")
  const files = readdirSync(later, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith(".jsonl"))
  const started = performance.now()
  let written = 0
  let syncs = 0
  for (;;) {
    const now = performance.now()
    const share = Math.min(1, 1 / 3 + ((2 / 3) * (now - started)) / (until - started))
    for (; written < Math.ceil(files.length * share); written++) moveInto(later, join(home, ".claude"), files[written]!)
    const { code, stdout, stderr } = await dex(home, ["sync"])
    expect(code, stderr).toBe(0)
    expect(stdout + stderr).not.toMatch(/database is locked|SQLITE/i)
    syncs++
    if (now >= until) return syncs
  }
}

function moveInto(from: string, to: string, name: string): void {
  mkdirSync(dirname(join(to, name)), { recursive: true })
  renameSync(join(from, name), join(to, name))
}

async function messagesIn(home: string): Promise<number> {
  return (JSON.parse((await dex(home, ["stats", "--json"])).stdout) as { total_messages: number }).total_messages
}

function watchWal(home: string): { stop(): number } {
  let largest = 0
  const look = () => {
    for (const name of ["history.db-wal", `${INDEX_FILE}-wal`])
      largest = Math.max(largest, statSync(join(home, ".dex", name), { throwIfNoEntry: false })?.size ?? 0)
  }
  const timer = setInterval(look, 50)
  return {
    stop: () => {
      clearInterval(timer)
      look()
      return largest
    },
  }
}

type CpuTimes = { all: number[]; ours: number }

/** In ticks, since the machine started: of all processors, and of these servers, this process and what it waited for. */
function cpuTimes(clients: Client[]): CpuTimes | undefined {
  if (!existsSync("/proc/stat")) return undefined
  const fields = (file: string) =>
    readFileSync(file, "utf8")
      .split("\n", 1)[0]!
      .replace(/^.*\) /, "")
      .trim()
      .split(/\s+/)
  const used = (pid: number | "self", count: number) =>
    sum(
      fields(`/proc/${pid}/stat`)
        .slice(11, 11 + count)
        .map(Number),
    )
  const all = fields("/proc/stat").slice(1, 9).map(Number)
  return { all, ours: used("self", 4) + sum(clients.map(({ child }) => used(child.pid!, 2))) }
}

function cpuShares(before: CpuTimes | undefined, after: CpuTimes | undefined) {
  if (!before || !after) return undefined
  const spent = after.all.map((ticks, i) => ticks - before.all[i]!)
  const [idle, waiting] = [spent[3]!, spent[4]!]
  const ours = (after.ours - before.ours) / sum(spent)
  return { ours, others: 1 - (idle + waiting) / sum(spent) - ours }
}

const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)
const percent = (share: number) => `${(share * 100).toFixed(0)} %`
