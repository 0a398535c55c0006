import { spawn } from "node:child_process"
import { rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { INDEX_FILE } from "../src/core/formats.ts"
import { searchAsYouType, type TypedSearchCache } from "../src/search/typing.ts"
import { openStore } from "../src/store/history/sqlite-history.ts"
import { readIndex } from "../src/store/index/search-index.ts"
import { generateCorpus, generator } from "./corpus.ts"
import { homeWith, ROOT } from "./measure.ts"
import { percentile, type Row } from "./report.ts"

const KEYSTROKES = 300
const COMMONEST = 60
const ROWS = 20
const SIZES = [100_000, 1_000_000]

/** How long a keystroke takes, in homes that have a history, otherwise in generated ones. */
export async function benchTyping(homes: string[]): Promise<Row[]> {
  const rows: Row[] = []
  for (const home of homes.length > 0 ? homes : SIZES.map((size) => homeWith(size))) {
    const opened = openHome(home)
    const words = await wordsOf(opened)
    const typed = keystrokes(words.all, generator(5)).slice(0, KEYSTROKES)
    const common = words.common.flatMap((word) => beginningsOf("", word))
    const size = `${words.all.length.toLocaleString("en")} words in ${(await opened.store.list({ limit: 1, offset: 0 })).total} conversations`
    rows.push(
      await measured(`one to three words, letter by letter; ${size}`, opened, typed),
      await measured(`the ${COMMONEST} commonest words`, opened, common),
      await measured("nothing typed yet", opened, Array(20).fill("")),
    )
    const syncing = syncElsewhere()
    rows.push(await measured("one to three words, while a sync runs elsewhere", opened, typed))
    await syncing.end()
    opened.store.close()
    opened.index.close()
  }
  return rows
}

type Opened = ReturnType<typeof openHome>

function openHome(home: string) {
  const index = readIndex(join(home, ".dex", INDEX_FILE))
  if (typeof index === "string") throw new Error(`${home}: the index is ${index}`)
  return { store: openStore(join(home, ".dex/history.db")), index }
}

async function wordsOf({ index }: Opened): Promise<{ all: string[]; common: string[] }> {
  const written = await index.words("")
  const totals = await index.sizes(written.slice(0, 1_000).map(({ word }) => ({ words: word })))
  const common = written
    .slice(0, 1_000)
    .map(({ word }, i) => ({ word, share: totals.shares[i]! }))
    .sort((a, b) => b.share - a.share)
    .slice(0, COMMONEST)
  return {
    all: written.filter(({ word, spread }) => spread >= 3 && /^[a-z]+$/.test(word)).map(({ word }) => word),
    common: common.map(({ word }) => word),
  }
}

/** The content of the line after each key, for one to three words each. */
function keystrokes(words: string[], random: () => number): string[] {
  const lines: string[] = []
  while (lines.length < KEYSTROKES) {
    let line = ""
    for (let n = 1 + Math.floor(random() * 3); n > 0; n--) {
      const word = words[Math.floor(random() * words.length)]!
      lines.push(...beginningsOf(line, word))
      line += `${word} `
    }
  }
  return lines
}

function beginningsOf(line: string, word: string): string[] {
  return [...word].map((_, i) => line + word.slice(0, i + 1))
}

async function measured(what: string, { store, index }: Opened, lines: string[]): Promise<Row> {
  const times: number[] = []
  const processor: number[] = []
  let [rows, longest] = [0, { ms: 0, line: "" }]
  let read: TypedSearchCache = new Map()
  for (const text of lines) {
    if (text.length <= 1) read = new Map() // another line, from somebody who has just started
    const [started, used] = [performance.now(), process.cpuUsage()]
    rows += (await searchAsYouType(store, index, { text, limit: ROWS }, read)).length
    const ms = performance.now() - started
    times.push(ms)
    const { user, system } = process.cpuUsage(used)
    processor.push((user + system) / 1_000)
    if (ms > longest.ms) longest = { ms, line: text }
    await new Promise((resolve) => setImmediate(resolve))
  }
  const spread = (values: number[]) => [0.5, 0.95, 1].map((share) => percentile(values, share).toFixed(1)).join(" / ")
  return {
    what: `${what}; ${lines.length} keystrokes, ms p50 / p95 / longest`,
    measured: `${spread(times)} (${JSON.stringify(longest.line)}); ${(rows / lines.length).toFixed(1)} rows on average`,
    floor: `processor time ${spread(processor)}`,
    goal: "p95 < 60 ms, < 30 ms with 100 k messages",
    ok: percentile(times, 0.95) < 60,
  }
}

/** A first sync in its own home, which takes all the processor time that it gets. */
function syncElsewhere() {
  const home = join(tmpdir(), `dex-bench-typing-${process.pid}`)
  generateCorpus(join(home, ".claude"), { messages: 100_000, seed: 3 })
  const sync = spawn(process.execPath, [join(ROOT, "dist/dex.js"), "sync"], {
    env: { PATH: process.env.PATH, HOME: home },
    stdio: "ignore",
  })
  const ended = new Promise((resolve) => sync.once("exit", resolve))
  return {
    end: async () => {
      sync.kill("SIGKILL")
      await ended
      rmSync(home, { recursive: true, force: true })
    },
  }
}
