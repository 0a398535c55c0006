import { grouped } from "../core/format.ts"
import type { SyncProgress } from "../ingest/sync-types.ts"
import type { Terminal } from "../render/terminal.ts"

/** Shows progress: a bar on a terminal, a line every two seconds in a pipe. `stop` removes the bar. */
export type ProgressView = { show(progress: SyncProgress): void; stop(): void }

/** How long to wait before showing anything, in milliseconds, because a bar that flashes up is distracting. */
const QUIET_MS = 400
const LINE_EVERY_MS = 2_000

const DRAW_EVERY_MS = 100
/** Hides the cursor and turns off line wrapping, so that a line that is too long is cut off. */
const BEGIN = "\x1b[?25l\x1b[?7l"
const END = "\r\x1b[K\x1b[?25h\x1b[?7h"

export function progressView(stream: NodeJS.WriteStream, terminal: Terminal): ProgressView {
  return terminal.interactive ? bar(stream, terminal) : lines(stream)
}

function bar(stream: NodeJS.WriteStream, terminal: Terminal): ProgressView {
  const size = Math.max(10, Math.min(30, terminal.columns - 60))
  let started = Date.now()
  let phase: SyncProgress["phase"] | undefined
  let running = false
  let drawnAt = 0
  const stop = () => {
    if (running) stream.write(END)
    running = false
    process.off("exit", stop).off("SIGINT", interrupted).off("SIGTERM", interrupted)
  }
  /** Removes the bar, then lets the signal do what it does by default. */
  const interrupted = (signal: NodeJS.Signals) => {
    stop()
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
  }
  return {
    show: (progress) => {
      const isNext = phase !== progress.phase
      if (running && !inBytes(progress) && isNext) started = Date.now()
      phase = progress.phase
      const now = Date.now()
      if (!running && now - started < QUIET_MS) return
      if (!running) {
        stream.write(BEGIN)
        running = true
        process.once("exit", stop).once("SIGINT", interrupted).once("SIGTERM", interrupted)
      }
      if (!isNext && now - drawnAt < DRAW_EVERY_MS) return
      drawnAt = now
      const full = Math.round(size * Math.min(1, progress.bytes / Math.max(1, progress.bytesTotal)))
      stream.write(`\r${lineOf(progress, "█".repeat(full) + "░".repeat(size - full), now - started)}\x1b[K`)
    },
    stop,
  }
}

/** True if progress is counted in bytes. Other phases count questions, messages or conversations. */
function inBytes({ phase }: SyncProgress): boolean {
  return phase === "reading" || phase === "indexing"
}

function lineOf(progress: SyncProgress, bar: string, elapsedMs: number): string {
  const name = {
    waiting: "Another dex reads",
    reading: "Reading",
    indexing: "Indexing",
    asking: "Asking",
    embedding: "Embedding",
    mapping: "Mapping",
    learning: "Learning",
    sending: "Sending",
  }[progress.phase]
  const perMs = progress.bytes / Math.max(1, elapsedMs)
  const isKnown = perMs > 0
  const rate =
    inBytes(progress) && isKnown ? ` · ${(perMs / 1000).toFixed(perMs < 1e4 ? 1 : 0)} MB/s` : spentOf(progress)
  const left = isKnown ? ` · ${Math.ceil((progress.bytesTotal - progress.bytes) / perMs / 1000)} s left` : ""
  return `${name} ${bar} ${grouped(progress.done)} of ${grouped(progress.total)}${rate}${left}`
}

function spentOf({ tokens }: SyncProgress): string {
  return tokens === undefined ? "" : ` · ${grouped(tokens)} tokens spent`
}

function lines(stream: NodeJS.WriteStream): ProgressView {
  let printedAt = Date.now()
  return {
    show: (progress) => {
      if (Date.now() - printedAt < LINE_EVERY_MS) return
      printedAt = Date.now()
      const units = {
        waiting: "transcripts that another dex reads",
        reading: "transcripts",
        indexing: "transcripts",
        asking: "questions",
        embedding: "messages",
        mapping: "batches",
        learning: "conversations and subagents",
        sending: "conversations",
      }[progress.phase]
      stream.write(
        `${progress.phase} ${grouped(progress.done)} of ${grouped(progress.total)} ${units}${spentOf(progress)}\n`,
      )
    },
    stop: () => {},
  }
}
