import { type ChildProcess, spawn } from "node:child_process"
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { generateCorpus } from "./corpus.ts"
import { DEX, time } from "./measure.ts"
import { median, percentile, type Row } from "./report.ts"

const TRANSCRIPTS = 5_000
const SOURCE_FILES = 5_000
const APPENDS = 20
/** The time between appends, longer than the pace of an active conversation, so that each append is read separately. */
const BETWEEN_MS = 3_000
/** The time after which the reading process has ended, which is the case for one append in four. */
const ENDED_MS = 23_000

/** `dex watch` over 10,000 files: its cost while nothing happens, and how soon a new message can be found. */
export async function benchWatch(idleMinutes: number): Promise<Row[]> {
  const home = mkdtempSync(join(tmpdir(), "dex-bench-watch-"))
  const watches: ChildProcess[] = []
  try {
    generateCorpus(join(home, ".claude"), { messages: TRANSCRIPTS * 2, messagesPerConversation: 2, seed: 11 })
    const project = join(home, "code", "app")
    writeSources(project)
    const session = join(home, ".claude", "projects", "-bench", `${SESSION}.jsonl`)
    mkdirSync(join(session, ".."), { recursive: true })
    writeFileSync(session, line(0, "the beginning"))
    time([DEX, "sync"], { HOME: home })

    const started = performance.now()
    const child = spawn(process.execPath, [DEX, "watch", "--json"], {
      cwd: project,
      env: { PATH: process.env.PATH ?? "", HOME: home },
      stdio: ["ignore", "pipe", "ignore"],
    })
    watches.push(child)
    const events = eventsOf(child)
    await events.next("watching")
    const readyMs = performance.now() - started
    await events.next("looked")

    const latencies: number[] = []
    const reads: number[] = []
    for (let i = 1; i <= APPENDS; i++) {
      const word = `zebrafinch${i}`
      const written = performance.now()
      appendFileSync(session, line(i, word))
      await events.next("looked", i)
      const read = performance.now() - written
      if (!found(home, word)) throw new Error(`${word} was not found`)
      reads.push(read)
      latencies.push(performance.now() - written)
      await pause(i % 4 === 0 ? ENDED_MS : BETWEEN_MS)
    }
    await pause(ENDED_MS)
    const before = usageOf(child.pid!)
    const samples = [before.rssMb]
    const began = performance.now()
    for (let i = 0; i < 10; i++) {
      await pause((idleMinutes * 60_000) / 10)
      samples.push(usageOf(child.pid!).rssMb)
    }
    const after = usageOf(child.pid!)
    const share = (after.cpuMs - before.cpuMs) / (performance.now() - began)
    console.log(
      `watch: ready after ${readyMs.toFixed(0)} ms; idle ${idleMinutes} min, ${(after.cpuMs - before.cpuMs).toFixed(0)} ms of processor, children included; memory ${samples.map((mb) => mb.toFixed(0)).join(" ")} MB; read after ${reads.map((ms) => ms.toFixed(0)).join(" ")} ms; found after ${latencies.map((ms) => ms.toFixed(0)).join(" ")} ms`,
    )
    const bare = median(Array.from({ length: 5 }, () => time([DEX, "search", "zebrafinch1"], { HOME: home }).ms))
    const growth = samples.at(-1)! - samples[0]!
    return [
      {
        what: `dex watch, 10,000 files, ${idleMinutes} min idle: processor`,
        measured: `${(share * 100).toFixed(3)} % of a core`,
        floor: "",
        goal: "< 0.5 %",
        ok: share < 0.005,
      },
      {
        what: "— memory at its start, middle and end",
        measured: `${[samples[0]!, samples[5]!, samples.at(-1)!].map((mb) => mb.toFixed(1)).join(", ")} MB`,
        floor: "",
        goal: "flat, ≤ 120 MB",
        ok: growth < 3 && Math.max(...samples) <= 120,
      },
      {
        what: `— a message written until a search of another process finds it, slowest of ${APPENDS} (median)`,
        measured: `${percentile(latencies, 1).toFixed(0)} (${median(latencies).toFixed(0)}) ms`,
        floor: `that search: ${bare.toFixed(0)} ms`,
        goal: "≤ 2 s",
        ok: percentile(latencies, 1) <= 2_000,
      },
    ]
  } finally {
    for (const child of watches) child.kill("SIGTERM")
    await Promise.all(watches.map((child) => child.exitCode ?? new Promise((resolve) => child.once("exit", resolve))))
    rmSync(home, { recursive: true, force: true })
  }
}

const SESSION = "99999999-9999-4999-8999-999999999999"

function line(n: number, text: string): string {
  return `${JSON.stringify({
    type: "user",
    uuid: `99999999-${n}`,
    parentUuid: null,
    sessionId: SESSION,
    cwd: "/code/bench",
    version: "2.1.197",
    isSidechain: false,
    userType: "external",
    timestamp: new Date(Date.UTC(2026, 10, 12) + n * 1000).toISOString(),
    message: { role: "user", content: text },
  })}\n`
}

function writeSources(project: string): void {
  for (let i = 0; i < SOURCE_FILES; i++) {
    const folder = join(project, `package-${i % 20}`, "src", `part-${i % 100}`)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `file-${i}.ts`), `export const n${i} = ${i}\n`)
  }
}

/** This queries the index: a search does not read anything new itself. */
function found(home: string, word: string): boolean {
  return time([DEX, "search", word, "--json"], { HOME: home }).code === 0
}

/** Its own usage, and that of its children that have ended. */
function usageOf(pid: number): { cpuMs: number; rssMb: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")
  const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0)
  const rss = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]!
  return { cpuMs: ticks * 10, rssMb: Number(rss) / 1024 }
}

type Event = { event: string }

function eventsOf(child: ChildProcess) {
  const events: Event[] = []
  let heard = () => {}
  let rest = ""
  child.stdout!.on("data", (chunk) => {
    const lines = (rest + String(chunk)).split("\n")
    rest = lines.pop()!
    events.push(...lines.map((text) => JSON.parse(text) as Event))
    heard()
  })
  return {
    /** Resolves when there are more than this many events of the kind. */
    next: (kind: string, before = 0) =>
      new Promise<void>((resolve) => {
        heard = () => {
          if (events.filter(({ event }) => event === kind).length > before) resolve()
        }
        heard()
      }),
  }
}
