import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { grouped } from "../../core/format.ts"
import { syncNews } from "../print/sync-news.ts"

type SyncEvents = {
  /** The progress in a few words; empty when the sync has ended. */
  onProgress(words: string): void
  /** Called when more conversations can be found. */
  onMore(): void
  /** The note to show, and whether the list may have changed. */
  onEnd(note: string, changed: boolean): void
}

/** A line of `dex sync --json`: only the fields that are used here. */
type SyncLine = {
  event?: "progress" | "done"
  phase?: string
  done?: number
  total?: number
  busy?: boolean
  complete?: boolean
  changed?: number
  added_messages?: number
  duration_ms?: number
  unreadable?: unknown[]
}

/** How often to look for new rows, in milliseconds. Messages can be found about two seconds after they are read. */
const REFRESH_INTERVAL_MS = 2_000

/**
 * Syncs in a subprocess. If another dex process is already syncing, shows its progress, and then reads what it missed. `stop`
 * ends the sync cleanly: everything read so far is kept.
 */
export function syncWhilePicking({ onProgress, onMore, onEnd }: SyncEvents): { stop(): void } {
  const child = spawn(process.execPath, [process.argv[1]!, "sync", "--json"], {
    stdio: ["ignore", "pipe", "pipe"],
  })
  let note = "New conversations could not be read. Run `dex sync` to see why."
  let hasChanged = false
  let lastReport = { done: -1, at: Date.now() }
  const reportMore = (done: number) => {
    if (done <= lastReport.done || Date.now() - lastReport.at < REFRESH_INTERVAL_MS) return
    lastReport = { done, at: Date.now() }
    onMore()
  }
  createInterface({ input: child.stdout }).on("line", (line) => {
    const event = parseEvent(line)
    if (event.event === "progress") {
      // Another process is syncing, and this sync will not count the messages that it reads.
      if (event.phase === "waiting") hasChanged = true
      reportMore(event.done ?? 0)
      return onProgress(progressWords(event))
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

function progressWords({ done = 0, total = 0 }: SyncLine): string {
  return total > 0 ? `${grouped(done)} of ${grouped(total)}` : "reading"
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
