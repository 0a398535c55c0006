import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { grouped } from "../../core/format.ts"
import { syncNews } from "../print/sync-news.ts"

type Watching = {
  /** How far it is, in a few words; empty once it has ended. */
  onProgress(words: string): void
  /** Some more can be found by now. */
  onMore(): void
  /** What to say of it, and whether the list may have changed. */
  onEnd(note: string, changed: boolean): void
}

/** What `dex sync --json` tells, as far as it is shown. */
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

/** What is read can be found about two seconds later. */
const MORE_EVERY_MS = 2_000

/**
 * Reads what is new in a process of its own; where another dex is at it, that one's progress is told, and what it did not see
 * is read after it. `stop` ends it in order: what was read is kept.
 */
export function syncWhilePicking({ onProgress, onMore, onEnd }: Watching): { stop(): void } {
  const child = spawn(process.execPath, [process.argv[1]!, "sync", "--json"], {
    stdio: ["ignore", "pipe", "pipe"],
  })
  let note = "Reading what is new failed: `dex sync` says why."
  let changed = false
  let said = { done: -1, at: Date.now() }
  const sayMore = (done: number) => {
    if (done <= said.done || Date.now() - said.at < MORE_EVERY_MS) return
    said = { done, at: Date.now() }
    onMore()
  }
  createInterface({ input: child.stdout }).on("line", (line) => {
    const told = toldIn(line)
    if (told.event === "progress") {
      // What another one read, it does not count.
      if (told.phase === "waiting") changed = true
      sayMore(told.done ?? 0)
      return onProgress(progressWords(told))
    }
    if (told.event !== "done") return
    note = noteOn(told)
    changed ||= (told.changed ?? 0) > 0
  })
  child.stderr.resume()
  let isStopped = false
  child.on("error", () => {}) // "close" follows
  child.on("close", () => {
    if (isStopped) return
    onProgress("")
    onEnd(note, changed)
  })
  return {
    stop: () => {
      isStopped = true
      child.kill("SIGINT")
      child.unref()
    },
  }
}

function toldIn(line: string): SyncLine {
  try {
    const told: unknown = JSON.parse(line)
    return typeof told === "object" && told !== null ? (told as SyncLine) : {}
  } catch {
    return {} // a line that was cut off by its end
  }
}

function progressWords({ done = 0, total = 0 }: SyncLine): string {
  return total > 0 ? `${grouped(done)} of ${grouped(total)}` : "reading"
}

/** What is left out of what it told is as good as none. */
function noteOn({
  busy = false,
  complete = true,
  added_messages = 0,
  duration_ms = 0,
  unreadable = [],
}: SyncLine): string {
  return syncNews({ busy, complete, added_messages, duration_ms, unreadable }).join(" ")
}
