import { grouped } from "../core/format.ts"
import type { SyncProgress } from "../ingest/sync-types.ts"
import type { Terminal } from "../render/terminal.ts"

/** Shows progress: a bar on a terminal, a line every two seconds in a pipe. `stop` removes the bar. */
export type ProgressView = { show(progress: SyncProgress): void; stop(): void }

/** How long to wait before showing anything, in milliseconds, because a bar that disappears at once is distracting. */
const QUIET_MS = 400
const LINE_INTERVAL_MS = 2_000

const DRAW_INTERVAL_MS = 100
/** Hides the cursor and turns off line wrapping, so that a line that is too long is cut off. */
const START_BAR = "\x1b[?25l\x1b[?7l"
const END_BAR = "\r\x1b[K\x1b[?25h\x1b[?7h"

export function progressView(stream: NodeJS.WriteStream, terminal: Terminal): ProgressView {
  return terminal.interactive ? drawBar(stream, terminal) : printLines(stream)
}

function drawBar(stream: NodeJS.WriteStream, terminal: Terminal): ProgressView {
  const barSize = Math.max(10, Math.min(30, terminal.columns - 60))
  let startedAt = Date.now()
  let phase: SyncProgress["phase"] | undefined
  let isRunning = false
  let drawnAt = 0
  const stop = () => {
    if (isRunning) stream.write(END_BAR)
    isRunning = false
    process.off("exit", stop).off("SIGINT", onSignal).off("SIGTERM", onSignal)
  }
  /** Removes the bar, then lets the signal do what it does by default. */
  const onSignal = (signal: NodeJS.Signals) => {
    stop()
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
  }
  return {
    show: (progress) => {
      const isNewPhase = phase !== progress.phase
      if (isRunning && !countsBytes(progress) && isNewPhase) startedAt = Date.now()
      phase = progress.phase
      const now = Date.now()
      if (!isRunning && now - startedAt < QUIET_MS) return
      if (!isRunning) {
        stream.write(START_BAR)
        isRunning = true
        process.once("exit", stop).once("SIGINT", onSignal).once("SIGTERM", onSignal)
      }
      if (!isNewPhase && now - drawnAt < DRAW_INTERVAL_MS) return
      drawnAt = now
      const filled = Math.round(barSize * Math.min(1, progress.bytes / Math.max(1, progress.bytesTotal)))
      stream.write(`\r${lineOf(progress, "█".repeat(filled) + "░".repeat(barSize - filled), now - startedAt)}\x1b[K`)
    },
    stop,
  }
}

/** True if `bytes` is a number of bytes. In the other phases it counts what is done: questions, messages or conversations. */
function countsBytes({ phase }: SyncProgress): boolean {
  return phase === "reading" || phase === "importing" || phase === "indexing"
}

function lineOf(progress: SyncProgress, bar: string, elapsedMs: number): string {
  const name = {
    waiting: "Another dex process is reading",
    reading: "Reading",
    importing: "Importing MB",
    indexing: "Indexing",
    asking: "Asking",
    embedding: "Embedding",
    mapping: "Mapping",
    learning: "Learning",
    sending: "Sending",
  }[progress.phase]
  const bytesPerMs = progress.bytes / Math.max(1, elapsedMs)
  const hasRate = bytesPerMs > 0
  const rate =
    countsBytes(progress) && hasRate
      ? ` · ${(bytesPerMs / 1000).toFixed(bytesPerMs < 1e4 ? 1 : 0)} MB/s`
      : spentText(progress)
  const timeLeft = hasRate ? ` · ${Math.ceil((progress.bytesTotal - progress.bytes) / bytesPerMs / 1000)} s left` : ""
  return `${name} ${bar} ${grouped(progress.done)} of ${grouped(progress.total)}${rate}${timeLeft}`
}

function spentText({ tokens }: SyncProgress): string {
  return tokens === undefined ? "" : ` · ${grouped(tokens)} tokens spent`
}

function printLines(stream: NodeJS.WriteStream): ProgressView {
  let printedAt = Date.now()
  return {
    show: (progress) => {
      if (Date.now() - printedAt < LINE_INTERVAL_MS) return
      printedAt = Date.now()
      const units = {
        waiting: "transcripts that another dex process reads",
        reading: "transcripts",
        importing: "MB",
        indexing: "transcripts",
        asking: "questions",
        embedding: "messages",
        mapping: "batches",
        learning: "conversations and subagents",
        sending: "conversations",
      }[progress.phase]
      stream.write(
        `${progress.phase} ${grouped(progress.done)} of ${grouped(progress.total)} ${units}${spentText(progress)}\n`,
      )
    },
    stop: () => {},
  }
}
