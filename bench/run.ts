// npm run bench -- --quick: compares each command with its floor and with the baseline. npm run bench -- --help describes the
// rest.
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { loadavg } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { machine, ROOT } from "./measure.ts"
import { benchQuick } from "./quick.ts"
import {
  faultsOf,
  type MeasuredCommand,
  partTable,
  quickTable,
  type Row,
  type Stamp,
  slowestRuns,
  verdictOf,
  withPart,
} from "./report.ts"

const PAGE = join(ROOT, "docs/performance.md")
const QUICK_MESSAGES = 6_000

const HELP = `npm run bench -- --quick              Compare each command with its floor and with the commit that bench/baseline names.
                                      Ends with 1 if one needs more processor time than its limit allows.
npm run bench -- --quick --only a,b   Measure only these: sync, sync-again, search, list, show, hook, initialize, first-search,
                                      usage, home-page, reading-page.
npm run bench -- --messages 1000000   Measure the same with a larger history, without limits.
npm run bench -- --genuine            Measure the same with the genuine transcripts in ../shared/corpus, without limits.
npm run bench -- PART                 Measure one of the longer parts: resources, warm, vectors, documents, git, code,
                                      watch, peer, typing, view, hub, hub-wall,
                                      redact.
Add --write to put the table into docs/performance.md. Commit first: each row names the commit.
`

/** Needed only for some changes: each takes minutes. Those that return nothing print their results themselves. */
const parts: Record<string, (args: string[]) => Promise<Row[] | undefined>> = {
  resources: async ([sizes]) => (await import("./resources.ts")).benchResources(sizes),
  warm: async ([sizes]) => (await import("./warm.ts")).benchWarm(sizes),
  vectors: async ([count = "100000"]) => (await import("./vectors.ts")).benchVectors(Number(count)),
  documents: async () => (await import("./documents.ts")).benchDocuments(),
  git: async () => (await import("./git.ts")).benchGit(),
  code: async () => (await import("./code.ts")).benchCode(),
  watch: async ([minutes = "10"]) => (await import("./watch.ts")).benchWatch(Number(minutes)),
  peer: async () => (await import("./peer.ts")).benchPeer(),
  typing: async (homes) => (await import("./typing.ts")).benchTyping(homes),
  view: async (homes) => (await import("./view.ts")).benchView(homes),
  "hub-wall": async (args) => (await import("./hub-wall.ts")).benchHubWall(args),
  hub: async (args) => (await import("./hub.ts")).benchHub(args),
  redact: async (args) => (await import("./redact.ts")).benchRedact(args),
}

const given = process.argv.slice(2)
const isPart = given.length > 0 && !given[0]!.startsWith("-")
const { values } = parseArgs({
  args: isPart ? given.filter((arg) => arg === "--write") : given, // a part has its own arguments
  options: {
    quick: { type: "boolean" },
    messages: { type: "string" },
    genuine: { type: "boolean" },
    only: { type: "string" },
    write: { type: "boolean" },
    help: { type: "boolean", short: "h" },
  },
})
const isQuick = values.quick || values.messages !== undefined || values.genuine
if (isPart ? parts[given[0]!] === undefined : !isQuick) {
  process.stdout.write(HELP)
  process.exit(values.help ? 0 : 2)
}
if (values.quick && values.write && values.only !== undefined)
  throw new Error("--write needs the table of all commands: leave --only out")
const stamp = stampNow(values.write === true)
const load = loadavg()[0]!.toFixed(1)
const where = `Measured on ${machine()}, with a load average of ${load} at the start.`
console.log(where)
if (isPart) {
  const [part, ...args] = given.filter((arg) => arg !== "--write") as [string, ...string[]]
  const rows = await parts[part]!(args)
  if (rows) show(part, `${where} \`npm run bench -- ${[part, ...args].join(" ")}\``, partTable(rows, stamp))
  process.exit() // a hub's PostgreSQL may still be running
} else await quick()

async function quick(): Promise<void> {
  const messages = values.genuine ? "genuine" : Number(values.messages ?? QUICK_MESSAGES)
  const name = values.genuine ? "genuine" : values.messages === undefined ? "quick" : `messages-${messages}`
  const only = values.only?.split(",")
  const log = (line: string) => console.log(line)
  const first = await benchQuick({ messages, times: name === "quick" ? 1 : 3, ...(only && { only }) }, log)
  const { failed, baseline } = first
  const measured = name === "quick" ? await measuredAgain(first.measured) : first.measured
  if (failed.length > 0 && values.write)
    throw new Error(`Nothing is written, since the table is not complete. ${failed.join("; ")}`)
  const history =
    messages === "genuine" ? "the genuine corpus" : `a generated history of ${messages.toLocaleString("en")} messages`
  const named = typeof baseline === "string" ? "" : `; baseline: ${baseline.commit}, version ${baseline.version}`
  const { tooSlow, advice, ...verdict } = verdictOf(measured)
  const notes = name === "quick" ? verdict.notes : measured.map(slowestRuns)
  const text = [
    `${where} With ${history}${named}. Processor time; wall time.`,
    quickTable(measured, stamp),
    ...(notes.length > 0 ? [notes.map((note) => `- ${note}`).join("\n")] : []),
  ]
  show(name, ...text)
  for (const line of failed) console.log(`NOT MEASURED: ${line}`)
  if (typeof baseline === "string") console.log(`Not compared with the baseline. ${baseline}`)
  if (name !== "quick") return
  for (const line of advice) console.log(line)
  for (const line of tooSlow) console.log(`TOO SLOW: ${line}`)
  if (typeof baseline !== "string" && tooSlow.length === 0 && failed.length === 0)
    console.log("No command is slower than its limit allows.")
  sayAgeOfPage()
  process.exitCode = tooSlow.length > 0 ? 1 : 0
}

/** The median of five pairs differs by up to a tenth between two runs, so a command that seems too slow is measured again with three times as many runs. */
async function measuredAgain(measured: MeasuredCommand[]): Promise<MeasuredCommand[]> {
  const only = measured.filter((one) => verdictOf([one]).tooSlow.length > 0).map(({ name }) => name)
  if (only.length === 0) return measured
  console.log(`Measured again with three times as many runs, because it seems too slow: ${only.join(", ")}`)
  const { measured: again } = await benchQuick({ messages: QUICK_MESSAGES, times: 3, only }, (line) =>
    console.log(line),
  )
  return measured.map((one) => again.find(({ name }) => name === one.name) ?? one)
}

function show(name: string, ...text: string[]): void {
  console.log(`\n${text.join("\n\n")}\n`)
  if (!values.write) return
  writeFileSync(PAGE, withPart(readFileSync(PAGE, "utf8"), name, text.join("\n\n")))
  const faults = faultsOf(readFileSync(PAGE, "utf8"))
  if (faults.length > 0) throw new Error(`docs/performance.md: ${faults.join("; ")}`)
  console.log(`docs/performance.md has this table now, as the part "${name}".`)
}

/** A figure in the docs names the commit at which it was measured, so everything must be committed. */
function stampNow(mustBeCommitted: boolean): Stamp {
  const changed = git("status", "--porcelain", "--untracked-files=no")
    .split("\n")
    .filter((line) => line !== "")
  const isChanged = changed.some((line) => !line.endsWith("docs/performance.md"))
  if (isChanged && mustBeCommitted) throw new Error(`Commit first: each row names its commit.\n${changed.join("\n")}`)
  const commit = git("rev-parse", "--short=9", "HEAD").trim()
  return { commit: isChanged ? `${commit}, changed` : commit, date: new Date().toISOString().slice(0, 10) }
}

function sayAgeOfPage(): void {
  const commit = /\| ([0-9a-f]{7,40}) \| \d{4}-\d\d-\d\d \|$/m.exec(readFileSync(PAGE, "utf8"))?.[1]
  if (commit === undefined) return
  try {
    const since = git("rev-list", "--count", `${commit}..HEAD`, "--", "src").trim()
    console.log(`docs/performance.md was measured at ${commit}; ${since} commits have changed src since then.`)
  } catch {
    console.log(`docs/performance.md was measured at ${commit}, which is not in this clone.`)
  }
}

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })
}
