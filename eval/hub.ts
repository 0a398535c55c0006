import { once } from "node:events"
import { readFileSync, rmSync, statSync } from "node:fs"
import { mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { parseArgs } from "node:util"
import { outgoingConversation, pushOne, startHub } from "../bench/hub-start.ts"
import { tenantIndexFile } from "../hub/src/search/fts5.ts"
import { asOwner } from "../hub/src/store/owner.ts"
import { addMember, addToken } from "../hub/src/store/people.ts"
import { moveToCluster } from "../hub/src/store/word-index.ts"
import { runAs } from "../hub/test/support/start-postgres.ts"
import { createDex } from "../src/app/dex.ts"
import { openHub } from "../src/hub-client/client.ts"
import { search } from "../src/tools/search/search.ts"
import { openHome } from "./home.ts"
import { mean, type Scores, scoresOf } from "./metrics.ts"
import { commits } from "./sets/commits.ts"

// Does a hub find what a laptop finds? Searches for commit subjects in both with the same tool; the hub is reached over HTTP.
//   npm run eval:hub [-- questions] [--scoped] [--opensearch ADDRESS]
// With --scoped, a colleague has one more conversation, a private one, so that the index weighs words by what the member may read.
// With --opensearch, a cluster has the hub's words.

const CONVERSATIONS_WITHOUT_LINES =
  "select count(*) as n from hub.conversation where rev > 0 and lines_rev is distinct from rev"
/** With their indexes. */
const BYTES_OF_LINES =
  "select pg_total_relation_size('hub.line_work') + pg_total_relation_size('hub.line_file') + pg_total_relation_size('hub.line_commit') as n"
/** For this long, OpenSearch keeps a copy of what was written, which the next merge removes, in milliseconds. */
const RETENTION_MS = 45_000
const SHOWN = ["any1", "any5", "ndcg10"] as const
const set = commits()
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { scoped: { type: "boolean" }, opensearch: { type: "string" } },
})
const prefix = `eval${process.pid}`
const asked = set.questions.slice(0, Number(positionals[0] ?? set.questions.length))
const home = await openHome(set)
const folder = await mkdtemp(join(tmpdir(), "dex-eval-hub-"))
const { hub, server, owner, data, address } = await startHub(
  folder,
  values.opensearch === undefined ? {} : { DEX_HUB_SEARCH_URL: values.opensearch, DEX_HUB_SEARCH_PREFIX: prefix },
)
if (values.opensearch !== undefined) await asOwner(owner, (query) => moveToCluster(query, 1))
const empty = await databaseBytes()
const laptop = createDex({ env: { HOME: home.dir, DEX_HOME: join(home.dir, ".dex") }, cwd: folder, version: "0" })

// In the order of arrival, so that the newer of two equal results is the same on both sides.
const refs = (await home.store.changes(undefined, 1e6)).changes.flatMap(({ ref }) => ref ?? [])
const projects = new Set<string>()
let [pushed, refused, textBytes] = [0, 0, 0]
for (const ref of refs) {
  const one = await outgoingConversation(home.store, ref)
  if (!projects.has(one.project)) await hub.consent(one.project, ["said"])
  projects.add(one.project)
  textBytes += one.head.text_bytes
  await pushOne(hub, one).then(
    () => pushed++,
    (error: unknown) => {
      refused++
      console.error(`Not taken: ${String(error).slice(0, 120)}`)
    },
  )
}
console.log(`${pushed} conversations pushed, ${refused} not taken.`)
if (values.scoped) {
  const token = await asOwner(owner, async (query) => {
    const member = await addMember(query, { tenant: 1, name: "bob", role: "member" })
    return addToken(query, { tenant: 1, member, kind: "personal", scopes: ["push", "read"], name: "eval" })
  })
  const bob = openHub({ address, token })
  await bob.consent("eval/bob", ["said"])
  await pushOne(bob, { ...(await outgoingConversation(home.store, refs[0]!)), project: "eval/bob" })
}
const text = asked[0]!.text
for (;;) {
  const { notes = [] } = (await hub.ask("search", { query: text })) as { notes?: string[] }
  if (!notes.some((note) => /not up to date|being built|far behind/i.test(note))) break
  await pause(500)
}

const share = (bytes: number) => (bytes / textBytes).toFixed(2)
const file = tenantIndexFile(data, 1)
const sizeOf = (end = "") => statSync(`${file}${end}`, { throwIfNoEntry: false })?.size ?? 0
if (values.opensearch !== undefined) {
  while ((await numberOf("select count(*) as n from hub.word_index where not in_files")) === 0) await pause(500)
  const fresh = share(await clusterBytes())
  await pause(RETENTION_MS)
  console.log(`OpenSearch: ${fresh} × the text, merged ${share(await clusterBytes({ merged: true }))}.`)
}
// Lines are derived after the words are indexed.
while ((await numberOf(CONVERSATIONS_WITHOUT_LINES)) > 0) await pause(500)
const tables = (await databaseBytes()) - empty
console.log(
  `Disk, × the ${(textBytes / 1e6).toFixed(1)} MB of text: PostgreSQL ${share(tables)} (without the ${(empty / 1e6).toFixed(1)} MB of an empty one), ` +
    `index ${share(sizeOf())} and a log of ${(sizeOf("-wal") / 1e6).toFixed(1)} MB.`,
)

const scores = { hub: [] as Scores[], laptop: [] as Scores[] }
let different = 0
const hubMs: number[] = []
for (const question of asked) {
  const input = { query: question.text, in: "history" as const, by: "conversation" as const, limit: 10, offset: 0 }
  const before = processorTime()
  const answer = await hub.ask("search", input)
  hubMs.push(processorTime() - before)
  const there = idsOf(answer)
  const here = idsOf(await search.run(laptop, { ...input, explain: false }))
  if (there.join() !== here.join()) {
    different++
    console.log(`${question.id}: hub ${there.join(" ")}\n${" ".repeat(question.id.length)}  here ${here.join(" ")}`)
  }
  scores.hub.push(scoresOf(there, new Set(question.gold)))
  scores.laptop.push(scoresOf(here, new Set(question.gold)))
}
for (const who of ["laptop", "hub"] as const)
  console.log(
    `${who}: ${SHOWN.map((metric) => `${metric} ${(100 * mean(scores[who].map((one) => one[metric]))).toFixed(1)}`).join(", ")}`,
  )
const differences = scores.hub.map((one, i) => 100 * (one.ndcg10 - scores.laptop[i]!.ndcg10))
for (const [half, list] of [
  ["all", differences],
  ["held", differences.filter((_, i) => asked[i]!.half === "held")],
] as const) {
  const average = mean(list)
  const deviation = Math.sqrt(mean(list.map((one) => (one - average) ** 2)) / Math.max(1, list.length - 1))
  const [low, high] = [average - 1.96 * deviation, average + 1.96 * deviation]
  console.log(
    `nDCG@10 of the hub minus that of the laptop, ${half}: ${average.toFixed(2)} [${low.toFixed(2)}, ${high.toFixed(2)}]`,
  )
}
console.log(`The hub needed ${mean(hubMs).toFixed(0)} ms of processor time for a question.`)
console.log(`${asked.length} questions; ${different} of them answered differently.`)
const lineBytes = await numberOf(BYTES_OF_LINES)
console.log(`Lines: ${(lineBytes / 1e6).toFixed(1)} MB, ${(lineBytes / textBytes).toFixed(3)} × the text.`)
const ended = once(server, "exit")
server.kill("SIGTERM")
await ended
laptop.close()
home.close()
rmSync(folder, { recursive: true, force: true })
if (values.opensearch !== undefined) await fetch(`${values.opensearch}/${prefix}-1-i*`, { method: "DELETE" })
process.exit(different === 0 || values.scoped || values.opensearch !== undefined ? 0 : 1)

/** The bytes of the tenant's index in the cluster. */
async function clusterBytes({ merged = false } = {}): Promise<number> {
  const at = `${values.opensearch}/${prefix}-1`
  if (merged) {
    await fetch(`${at}/_flush?force=true`, { method: "POST" })
    await fetch(`${at}/_forcemerge?max_num_segments=1&flush=true`, { method: "POST" })
  }
  await fetch(`${at}/_refresh`, { method: "POST" })
  const stats = (await (await fetch(`${at}/_stats/store`)).json()) as {
    _all: { primaries: { store: { size_in_bytes: number } } }
  }
  return stats._all.primaries.store.size_in_bytes
}

/** The conversations' own ids, without their owners. */
function idsOf(answer: unknown): string[] {
  return (answer as { results: { id: string }[] }).results.map(({ id }) =>
    id.replace(/^[^:]*:/, "").replace(/#.*$/, ""),
  )
}

/** The hub's processor time since its start, in milliseconds: the clock has 100 ticks a second. */
function processorTime(): number {
  const [, fields = ""] = readFileSync(`/proc/${server.pid}/stat`, "utf8").split(") ")
  const [user, system] = fields.split(" ").slice(11, 13)
  return 10 * (Number(user) + Number(system))
}

async function databaseBytes(): Promise<number> {
  await runAs(owner, "checkpoint")
  return numberOf("select pg_database_size('hub') as n")
}

async function numberOf(sql: string): Promise<number> {
  const [row] = await runAs<{ n: string }>(owner, sql)
  return Number(row!.n)
}
