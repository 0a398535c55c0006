import { setTimeout as pause } from "node:timers/promises"
import type { Machine } from "../agents/kit/connector.ts"
import type { EmbedSettings } from "../embed/embedder.ts"
import { isSubprocessEnded, subprocessFile } from "../subprocess/link.ts"
import { startThread } from "../subprocess/thread.ts"
import { heapLimits, MIN_BYTES_FOR_THREADS, RETRY_MEMORY_FACTOR } from "./reader.ts"
import { syncHistory } from "./sync.ts"
import type { SyncDeps, SyncOptions, SyncProgress, SyncReport } from "./sync-types.ts"

const POLL_MS = 100

export type SyncThreadRequest = {
  machine: Machine
  home: SyncDeps["home"] & { index: string }
  outsideAgents: readonly string[]
  options: Omit<SyncOptions, "signal" | "onProgress" | "embed" | "wait">
}

/**
 * Runs a sync. If there is little to read, this thread does all the work. Otherwise, one thread reads and another stores, so that
 * this thread stays free to show progress. The threads' heaps are small, so memory stays bounded for any amount of work.
 */
export async function syncWithThreads(
  deps: SyncDeps,
  indexPath: string,
  options: SyncOptions = {},
): Promise<SyncReport> {
  let report = await readAndStore(deps, indexPath, options)
  while (report.busy && options.wait && !isOver(options)) {
    await reportWaiting(deps, options)
    await pause(POLL_MS)
    report = await readAndStore(deps, indexPath, options)
  }
  if (!options.embed || report.busy) return report
  // Create vectors after the lock is released, so that another process can sync while this one waits for a server.
  const embedding = await embed(deps, options, options.embed)
  return embedding ? { ...report, embedding } : report
}

function isOver({ signal, deadline }: SyncOptions): boolean {
  return signal?.aborted === true || (deadline !== undefined && Date.now() >= deadline)
}

/** Shows the progress of the sync that another process is running. */
async function reportWaiting({ store }: SyncDeps, { onProgress }: SyncOptions): Promise<void> {
  if (!onProgress) return
  const { done, total } = (await store.progress()) ?? { done: 0, total: 0 }
  onProgress({ phase: "waiting", done, total, bytes: done, bytesTotal: total })
}

async function embed(deps: SyncDeps, { deadline, signal, onProgress }: SyncOptions, settings: () => EmbedSettings) {
  const { embedMessages } = await import("./embed-messages.ts")
  return embedMessages(deps, {
    settings,
    deadline,
    signal,
    onProgress:
      onProgress && ((done, total) => onProgress({ phase: "embedding", done, total, bytes: done, bytesTotal: total })),
  })
}

async function readAndStore(deps: SyncDeps, indexPath: string, options: SyncOptions): Promise<SyncReport> {
  const result = await syncHistory(deps, { ...options, maxBytes: MIN_BYTES_FOR_THREADS })
  if (!("largestUnitBytes" in result)) return result
  const { machine, home, outsideAgents = [] } = deps
  const request = { machine, home: { ...home, index: indexPath }, outsideAgents, options: threadOptions(options) }
  const report = await inThread(request, result.largestUnitBytes, options).catch((error) => {
    // A unit with many small values can need more memory than its size suggests, so the sync continues with larger heaps.
    if (!isSubprocessEnded(error) || error.code !== "ERR_WORKER_OUT_OF_MEMORY") throw error
    return inThread(request, result.largestUnitBytes * RETRY_MEMORY_FACTOR, options)
  })
  return { ...report, archived: report.archived + result.archived }
}

function threadOptions(options: SyncOptions): SyncThreadRequest["options"] {
  const { signal: _, onProgress: __, embed: ___, wait: ____, ...rest } = options
  return rest
}

function inThread(
  request: SyncThreadRequest,
  largestUnitBytes: number,
  { signal, onProgress }: SyncOptions,
): Promise<SyncReport> {
  const file = subprocessFile("./store-thread.ts", import.meta.url)
  const thread = startThread<SyncThreadRequest, SyncReport, SyncProgress>(file, {
    limits: heapLimits(largestUnitBytes),
  })
  return thread.ask(request, { signal, onEvent: onProgress }).finally(thread.end)
}
