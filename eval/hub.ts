import { once } from "node:events"
import { readdirSync, rmSync, statSync } from "node:fs"
import { mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { parseArgs } from "node:util"
import { outgoingConversation, pushOne, startHub } from "../bench/hub-start.ts"
import { runAs } from "../hub/test/support/start-postgres.ts"
import { createDex } from "../src/app/dex.ts"
import { openKnowledge, readKnowledge } from "../src/store/knowledge/knowledge.ts"
import { search } from "../src/tools/search/search.ts"
import { openHome } from "./home.ts"
import { mean, type Scores, scoresOf } from "./metrics.ts"
import { commits } from "./sets/commits.ts"

// Does a hub find what a laptop finds? Searches for commit subjects in both with the same tool; the hub is reached over HTTP.
//   npm run eval:hub [-- questions] [--shards 4]
// With several shards the conversations are distributed over as many projects, each in its own shard.

const SHOWN = ["any1", "any5", "ndcg10"] as const
const set = commits()
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { shards: { type: "string", default: "1" } },
})
const shards = Number(values.shards)
const asked = set.questions.slice(0, Number(positionals[0] ?? set.questions.length))
const home = await openHome(set)
const folder = await mkdtemp(join(tmpdir(), "dex-eval-hub-"))
const { hub, server, owner, data } = await startHub(folder, shards > 1 ? { DEX_HUB_SHARD_MESSAGES: "1" } : {})
const empty = await databaseBytes()
const laptop = createDex({ env: { HOME: home.dir, DEX_HOME: join(home.dir, ".dex") }, cwd: folder, version: "0" })

// In the order of arrival, so that the newer of two equal results is the same on both sides.
const refs = (await home.store.changes(undefined, 1e6)).changes.flatMap(({ ref }) => ref ?? [])
const projects = new Set<string>()
let [pushed, refused, textBytes] = [0, 0, 0]
for (const ref of refs) {
  const whole = await outgoingConversation(home.store, ref)
  const one = shards > 1 ? { ...whole, project: `eval/part-${pushed % shards}` } : whole
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
const text = asked[0]!.text
for (;;) {
  const { notes = [] } = (await hub.ask("search", { query: text })) as { notes?: string[] }
  if (!notes.some((note) => /not yet|still|behind/i.test(note))) break
  await pause(500)
}

const share = (bytes: number) => (bytes / textBytes).toFixed(2)
const files = readdirSync(data).map((name) => join(data, name, "index.db"))
if (files.length !== shards) throw new Error(`There are ${files.length} shards.`)
const sizeOf = (end = "") => files.reduce((sum, file) => sum + statSync(`${file}${end}`).size, 0)
const lines = files.map((file) => join(dirname(file), "lines.db"))
// Lines are read after the words. With one shard it is known when they have been read: a push is one change of its feed.
const isRead = () => readKnowledge(lines[0]!, 5_000)?.conversations.learnedToken()?.endsWith(`@${pushed}`)
while (shards === 1 && !isRead()) await pause(500)
const tables = (await databaseBytes()) - empty
console.log(
  `Disk, × the ${(textBytes / 1e6).toFixed(1)} MB of text: PostgreSQL ${share(tables)} (without the ${(empty / 1e6).toFixed(1)} MB of an empty one), ` +
    `${shards === 1 ? "shard" : `${shards} shards`} ${share(sizeOf())} and a log of ${(sizeOf("-wal") / 1e6).toFixed(1)} MB.`,
)

const scores = { hub: [] as Scores[], laptop: [] as Scores[] }
let different = 0
for (const question of asked) {
  const input = { query: question.text, in: "history" as const, by: "conversation" as const, limit: 10, offset: 0 }
  const answer = (await hub.ask("search", input)) as { shards?: object }
  if (answer.shards) throw new Error(`Not all shards answered: ${JSON.stringify(answer.shards)}`)
  const there = idsOf(answer)
  const here = idsOf(await search.run(laptop, { ...input, explain: false }))
  if (there.join() !== here.join()) {
    different++
    if (shards === 1)
      console.log(`${question.id}: hub ${there.join(" ")}\n${" ".repeat(question.id.length)}  here ${here.join(" ")}`)
  }
  scores.hub.push(scoresOf(there, new Set(question.gold)))
  scores.laptop.push(scoresOf(here, new Set(question.gold)))
}
for (const who of ["laptop", "hub"] as const)
  console.log(
    `${who}: ${SHOWN.map((metric) => `${metric} ${(100 * mean(scores[who].map((one) => one[metric]))).toFixed(1)}`).join(", ")}`,
  )
console.log(`${asked.length} questions; ${different} of them answered differently.`)
const ended = once(server, "exit")
server.kill("SIGTERM")
await ended
// Until it is closed, its content is in its log.
for (const file of lines) openKnowledge(file).close()
const lineBytes = lines.reduce((sum, file) => sum + statSync(file).size, 0)
console.log(`Lines: ${(lineBytes / 1e6).toFixed(1)} MB, ${(lineBytes / textBytes).toFixed(3)} × the text.`)
laptop.close()
home.close()
rmSync(folder, { recursive: true, force: true })
process.exit(different === 0 || shards > 1 ? 0 : 1)

/** The conversations' own ids, without their owners. */
function idsOf(answer: unknown): string[] {
  return (answer as { results: { id: string }[] }).results.map(({ id }) =>
    id.replace(/^[^:]*:/, "").replace(/#.*$/, ""),
  )
}

async function databaseBytes(): Promise<number> {
  await runAs(owner, "checkpoint")
  const [row] = await runAs<{ bytes: string }>(owner, "select pg_database_size('hub') as bytes")
  return Number(row!.bytes)
}
