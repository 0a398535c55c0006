import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { grouped } from "../../core/format.ts"
import { syncNews } from "../print/sync-news.ts"

type SyncEvents = {
  /** The progress in a few words; empty when the sync has ended. */
  onProgress(words: string): void
  /** Called when more conversations can be found. */
  onMore(): void
  /** Called when the sync has ended. `note` is the note to show; `changed` is true if the list may have changed. */
  onEnd(note: string, changed: boolean): void
}

/** A line of `dex sync --json`: only the fields that are used here. */
type SyncLine = {
  event?: "progress" | "done"
  phase?: string
  done?: number
  total?: number
  bytes?: number
  bytesTotal?: number
  busy?: boolean
  complete?: boolean
  changed?: number
  added_messages?: number
  duration_ms?: number
  unreadable?: unknown[]
}

/**
 * The minimum time between two refreshes, in milliseconds. Messages can be found about two seconds after they are read. In the
 * first seconds, a first sync fills the list, so it is refreshed more often.
 */
const REFRESH_INTERVAL_MS = 2_000
const FIRST_REFRESH_INTERVAL_MS = 500
const FIRST_MS = 5_000
/** The remaining time is estimated once this much time has passed, and this share was read: starting takes time too. */
const ESTIMATE_AFTER_MS = 3_000
const ESTIMATE_FROM_SHARE = 0.05

/**
 * Syncs in a subprocess. If another dex process is already syncing, reports the progress of that process, then reads what that
 * process missed. `stop` ends the sync cleanly: everything read so far is kept.
 */
export function syncWhilePicking({ onProgress, onMore, onEnd }: SyncEvents): { stop(): void } {
  const child = spawn(process.execPath, [process.argv[1]!, "sync", "--json"], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, DEX_FILLS_LIST: "1" },
  })
  let note = "New conversations could not be read. Run `dex sync` to see why."
  let hasChanged = false
  const startedAt = Date.now()
  let lastReport = { done: -1, at: startedAt }
  const reportMore = (done: number) => {
    const interval = Date.now() - startedAt < FIRST_MS ? FIRST_REFRESH_INTERVAL_MS : REFRESH_INTERVAL_MS
    if (done <= lastReport.done || Date.now() - lastReport.at < interval) return
    lastReport = { done, at: Date.now() }
    onMore()
  }
  createInterface({ input: child.stdout }).on("line", (line) => {
    const event = parseEvent(line)
    if (event.event === "progress") {
      // This sync will not count the messages that the other process reads.
      if (event.phase === "waiting") hasChanged = true
      reportMore(event.done ?? 0)
      return onProgress(progressWords(event, Date.now() - startedAt))
    }
    if (event.event !== "done") return
    note = noteFor(event)
    hasChanged ||= (event.changed ?? 0) > 0
  })
  child.stderr.resume()
  let isStopped = false
  child.on("error", () => {}) // "close" follows
  child.on("close", () => {
    if (isStopped) return
    onProgress("")
    onEnd(note, hasChanged)
  })
  return {
    stop: () => {
      isStopped = true
      child.kill("SIGINT")
      child.unref()
    },
  }
}

function parseEvent(line: string): SyncLine {
  try {
    const event: unknown = JSON.parse(line)
    return typeof event === "object" && event !== null ? (event as SyncLine) : {}
  } catch {
    return {} // the process ended in the middle of the line
  }
}

function progressWords({ done = 0, total = 0, bytes = 0, bytesTotal = 0 }: SyncLine, elapsedMs: number): string {
  if (total === 0) return "reading"
  const minutes = ((elapsedMs / Math.max(1, bytes)) * (bytesTotal - bytes)) / 60_000
  const estimate =
    elapsedMs < ESTIMATE_AFTER_MS || bytes < bytesTotal * ESTIMATE_FROM_SHARE || minutes < 1
      ? ""
      : `, about ${Math.ceil(minutes)} min`
  return `${grouped(done)} of ${grouped(total)}${estimate}`
}

function noteFor({
  busy = false,
  complete = true,
  added_messages = 0,
  duration_ms = 0,
  unreadable = [],
}: SyncLine): string {
  return syncNews({ busy, complete, added_messages, duration_ms, unreadable }).join(" ")
}
