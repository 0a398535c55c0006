import type { SourceId } from "../core/conversation.ts"
import { createPlaceFinder } from "../git/project.ts"
import type { UnitWrite } from "../store/history/store.ts"
import { isSubprocessEnded, type Subprocess, subprocessFile } from "../subprocess/link.ts"
import { startThread } from "../subprocess/thread.ts"
import { prepareUnit } from "./read-unit.ts"
import type { SyncDeps } from "./sync-types.ts"
import type { NamedUnit } from "./unit-names.ts"

/**
 * At least this many bytes are read in threads. For fewer, threads cost more than they save: each loads and compiles the program
 * again, and what one has read is copied to the other.
 */
export const MIN_BYTES_FOR_THREADS = 8 << 20

/** Reads units. If there is much to read, a worker thread reads while this thread stores. */
export type UnitReader = {
  /** The number of units and bytes that may be read before the first result is stored. */
  readAhead: { units: number; bytes: number }
  read(source: SourceId, unit: NamedUnit, replay: boolean): Promise<UnitWrite>
  close(): Promise<void>
}

/**
 * The amount to read ahead: enough to keep the thread busy while the index is updated, but not so much that it fills the memory.
 */
const READ_AHEAD = { units: 256, bytes: 6 << 20 }

export function openReader(deps: SyncDeps, bytes: number, largestUnitBytes: number): UnitReader {
  const thread = threadReader(deps, largestUnitBytes)
  if (bytes >= MIN_BYTES_FOR_THREADS) return thread
  const inline = inlineReader(deps)
  const isOutside = (source: SourceId) =>
    deps.connectors.some((connector) => connector.source === source && connector.isOutside)
  return {
    readAhead: inline.readAhead,
    read: (source, unit, replay) => (isOutside(source) ? thread : inline).read(source, unit, replay),
    close: thread.close,
  }
}

function inlineReader(deps: SyncDeps): Omit<UnitReader, "close"> {
  const placeOf = createPlaceFinder()
  return {
    readAhead: { units: 1, bytes: 0 },
    read: (source, unit, replay) => {
      const connector = deps.connectors.find((candidate) => candidate.source === source)!
      return prepareUnit(connector, unit, replay, { placeOf, dexDir: deps.home.dir, store: deps.store })
    },
  }
}

export type UnitRequest = { source: SourceId; unit: NamedUnit; replay: boolean }

/** The error for a unit that still ended the reading thread after dex had raised the thread's memory limit. */
export class UnitTooLargeError extends Error {}

/** The factor by which the memory limit is raised when a unit that ended the thread is read again. */
export const RETRY_MEMORY_FACTOR = 4

type PendingRead = {
  unitRequest: UnitRequest
  isSecondTry: boolean
  resolve: (write: UnitWrite) => void
  reject: (error: Error) => void
}

/**
 * Reads in a thread, in the order of the requests. If the thread dies, the first waiting unit is assumed to be the cause: a new
 * thread reads it once more, with a higher memory limit. If that thread dies too, the unit fails, and a new thread reads the
 * rest.
 */
function threadReader(deps: SyncDeps, largestUnitBytes: number): UnitReader {
  const waiting = new Set<PendingRead>()
  let isClosed = false
  let thread: Subprocess<UnitRequest, UnitWrite> | undefined

  function startReadThread(memoryFactor: number): typeof thread {
    const data = { dexDir: deps.home.dir, history: deps.home.history, outsideAgents: deps.outsideAgents ?? [] }
    const limits = heapLimits(largestUnitBytes * memoryFactor)
    thread = startThread<UnitRequest, UnitWrite>(subprocessFile("./read-thread.ts", import.meta.url), { data, limits })
    for (const request of waiting) sendTo(request, thread)
    thread.ended.then(({ message }) => {
      if (!isClosed) restart(message)
    })
    return thread
  }

  function sendTo(request: PendingRead, target: NonNullable<typeof thread>): void {
    const settle = (complete: () => void) => {
      waiting.delete(request)
      complete()
    }
    target.ask(request.unitRequest).then(
      (write) => settle(() => request.resolve(write)),
      (error) => isSubprocessEnded(error) || settle(() => request.reject(error)),
    )
  }

  function restart(cause: string): void {
    const [first] = waiting
    if (first?.isSecondTry) {
      waiting.delete(first)
      first.reject(new UnitTooLargeError(tooLargeMessage(first.unitRequest.unit, cause)))
    } else if (first) first.isSecondTry = true
    const [next] = waiting
    thread = next && startReadThread(next.isSecondTry ? RETRY_MEMORY_FACTOR : 1)
  }

  return {
    readAhead: READ_AHEAD,
    read: (source, unit, replay) =>
      new Promise((resolve, reject) => {
        const request = { unitRequest: { source, unit, replay }, isSecondTry: false, resolve, reject }
        waiting.add(request)
        if (thread) sendTo(request, thread)
        else startReadThread(1)
      }),
    close: async () => {
      isClosed = true
      await thread?.kill()
    },
  }
}

function tooLargeMessage(unit: NamedUnit, cause: string): string {
  const megabytes = Math.max(1, Math.round(unit.bytes / 1e6))
  return `too large to read: ${megabytes} MB on disk, and it needs more memory than dex uses for one file (${cause}). dex will try again when the file changes, or tomorrow.`
}

/**
 * A thread's heap limits. By default, V8 lets garbage grow to hundreds of megabytes before it collects. The heap needs room for
 * the largest unit, which is in memory several times while it is read, parsed and stored.
 */
export function heapLimits(largestUnitBytes: number): {
  maxYoungGenerationSizeMb: number
  maxOldGenerationSizeMb: number
} {
  return { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 56 + Math.ceil((largestUnitBytes * 12) / 1e6) }
}
