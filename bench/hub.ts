import { type ChildProcess, execFileSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { tenantIndexFile } from "../hub/src/search/fts5.ts"
import { runAs } from "../hub/test/support/start-postgres.ts"
import { createDex } from "../src/app/dex.ts"
import { chunksOf, type WireHead, type WireMessage } from "../src/hub-client/wire.ts"
import { openStore } from "../src/store/history/sqlite-history.ts"
import { search } from "../src/tools/search/search.ts"
import { generateCorpus, generator, makeVocabulary } from "./corpus.ts"
import { addCrowd, CROWD, type CrowdSize, runCrowd, TEAM_OF_TEN } from "./hub-crowd.ts"
import {
  BUILT_HUB,
  mostMemory,
  type Outgoing,
  outgoingConversation,
  pushOne,
  type StartedHub,
  startHub,
} from "./hub-start.ts"
import { DEX, ROOT, sizeOf } from "./measure.ts"
import { ordinaryWords } from "./prepare.ts"
import { percentile, type Row } from "./report.ts"

const PUSHERS = 4
const QUERIES = 100
/** The number of measurements of the time until a pushed conversation can be found. */
const FRESH_RUNS = 5
/** The settings of the hub's image (hub/Dockerfile). */
const SMALL = { NODE_OPTIONS: "--max-semi-space-size=4", MALLOC_ARENA_MAX: "2" }
/** One token stands for many people here, so there are no limits per token. */
const NO_LIMITS = { DEX_HUB_PUSHES_PER_MINUTE: "1000000", DEX_HUB_READS_PER_MINUTE: "1000000" }

/** A hub with PostgreSQL as installed, and its clients, all on this machine. */
export async function benchHub([messages = "100000", seconds = "60"]: string[]): Promise<Row[]> {
  execFileSync("npm", ["run", "build", "--workspace", "hub", "--silent"], { cwd: ROOT, stdio: "inherit" })
  const home = mkdtempSync(join(tmpdir(), "dex-bench-hub-"))
  const corpus = generateCorpus(join(home, ".claude"), { messages: Number(messages) })
  const env = { ...process.env, HOME: home, DEX_HOME: join(home, ".dex") }
  execFileSync(process.execPath, [DEX, "sync"], { env, stdio: "ignore" })
  const laptop = createDex({ env, cwd: home, version: "0" })
  const store = openStore(join(home, ".dex/history.db"))
  const started = await startHub(home, { ...SMALL, ...NO_LIMITS }, BUILT_HUB)
  const rows = await measure({ ...started, ...corpus, laptop, store, crowdSeconds: Number(seconds) })
  store.close()
  laptop.close()
  rmSync(home, { recursive: true })
  return rows
}

type Measured = StartedHub &
  ReturnType<typeof generateCorpus> & {
    laptop: ReturnType<typeof createDex>
    store: ReturnType<typeof openStore>
    crowdSeconds: number
  }

async function measure(about: Measured): Promise<Row[]> {
  const { hub, owner, data, server, again, messages, textBytes, laptop, store, crowdSeconds } = about
  const refs = (await store.list({ limit: 1e6, offset: 0 })).rows.map(({ ref }) => ref)
  const ready: Outgoing[] = []
  for (const ref of refs) ready.push(await outgoingConversation(store, ref))
  const projects = new Set(ready.map((one) => one.project))
  for (const project of projects) await hub.consent(project, ["said"])
  const started = performance.now()
  const queue = [...ready]
  await Promise.all(
    Array.from({ length: PUSHERS }, async () => {
      for (let one = queue.shift(); one; one = queue.shift()) await pushOne(hub, one)
    }),
  )
  const accepted = (performance.now() - started) / 1000
  const marked = await found("zebrafinch-last")
  const searchable = (performance.now() - started) / 1000
  const fresh: number[] = []
  for (let i = 0; i < FRESH_RUNS; i++) fresh.push(await found(`quokka${i}mark`))
  const file = tenantIndexFile(data, 1)
  const words = ordinaryWords(file)
  const ordinary = await compared(words)
  const commonest = await compared(makeVocabulary(generator(12)).slice(0, 12))
  const [{ bytes }] = (await runAs<{ bytes: string }>(owner, "select pg_database_size('hub') as bytes")) as [
    { bytes: string },
  ]
  const disk = { postgres: Number(bytes) / textBytes, index: sizeOf(file) / textBytes }
  const random = generator(7)
  const questions = Array.from({ length: 200 }, (_, i) => chosenFrom(words, 1 + (i % 4), random))
  const crowdAt = async (address: string, size: CrowdSize) => {
    const people = await addCrowd(owner, address, size, projects)
    const times = await runCrowd(people, size, { seconds: crowdSeconds, questions, ready })
    if (times.errors.length > 0) console.log(`errors of ${size.people}: ${[...new Set(times.errors)].join("; ")}`)
    return times
  }
  const { searches, pushes, errors } = await crowdAt(hub.address, CROWD)
  const peak = mostMemory(server)
  const postgres = postgresMemory()
  await ended(server)
  const { child, address } = await again()
  const ten = await crowdAt(address, TEAM_OF_TEN)
  const small = mostMemory(child)
  await ended(child)
  return [
    row("push, messages/s accepted", messages / accepted, "", 5_000, ""),
    row("messages/s searchable", messages / searchable, "", 3_000, ""),
    rowBelow("a push is found after, longest of five", Math.max(...fresh), "", 5_000, "ms"),
    rowBelow("the same after all of them at full speed", marked, "", 5_000, "ms"),
    rowBelow("search, ordinary words, p95", ordinary.hub, `${ordinary.laptop.toFixed(0)} ms on the laptop`, 100, "ms"),
    rowBelow(
      "search, commonest words, p95",
      commonest.hub,
      `${commonest.laptop.toFixed(0)} ms on the laptop`,
      300,
      "ms",
    ),
    rowBelow(
      `disk, × text (PostgreSQL ${disk.postgres.toFixed(2)}, index ${disk.index.toFixed(2)})`,
      disk.postgres + disk.index,
      "",
      1.2,
      "",
    ),
    rowBelow(`search, ${CROWD.people} people, 10 a second, p95`, percentile(searches, 0.95), "", 1_000, "ms"),
    rowBelow("push of a conversation meanwhile, 4 a second, p95", percentile(pushes, 0.95), "", 5_000, "ms"),
    rowBelow("errors of the crowd", errors.length, `of ${searches.length + pushes.length}`, 0, ""),
    rowBelow(
      `search, a team of ${TEAM_OF_TEN.people}, 2 a second, p95`,
      percentile(ten.searches, 0.95),
      "",
      1_000,
      "ms",
    ),
    rowBelow("hub's memory with that team, most", small, `${peak.toFixed(0)} MB with all of the above`, 300, "MB"),
    rowBelow("PostgreSQL's memory at the end", postgres, "", 512, "MB"),
  ]

  /** Pushes one more conversation, and returns the milliseconds until it is found. */
  async function found(word: string): Promise<number> {
    const text = `${word} is what this says`
    const message: WireMessage = {
      ...{ number: 1, version: 1, role: "user", effects: [], abandoned: false, superseded: false, copied: false },
      parts: [{ type: "text", text, origin: "person" }],
    }
    const head: WireHead = { ...ready[0]!.head, id: word, message_count: 1 }
    await pushOne(hub, { project: ready[0]!.project, head, chunks: [...chunksOf([message])] })
    const from = performance.now()
    for (;;) {
      const { total } = await hub.ask<{ total: number }>("search", { query: `"${word}"` })
      if (total > 0) return performance.now() - from
      await pause(20)
    }
  }

  /** Sends the same queries to each in turn. */
  async function compared(words: string[]): Promise<{ hub: number; laptop: number }> {
    const random = generator(4)
    const times = { hub: [] as number[], laptop: [] as number[] }
    for (let i = 0; i < QUERIES; i++) {
      const input = {
        query: chosenFrom(words, 1 + (i % 4), random),
        in: "history" as const,
        by: "conversation" as const,
        limit: 10,
      }
      const from = performance.now()
      await hub.ask("search", input)
      times.hub.push(performance.now() - from)
      const here = performance.now()
      await search.run(laptop, { ...input, explain: false, offset: 0 })
      times.laptop.push(performance.now() - here)
    }
    // The first queries open files on both sides, so they do not count.
    return { hub: percentile(times.hub.slice(10), 0.95), laptop: percentile(times.laptop.slice(10), 0.95) }
  }
}

function chosenFrom(words: string[], count: number, random: () => number): string {
  return Array.from({ length: count }, () => words[Math.floor(random() * words.length)]!).join(" ")
}

async function ended(server: ChildProcess): Promise<void> {
  server.kill("SIGTERM")
  await once(server, "exit")
}

/** PostgreSQL's memory in MB. Memory that its processes share is counted once. */
function postgresMemory(): number {
  let bytes = 0
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name)))
    try {
      if (!/^postgres\b/m.test(readFileSync(`/proc/${pid}/comm`, "utf8"))) continue
      bytes += 1024 * Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0)
    } catch {} // it has ended
  return bytes / 1e6
}

function row(what: string, value: number, floor: string, least: number, unit: string): Row {
  const said = `${Math.round(value).toLocaleString("en")} ${unit}`.trim()
  return { what, measured: said, floor, goal: `≥ ${least.toLocaleString("en")}`, ok: value >= least }
}

function rowBelow(what: string, value: number, floor: string, most: number, unit: string): Row {
  const said = `${value < 10 ? value.toFixed(2) : Math.round(value).toLocaleString("en")} ${unit}`.trim()
  return { what, measured: said, floor, goal: `≤ ${most.toLocaleString("en")} ${unit}`.trim(), ok: value <= most }
}
