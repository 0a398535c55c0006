import { createRequire } from "node:module"
import { grouped } from "../core/format.ts"
import type { SyncProgress } from "../ingest/sync-types.ts"
import type { Terminal } from "../render/terminal.ts"

/** Shows how long work goes on: a bar on a terminal, a line now and then in a pipe. `stop` leaves nothing behind. */
export type ProgressView = { show(progress: SyncProgress): void; stop(): void }

/** Work shorter than this shows nothing: a bar that flashes up is noise. */
const QUIET_MS = 400
const LINE_EVERY_MS = 2_000

export async function progressView(stream: NodeJS.WriteStream, terminal: Terminal): Promise<ProgressView> {
  return terminal.interactive ? bar(stream, terminal) : lines(stream)
}

async function bar(stream: NodeJS.WriteStream, terminal: Terminal): Promise<ProgressView> {
  // In the bundle this CommonJS package asks for Node's own modules by a require that ES modules do not have.
  globalThis.require ??= createRequire(import.meta.url)
  const { default: library } = await import("cli-progress")
  let started = Date.now()
  let phase: SyncProgress["phase"] | undefined
  const single = new library.SingleBar({
    stream,
    format: "{phase} {bar} {done} of {total_units}{rate}{left}",
    barsize: Math.max(10, Math.min(30, terminal.columns - 60)),
    barCompleteChar: "█",
    barIncompleteChar: "░",
    hideCursor: true,
    clearOnComplete: true,
    linewrap: false,
    noTTYOutput: false,
    fps: 10,
  })
  let running = false
  return {
    show: (progress) => {
      if (running && !inBytes(progress) && phase !== progress.phase) {
        started = Date.now()
        single.setTotal(progress.bytesTotal)
      }
      phase = progress.phase
      const elapsed = Date.now() - started
      if (!running && elapsed < QUIET_MS) return
      const payload = payloadOf(progress, elapsed)
      if (!running) {
        single.start(Math.max(1, progress.bytesTotal), progress.bytes, payload)
        running = true
      }
      single.update(progress.bytes, payload)
      // Storing keeps this thread busy, so the bar's own timer comes too seldom.
      single.render()
    },
    stop: () => {
      if (running) single.stop()
      running = false
    },
  }
}

/** Questions and messages are counted one by one. */
function inBytes({ phase }: SyncProgress): boolean {
  return phase === "reading" || phase === "indexing"
}

function payloadOf(progress: SyncProgress, elapsedMs: number): Record<string, string> {
  const perMs = progress.bytes / Math.max(1, elapsedMs)
  const isKnown = perMs > 0
  return {
    phase: {
      waiting: "Another dex reads",
      reading: "Reading",
      indexing: "Indexing",
      asking: "Asking",
      embedding: "Embedding",
      mapping: "Mapping",
      learning: "Learning",
      sending: "Sending",
    }[progress.phase],
    done: grouped(progress.done),
    total_units: grouped(progress.total),
    rate: inBytes(progress) && isKnown ? ` · ${(perMs / 1000).toFixed(perMs < 1e4 ? 1 : 0)} MB/s` : spentOf(progress),
    left: isKnown ? ` · ${Math.ceil((progress.bytesTotal - progress.bytes) / perMs / 1000)} s left` : "",
  }
}

function spentOf({ tokens }: SyncProgress): string {
  return tokens === undefined ? "" : ` · ${grouped(tokens)} tokens spent`
}

function lines(stream: NodeJS.WriteStream): ProgressView {
  let saidAt = Date.now()
  return {
    show: (progress) => {
      if (Date.now() - saidAt < LINE_EVERY_MS) return
      saidAt = Date.now()
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
