import type { Agent } from "../agents/agent.ts"
import { agents } from "../agents/index.ts"
import { createDex } from "../app/dex.ts"
import { keepsListings, saveListing } from "../app/listing.ts"
import { VERSION } from "../app/version.ts"
import { listed } from "../core/format.ts"
import { syncWithThreads } from "../ingest/sync-thread.ts"
import { paint, type Terminal, terminalOf, wrap } from "../render/terminal.ts"
import type { Dex } from "../tools/context.ts"
import { list } from "../tools/list/list.ts"
import { sources } from "../tools/sources/sources.ts"
import { printList } from "./print/list.ts"
import { syncNews } from "./print/sync-news.ts"
import { many, seconds, shortPath, showFirst } from "./print/words.ts"
import { progressView } from "./progress.ts"

const NEWEST = 3

/** `dex` alone: reads what is new, says what there is, and what to try next. */
export async function showHome(): Promise<number> {
  const terminal = terminalOf(process.stdout, process.env)
  const view = await progressView(process.stderr, terminalOf(process.stderr, process.env))
  const stop = new AbortController()
  const dex = createDex({
    env: process.env,
    cwd: process.cwd(),
    version: VERSION,
    onProgress: view.show,
    signal: stop.signal,
  })
  const interrupt = () => (stop.signal.aborted ? process.exit(130) : stop.abort())
  process.on("SIGINT", interrupt)
  const say = (line = "") => process.stdout.write(`${line}\n`)
  try {
    const first = !dex.hasHistory()
    if (first) {
      const place = shortPath(dex.home.dir, dex.machine.home)
      const intro = `dex ${VERSION}: the memory that your coding agents share. It stays on this machine, in ${place}.`
      say(`${wrap(intro, terminal.columns).join("\n")}\n`)
    }
    const report = await syncWithThreads(await dex.syncDeps(), dex.home.index, {
      onProgress: view.show,
      signal: stop.signal,
    })
    view.stop()
    const found = await sources.run(dex, {})
    const kept = found.sources.filter((source) => source.kept > 0)
    if (kept.length === 0) {
      say(`No conversations were found yet. dex reads ${listed(agents.filter(isRead).map(({ name }) => name))}.`)
      say("`dex sources` shows where it looked.")
      return 1
    }
    for (const source of kept)
      say(
        `  ${paint(terminal, "cyan", source.source.padEnd(14))}${many(source.kept, "conversation")}, ${many(source.messages, "message")}`,
      )
    say()
    if (!report.busy && report.added_messages === 0) say(`Nothing new (${seconds(report.duration_ms)}).`)
    for (const line of syncNews(report)) say(line)
    const { askToSpeak } = await import("./ask-to-speak.ts")
    await askToSpeak({
      home: dex.home,
      env: process.env,
      suggestions: dex.suggestions,
      terminal,
      now: dex.now(),
      say,
    })
    await showNewest(dex, terminal, say)
    return 0
  } finally {
    view.stop()
    process.off("SIGINT", interrupt)
    dex.close()
  }
}

/** The newest conversations as rows, and what to type next: each works as it stands there. */
async function showNewest(dex: Dex, terminal: Terminal, say: (line?: string) => void): Promise<void> {
  const numbered = keepsListings()
  const newest = await list.run(dex, { in: "history", limit: NEWEST, offset: 0 })
  if (newest.conversations.length === 0) return
  const { lines, listing = [] } = printList(newest, { terminal, home: dex.machine.home, numbered })
  saveListing(dex.home.dir, listing)
  say()
  say(paint(terminal, "bold", "Newest"))
  for (const line of lines) say(line)
  say()
  say(paint(terminal, "bold", "Try"))
  say(`  ${showFirst(listing, { numbered })}`)
  const word = await tellingWord(
    dex,
    newest.conversations.map(({ title }) => title),
  )
  if (word !== undefined) say(`  dex search ${word}`)
  say("  dex list")
}

/** The word of these titles that the fewest messages contain, so that it finds what it came from. */
async function tellingWord(dex: Dex, titles: string[]): Promise<string | undefined> {
  const words = [...new Set(titles.flatMap((title) => title.match(/\b[A-Za-z]{5,20}\b/g) ?? []))]
  const index = await dex.index()
  if (!index || words.length === 0) return undefined
  const { shares } = await index.sizes(words.map((word) => ({ words: word.toLowerCase() })))
  const [rarest] = words.map((word, i) => ({ word, share: shares[i]! })).sort((a, b) => a.share - b.share)
  return rarest?.word.toLowerCase()
}

/** Other than dex itself. */
function isRead({ source, connector }: Agent): boolean {
  return connector !== undefined && source !== "dex_chat"
}
