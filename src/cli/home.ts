import type { Agent } from "../agents/kit/agent.ts"
import { agents, isDexSource } from "../agents/registry.ts"
import { createDex } from "../app/dex.ts"
import { canUseRowNumbers, saveListing } from "../app/listing.ts"
import { VERSION } from "../app/version.ts"
import { grouped, joinNames } from "../core/format.ts"
import { lookAt } from "../core/look-at.ts"
import { syncWithThreads } from "../ingest/sync-thread.ts"
import { paint, type Terminal, terminalOf, wrap } from "../render/terminal.ts"
import { many, seconds, shortPath } from "../render/words.ts"
import type { Dex } from "../tools/context.ts"
import { describeDeletions, upcomingDeletions } from "../tools/deletions.ts"
import { describeConversations } from "../tools/kinds.ts"
import { list } from "../tools/list/list.ts"
import { sources } from "../tools/sources/sources.ts"
import { unreadNote } from "../tools/unread.ts"
import { printList } from "./print/list.ts"
import { ANOTHER_IS_READING, describeAdded, describeUnreadable, NOT_ALL_READ } from "./print/sync-news.ts"
import { asTyped, showFirst } from "./print/words.ts"
import { progressView } from "./progress.ts"

const MAX_NEWEST = 3
/** How long to read before the first rows are shown, in milliseconds. The rest is read in the background. */
const FIRST_READ_MS = 2_000

/** Runs `dex` without a command: syncs, shows what is stored, and suggests what to try next. */
export async function showHome(): Promise<number> {
  const terminal = terminalOf(process.stdout, process.env)
  const view = progressView(process.stderr, terminalOf(process.stderr, process.env))
  const controller = new AbortController()
  const startedAt = Date.now()
  const dex = createDex({
    env: process.env,
    cwd: process.cwd(),
    version: VERSION,
    onProgress: view.show,
    signal: controller.signal,
  })
  const interrupt = () => (controller.signal.aborted ? process.exit(130) : controller.abort())
  process.on("SIGINT", interrupt)
  const say = (line = "") => process.stdout.write(`${line}\n`)
  const sayWrapped = (line: string) => say(wrap(asTyped(line, terminal), terminal.columns).join("\n"))
  try {
    const isFirstRun = !dex.hasHistory()
    if (isFirstRun) {
      const folder = shortPath(dex.home.dir, dex.machine.home)
      const intro = `dex ${VERSION}: the memory that your coding agents share. It stays on this machine, in ${folder}.`
      say(`${wrap(intro, terminal.columns).join("\n")}\n`)
    }
    const report = await syncWithThreads(await dex.syncDeps(), dex.home.index, {
      pauseAt: startedAt + Number(process.env.DEX_FIRST_MS ?? FIRST_READ_MS),
      onProgress: view.show,
      signal: controller.signal,
    })
    view.stop()
    const sourcesReport = await sources.run(dex, {})
    const sourcesWithConversations = sourcesReport.sources.filter((source) => source.kept > 0)
    if (sourcesWithConversations.length === 0 && !report.busy) {
      sayWrapped(
        `No conversations were found yet. dex reads ${joinNames(agents.filter(hasHistoryFiles).map(({ name }) => name))}.`,
      )
      sayWrapped("`dex doctor sources` shows where it looked.")
      return 1
    }
    for (const source of sourcesWithConversations)
      say(
        `  ${paint(terminal, "cyan", source.source.padEnd(14))}${describeConversations(source.kinds)}, ${many(source.messages, "message")}`,
      )
    const found = sourcesReport.sources.filter(
      ({ source, kept, looked_in }) =>
        kept === 0 && !isDexSource(source) && looked_in.some((path) => lookAt(path) !== undefined),
    )
    if (!report.complete && found.length > 0)
      sayWrapped(`Found, but not read yet: ${joinNames(found.map(({ source }) => source))}.`)
    say()
    const unread = await unreadNote(dex)
    if (report.busy) sayWrapped(unread === undefined ? ANOTHER_IS_READING : `${ANOTHER_IS_READING} ${unread}`)
    else if (report.added_messages > 0) say(describeAdded(report))
    else say(`Nothing new (${seconds(report.duration_ms)}).`)
    if (!report.busy && !report.complete) await readRestInBackground(dex, controller.signal, sayWrapped)
    if (report.unreadable.length > 0) sayWrapped(describeUnreadable(report.unreadable))
    const deletions = await upcomingDeletions(dex)
    const deletionNote = deletions && describeDeletions(deletions)
    if (deletionNote !== undefined) sayWrapped(deletionNote)
    const { askToSpeak } = await import("./terminal/ask-to-speak.ts")
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

/** Announces the background sync before it starts, so that nothing runs without notice. Starts nothing after Ctrl-C. */
async function readRestInBackground(dex: Dex, signal: AbortSignal, sayWrapped: (line: string) => void): Promise<void> {
  if (signal.aborted) return sayWrapped(`Stopped. Everything read so far is kept. ${NOT_ALL_READ}`)
  const { done = 0, total = 0 } = (await (await dex.store()).progress()) ?? {}
  sayWrapped(
    `${grouped(total - done)} of ${grouped(total)} transcripts are not read yet. dex now reads them in the background, newest first; \`dex doctor\` shows the progress.`,
  )
  const { startBackgroundSync } = await import("../app/background.ts")
  if (!(await startBackgroundSync(dex.home.dir, process.env)))
    sayWrapped(`The background sync could not be started. ${NOT_ALL_READ}`)
}

/** Shows the newest conversations, and commands to try. Each command works exactly as shown. */
async function showNewest(dex: Dex, terminal: Terminal, say: (line?: string) => void): Promise<void> {
  const numbered = canUseRowNumbers()
  const newest = await list.run(dex, { in: "history", limit: MAX_NEWEST, offset: 0 })
  if (newest.conversations.length === 0) return
  const { lines, listing = [] } = printList(newest, { terminal, home: dex.machine.home, numbered })
  saveListing(dex.home.dir, listing)
  say()
  say(paint(terminal, "bold", "Newest"))
  for (const line of lines) say(line)
  say()
  say(paint(terminal, "bold", "Try"))
  const suggestCommand = (command: string) => say(`  ${asTyped(command, terminal)}`)
  suggestCommand(showFirst(listing, { numbered }))
  const exampleWord = await rarestWord(
    dex,
    newest.conversations.map(({ title }) => title),
  )
  if (exampleWord !== undefined) suggestCommand(`dex search ${exampleWord}`)
  suggestCommand("dex list")
}

/** The word of these titles that occurs in the fewest conversations, so that a search for it finds little else. */
async function rarestWord(dex: Dex, titles: string[]): Promise<string | undefined> {
  const realTitles = titles.filter((title) => title !== "(no title)")
  const words = [...new Set(realTitles.flatMap((title) => title.match(/\b[A-Za-z]{5,20}\b/g) ?? []))]
  const index = await dex.index()
  if (!index || words.length === 0) return undefined
  const { shares } = await index.sizes(words.map((word) => ({ words: word.toLowerCase() })))
  const [rarest] = words.map((word, i) => ({ word, share: shares[i]! })).sort((a, b) => a.share - b.share)
  return rarest?.word.toLowerCase()
}

/** True for an agent whose own files dex reads. */
function hasHistoryFiles({ source, connector }: Agent): boolean {
  return connector !== undefined && !isDexSource(source)
}
