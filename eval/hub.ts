import { rmSync, statSync } from "node:fs"
import { mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { outgoing, pushOne, startHub } from "../bench/hub-start.ts"
import { runAs } from "../hub/test/support/start-postgres.ts"
import { createDex } from "../src/app/dex.ts"
import { search } from "../src/tools/search/search.ts"
import { openHome } from "./home.ts"
import { mean, type Scores, scoresOf } from "./metrics.ts"
import { commits } from "./sets/commits.ts"

// Does a hub find what a laptop finds? Commit subjects, asked of both, through the same tool: of the hub over HTTP.
//   npm run eval:hub [-- questions]

const SHOWN = ["any1", "any5", "ndcg10"] as const
const set = commits()
const asked = set.questions.slice(0, Number(process.argv[2] ?? set.questions.length))
const home = await openHome(set)
const folder = await mkdtemp(join(tmpdir(), "dex-eval-hub-"))
const { hub, server, owner, data } = await startHub(folder)
const empty = await databaseBytes()
const laptop = createDex({ env: { HOME: home.dir, DEX_HOME: join(home.dir, ".dex") }, cwd: folder, version: "0" })

// In the order in which they came: which of two equals is the newer is then the same on both sides.
const refs = (await home.store.changes(undefined, 1e6)).changes.flatMap(({ ref }) => ref ?? [])
const projects = new Set<string>()
let [pushed, refused, textBytes] = [0, 0, 0]
for (const ref of refs) {
  const one = await outgoing(home.store, ref)
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
const shard = join(data, "tenant-1", "index.db")
const tables = (await databaseBytes()) - empty
console.log(
  `Disk, × the ${(textBytes / 1e6).toFixed(1)} MB of text: PostgreSQL ${share(tables)} (without the ${(empty / 1e6).toFixed(1)} MB of an empty one), ` +
    `shard ${share(statSync(shard).size)} and a log of ${(statSync(`${shard}-wal`).size / 1e6).toFixed(1)} MB.`,
)

const scores = { hub: [] as Scores[], laptop: [] as Scores[] }
let different = 0
for (const question of asked) {
  const input = { query: question.text, in: "history" as const, by: "conversation" as const, limit: 10, offset: 0 }
  const there = idsOf(await hub.ask("search", input))
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
console.log(`${asked.length} questions; ${different} of them answered differently.`)
server.kill("SIGTERM")
laptop.close()
home.close()
rmSync(folder, { recursive: true, force: true })
process.exit(different === 0 ? 0 : 1)

/** The conversations' own ids, without whose they are. */
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
