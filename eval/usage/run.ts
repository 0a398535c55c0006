import { execFileSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { CACHE_DIR } from "../home.ts"
import { Absent } from "../set.ts"
import { genuineCorpus } from "../sets/corpus.ts"

// The usage of 251 genuine conversations, as counted by dex and by ccusage, row by row and to the token.
//   npm run eval:usage

const CCUSAGE = "20.0.24"
const DEX = fileURLToPath(new URL("../../dist/dex.js", import.meta.url))
/** A zone other than the machine's, so that the days differ from UTC's. */
const ZONE = "America/New_York"
const KINDS = ["input", "output", "cache read", "cache write"] as const

/** Tokens of each kind, and dollars. */
type Amounts = { tokens: number[]; cost: number }
type Report = Map<string, Amounts>
const NOTHING: Amounts = { tokens: KINDS.map(() => 0), cost: 0 }

try {
  const corpus = genuineCorpus()
  const home = mkdtempSync(join(tmpdir(), "usage-"))
  try {
    compare(corpus, home, ccusageProgram())
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
} catch (error) {
  if (!(error instanceof Absent)) throw error
  console.log(`NOT RUN: ${error.message}`)
}

function compare(corpus: string, home: string, program: string): void {
  const env = { PATH: process.env.PATH, HOME: home, CLAUDE_CONFIG_DIR: corpus, TZ: ZONE }
  const run = (file: string, args: string[]) =>
    execFileSync(file, args, { env, encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] })
  run(process.execPath, [DEX, "sync"])
  const dex = (by: string) => {
    const rows = (...more: string[]) =>
      JSON.parse(run(process.execPath, [DEX, "usage", by, "--limit", "10000", "--json", ...more])).rows as DexRow[]
    return { all: dexReport(rows()), own: dexReport(rows("--subagents").filter(({ subagents }) => !subagents)) }
  }
  const peer = (name: string) => JSON.parse(run(program, [name, "--offline", "--json", "--timezone", ZONE]))
  const daily = peer("daily").daily as PeerDay[]
  console.log(
    "report        rows  equal  tokens of dex  of ccusage     difference  of subagents  unexplained  difference in money",
  )
  print("day", dex("day"), new Map(daily.map((day) => [day.period, amountsOf(day)])))
  print("model", dex("model"), byModel(daily))
  print("conversation", dex("conversation"), sessions(peer("session").session))
  print("block", dex("block"), blocks(peer("blocks").blocks))
}

type DexRow = {
  key: string
  subagents?: boolean
  cost: number
  input: number
  output: number
  cache_read: number
  cache_write_5m: number
  cache_write_1h: number
  cache_write_other: number
}

function dexReport(rows: DexRow[]): Report {
  const report: Report = new Map()
  for (const row of rows) {
    const { input, output, cache_read, cache_write_5m, cache_write_1h, cache_write_other } = row
    const tokens = [input, output, cache_read, cache_write_5m + cache_write_1h + cache_write_other]
    add(report, row.key.replace(/^claude_code:/, ""), { tokens, cost: row.cost })
  }
  return report
}

type PeerRow = {
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheCreationTokens: number
  totalCost?: number
  cost?: number
}
type PeerDay = PeerRow & { period: string; modelBreakdowns: (PeerRow & { modelName: string })[] }
type PeerBlock = {
  startTime: string
  isGap: boolean
  costUSD: number
  tokenCounts: Record<"inputTokens" | "outputTokens" | "cacheReadInputTokens" | "cacheCreationInputTokens", number>
}

function amountsOf(row: PeerRow): Amounts {
  const tokens = [row.inputTokens, row.outputTokens, row.cacheReadTokens, row.cacheCreationTokens]
  return { tokens, cost: row.totalCost ?? row.cost ?? 0 }
}

function byModel(days: PeerDay[]): Report {
  const report: Report = new Map()
  for (const { modelBreakdowns } of days) for (const row of modelBreakdowns) add(report, row.modelName, amountsOf(row))
  return report
}

function sessions(rows: (PeerRow & { period: string })[]): Report {
  const report: Report = new Map()
  for (const row of rows) add(report, row.period, amountsOf(row))
  return report
}

function blocks(rows: PeerBlock[]): Report {
  const report: Report = new Map()
  for (const { startTime, isGap, costUSD, tokenCounts: counts } of rows) {
    if (isGap) continue
    const at = new Date(startTime).toLocaleString("sv-SE", { timeZone: ZONE }).slice(0, 16)
    const { inputTokens, outputTokens, cacheReadInputTokens, cacheCreationInputTokens } = counts
    add(report, at, {
      tokens: [inputTokens, outputTokens, cacheReadInputTokens, cacheCreationInputTokens],
      cost: costUSD,
    })
  }
  return report
}

function add(report: Report, key: string, { tokens, cost }: Amounts): void {
  const before = report.get(key) ?? NOTHING
  report.set(key, { tokens: before.tokens.map((n, i) => n + tokens[i]!), cost: before.cost + cost })
}

/** A row is explained if ccusage has the usage without its subagents, in each kind of token. */
function print(name: string, { all, own }: { all: Report; own: Report }, peer: Report): void {
  const keys = [...new Set([...all.keys(), ...peer.keys()])]
  let [equal, bySubagents, unexplained, money] = [0, 0, 0, 0]
  for (const key of keys) {
    const [mine, alone, theirs] = [all, own, peer].map((report) => report.get(key) ?? NOTHING) as Amounts[] as [
      Amounts,
      Amounts,
      Amounts,
    ]
    const differences = mine.tokens.map((n, i) => n - theirs.tokens[i]!)
    money += mine.cost - theirs.cost
    if (differences.every((n) => n === 0)) equal++
    else if (alone.tokens.every((n, i) => n === theirs.tokens[i])) bySubagents += sum(differences)
    else unexplained += sum(differences.map(Math.abs))
  }
  const [ours, theirs] = [total(all), total(peer)]
  const cells = [keys.length, equal, ours, theirs, ours - theirs, bySubagents, unexplained]
  const widths = [6, 7, 15, 15, 11, 14, 13]
  const counts = cells.map((n, i) => n.toLocaleString("en-US").padStart(widths[i]!)).join("")
  console.log(`${name.padEnd(12)}${counts}  ${money.toFixed(4).padStart(19)}`)
}

function sum(numbers: number[]): number {
  return numbers.reduce((all, n) => all + n, 0)
}

function total(report: Report): number {
  return sum([...report.values()].flatMap(({ tokens }) => tokens))
}

/** Downloaded once, and only for this. */
function ccusageProgram(): string {
  const platform = `${process.platform === "win32" ? "win32" : process.platform}-${process.arch}`
  const folder = join(CACHE_DIR, `ccusage-${CCUSAGE}`)
  const program = join(folder, "package", "bin", process.platform === "win32" ? "ccusage.exe" : "ccusage")
  if (existsSync(program)) return program
  mkdirSync(folder, { recursive: true })
  execFileSync("npm", ["pack", `@ccusage/ccusage-${platform}@${CCUSAGE}`, "--pack-destination", folder], {
    stdio: "ignore",
  })
  const archive = readdirSync(folder).find((name) => name.endsWith(".tgz"))!
  execFileSync("tar", ["xzf", join(folder, archive), "-C", folder])
  chmodSync(program, 0o755)
  return program
}
