import { existsSync, mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import Database from "better-sqlite3"
import { INDEX_FILE } from "../src/core/formats.ts"
import { parseQuery } from "../src/search/query.ts"
import { searchHistory } from "../src/search/search.ts"
import { openStore } from "../src/store/history/sqlite-history.ts"
import { openIndex } from "../src/store/index/search-index.ts"
import { generateCorpus, generator, makeVocabulary } from "./corpus.ts"
import { DEX, median, percentile, ROOT, type Row, sizeOf, time, timeWithMemory } from "./measure.ts"

const QUERIES = 40

/** Sync, memory, disk and cold searches at one size. The history is kept in `folder` and used again. */
export async function benchSize(folder: string, messages: number): Promise<Row[]> {
  const home = join(folder, String(messages))
  const name = messages >= 1e6 ? `${messages / 1e6} M` : `${messages / 1000} k`
  const rows: Row[] = []
  const env = { HOME: home }
  if (!existsSync(join(home, ".dex"))) {
    rmSync(home, { recursive: true, force: true })
    mkdirSync(home, { recursive: true })
    const made = generateCorpus(join(home, ".claude"), { messages, seed: 11 })
    const run = timeWithMemory([DEX, "sync"], env)
    if (run.code !== 0) throw new Error(run.stderr)
    const stats = JSON.parse(time([DEX, "stats", "--json"], env).stdout) as {
      text_bytes: number
      total_messages: number
    }
    if (stats.total_messages !== made.messages)
      throw new Error(`${stats.total_messages} of ${made.messages} messages are there`)
    const disk = sizeOf(join(home, ".dex/history.db"), join(home, `.dex/${INDEX_FILE}`))
    rows.push(
      {
        what: `first sync, ${name} messages`,
        measured: `${(run.ms / 1000).toFixed(0)} s, ${(made.bytes / 1e3 / run.ms).toFixed(0)} MB/s, ${((messages / run.ms) * 1000).toFixed(0)} messages/s`,
        floor: "",
        goal: "",
        ok: undefined,
      },
      {
        what: `memory of that sync, ${name}`,
        measured: `${run.rssMb.toFixed(0)} MB`,
        floor: "",
        goal: "< 300 MB",
        ok: run.rssMb < 300,
      },
      {
        what: `disk, synthetic, ${name}`,
        measured: `${(disk / stats.text_bytes).toFixed(2)} × the text`,
        floor: "",
        goal: "≤ 1.5 ×",
        ok: disk / stats.text_bytes <= 1.5,
      },
    )
    rmSync(join(home, ".claude"), { recursive: true, force: true })
  }
  rows.push(
    ...coldSearch(home, name, messages),
    coldCommonest(home, name, messages),
    ...(await warmSearch(home, messages)),
  )
  return rows
}

/** Ordinary words: each in under 5 % of the messages and in at least one. */
function coldSearch(home: string, name: string, messages: number): Row[] {
  const index = join(home, `.dex/${INDEX_FILE}`)
  const words = ordinaryWords(index, messages)
  const random = generator(3)
  const mine: number[] = []
  const bare: number[] = []
  let rss = 0
  for (let i = 0; i < QUERIES; i++) {
    const chosen = Array.from({ length: 1 + (i % 4) }, () => words[Math.floor(random() * words.length)]!)
    const run = time([DEX, "search", "--json", ...chosen], { HOME: home })
    mine.push(run.ms)
    if (run.code === 2) throw new Error(run.stderr)
    bare.push(time([join(ROOT, "bench/floor-search.ts"), index, anyOf(chosen), "60"]).ms)
    if (i % 10 === 0) rss = Math.max(rss, timeWithMemory([DEX, "search", ...chosen], { HOME: home }).rssMb)
  }
  const ratio = percentile(mine, 0.95) / percentile(bare, 0.95)
  const limit = messages <= 1e6 ? 250 : Number.POSITIVE_INFINITY
  return [
    {
      what: `\`dex search\` from a cold process, ${name}, 1–4 ordinary words, p95 (median)`,
      measured: `${percentile(mine, 0.95).toFixed(0)} (${median(mine).toFixed(0)}) ms, ${ratio.toFixed(2)} ×`,
      floor: `${percentile(bare, 0.95).toFixed(0)} (${median(bare).toFixed(0)}) ms`,
      goal: messages <= 1e6 ? "≤ 1.6 ×, < 250 ms" : "≤ 1.6 ×",
      ok: ratio <= 1.6 && percentile(mine, 0.95) < limit,
    },
    {
      what: `memory of a search, ${name}`,
      measured: `${rss.toFixed(0)} MB`,
      floor: "",
      goal: "< 300 MB",
      ok: rss < 300,
    },
  ]
}

function coldCommonest(home: string, name: string, messages: number): Row {
  const words = commonestWords()
  const random = generator(6)
  const runs = Array.from({ length: QUERIES }, (_, i) => {
    const chosen = Array.from({ length: 1 + (i % 4) }, () => words[Math.floor(random() * words.length)]!)
    return time([DEX, "search", "--json", ...chosen], { HOME: home }).ms
  })
  const most = messages <= 1e6 ? 300 : 500
  const p95 = percentile(runs, 0.95)
  return {
    what: `\`dex search\` from a cold process, ${name}, 1–4 of the twelve commonest words, p95 (median)`,
    measured: `${p95.toFixed(0)} (${median(runs).toFixed(0)}) ms`,
    floor: "",
    goal: `< ${most} ms`,
    ok: p95 < most,
  }
}

function commonestWords(): string[] {
  return makeVocabulary(generator(12)).slice(0, 12)
}

function anyOf(words: string[]): string {
  return words.map((word) => `"${word}"`).join(" OR ")
}

/** One process that asks again and again, as a server does, beside the same words asked of FTS5 alone. */
export async function warmSearch(home: string, messages: number): Promise<Row[]> {
  const name = messages >= 1e6 ? `${messages / 1e6} M` : `${messages / 1000} k`
  const path = join(home, `.dex/${INDEX_FILE}`)
  const db = new Database(path, { readonly: true })
  const bare = db.prepare("select rowid, bm25(words) as score from words where words match ? order by score limit 20")
  const store = openStore(join(home, ".dex/history.db"))
  const index = openIndex(path)
  const measure = async (words: string[]) => {
    const random = generator(4)
    const mine: number[] = []
    const floor: number[] = []
    for (let i = 0; i < QUERIES; i++) {
      const chosen = Array.from({ length: 1 + (i % 4) }, () => words[Math.floor(random() * words.length)]!)
      const started = performance.now()
      await searchHistory(store, index, {
        query: parseQuery(chosen.join(" ")),
        by: "conversation",
        limit: 10,
        offset: 0,
      })
      mine.push(performance.now() - started)
      const from = performance.now()
      bare.all(anyOf(chosen))
      floor.push(performance.now() - from)
    }
    return { mine: percentile(mine, 0.95), floor: percentile(floor, 0.95) }
  }
  const row = (what: string, { mine, floor }: { mine: number; floor: number }, most: number, ms: number): Row => ({
    what: `search in a warm process, ${name}, ${what}, p95`,
    measured: `${mine.toFixed(0)} ms, ${(mine / floor).toFixed(2)} ×`,
    floor: `${floor.toFixed(0)} ms`,
    goal: `≤ ${most} ×, < ${ms} ms`,
    ok: mine / floor <= most && mine < ms,
  })
  const ordinary = await measure(ordinaryWords(path, messages))
  const commonest = await measure(commonestWords())
  db.close()
  store.close()
  index.close()
  const big = messages > 1e6
  return [
    row("1–4 ordinary words", ordinary, 1.5, big ? 200 : 100),
    row("1–4 of the twelve commonest words", commonest, 0.3, big ? 300 : 150),
  ]
}

export function ordinaryWords(index: string, messages: number): string[] {
  const db = new Database(index, { readonly: true })
  const vocabulary = makeVocabulary(generator(12)).filter((word) => /^[a-z]{4,}$/.test(word))
  const count = db.prepare("select count(*) from (select 1 from words where words match ? limit ?)").pluck()
  const random = generator(5)
  const words: string[] = []
  while (words.length < 120) {
    // Ranks that people search for: neither the commonest words nor those that occur once.
    const word = vocabulary[Math.floor(40 + random() * 5000)]!
    const found = count.get(`"${word}"`, messages * 0.05 + 1) as number
    if (found > 0 && found <= messages * 0.05) words.push(word)
  }
  db.close()
  return words
}

/** The longest conversation, read from a cold process. */
export function benchLongest(home: string): Row[] {
  const env = { HOME: home }
  const { conversations } = JSON.parse(time([DEX, "list", "--json", "--all", "--limit", "1000"], env).stdout) as {
    conversations: { id: string; message_count: number }[]
  }
  const longest = conversations.reduce((most, one) => (one.message_count > most.message_count ? one : most))
  const outline = median(
    Array.from({ length: 7 }, () => time([DEX, "show", longest.id, "--format", "outline"], env).ms),
  )
  const full = median(Array.from({ length: 7 }, () => time([DEX, "show", longest.id, "--format", "full"], env).ms))
  const what = `of the longest conversation (${longest.message_count} messages), cold`
  return [
    { what: `outline ${what}`, measured: `${outline.toFixed(0)} ms`, floor: "", goal: "< 200 ms", ok: outline < 200 },
    { what: `full ${what}`, measured: `${full.toFixed(0)} ms`, floor: "", goal: "< 2 s", ok: full < 2000 },
  ]
}

/** Start-up beside a process that does nothing. */
export function benchStart(home: string): Row[] {
  const runs = 25
  const bare: number[] = []
  const version: number[] = []
  const search: number[] = []
  for (let i = 0; i < runs; i++) {
    bare.push(time(["-e", "0"]).ms)
    version.push(time([DEX, "--version"], { HOME: home }).ms)
    search.push(time([DEX, "search", "function", "error"], { HOME: home }).ms)
  }
  const floor = `node -e 0: ${median(bare).toFixed(0)} ms`
  const ratio = (values: number[]) => median(values) / median(bare)
  return [
    {
      what: "`dex --version`",
      measured: `${median(version).toFixed(0)} ms, ${ratio(version).toFixed(2)} ×`,
      floor,
      goal: "≤ 1.5 ×",
      ok: ratio(version) <= 1.5,
    },
    {
      what: "`dex search` on a small history (3,000 messages)",
      measured: `${median(search).toFixed(0)} ms, ${ratio(search).toFixed(2)} ×`,
      floor,
      goal: "≤ 2.5 ×",
      ok: ratio(search) <= 2.5,
    },
  ]
}
