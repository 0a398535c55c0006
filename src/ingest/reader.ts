import type { SourceId } from "../core/conversation.ts"
import { createProjectFinder } from "../git/project.ts"
import type { UnitWrite } from "../store/history/store.ts"
import { isSubprocessEnded, type Subprocess, subprocessFile } from "../subprocess/link.ts"
import { startThread } from "../subprocess/thread.ts"
import { prepareUnit } from "./read-unit.ts"
import type { SyncDeps } from "./sync-types.ts"
import type { NamedUnit } from "./unit-names.ts"

/** Threads are used from this many bytes on, because starting them costs as much as reading this much. */
export const MIN_BYTES_FOR_THREADS = 4 << 20

/** Reads units: in this thread if there is little to do, otherwise in a worker while this thread stores. */
export type UnitReader = {
  /** How much may be read before the first result is stored. */
  readAhead: { units: number; bytes: number }
  read(source: SourceId, unit: NamedUnit, replay: boolean): Promise<UnitWrite>
  close(): Promise<void>
}

/** How much is read ahead: enough to keep reading while the index is updated, small enough for memory. */
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
  const projectOf = createProjectFinder()
  return {
    readAhead: { units: 1, bytes: 0 },
    read: (source, unit, replay) => {
      const connector = deps.connectors.find((candidate) => candidate.source === source)!
      return prepareUnit(connector, unit, replay, { projectOf, dexDir: deps.home.dir, store: deps.store })
    },
  }
}

export type UnitOrder = { source: SourceId; unit: NamedUnit; replay: boolean }

/** The error for a unit that ended the reading thread, even with all the memory that dex allows. */
export class UnitTooLargeError extends Error {}

/** A unit that ended the thread gets this many times the memory in its second attempt. */
export const RETRY_MEMORY_FACTOR = 4

type PendingRead = {
  order: UnitOrder
  isSecondTry: boolean
  resolve: (write: UnitWrite) => void
  reject: (error: Error) => void
}

/**
 * Reads in a thread, in the order of the requests. If the thread dies, the first waiting unit is the cause. That unit is retried
 * once. A new thread then continues, with or without it.
 */
function threadReader(deps: SyncDeps, largestUnitBytes: number): UnitReader {
  const waiting = new Set<PendingRead>()
  let isClosed = false
  let thread: Subprocess<UnitOrder, UnitWrite> | undefined

  function start(memoryFactor: number): typeof thread {
    const data = { dexDir: deps.home.dir, history: deps.home.history, outside: deps.outside ?? [] }
    const limits = heapLimits(largestUnitBytes * memoryFactor)
    thread = startThread<UnitOrder, UnitWrite>(subprocessFile("./read-thread.ts", import.meta.url), { data, limits })
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
    target.ask(request.order).then(
      (write) => settle(() => request.resolve(write)),
      (error) => isSubprocessEnded(error) || settle(() => request.reject(error)),
    )
  }

  function restart(cause: string): void {
    const [first] = waiting
    if (first?.isSecondTry) {
      waiting.delete(first)
      first.reject(new UnitTooLargeError(tooLarge(first.order.unit, cause)))
    } else if (first) first.isSecondTry = true
    const [next] = waiting
    thread = next && start(next.isSecondTry ? RETRY_MEMORY_FACTOR : 1)
  }

  return {
    readAhead: READ_AHEAD,
    read: (source, unit, replay) =>
      new Promise((resolve, reject) => {
        const request = { order: { source, unit, replay }, isSecondTry: false, resolve, reject }
        waiting.add(request)
        if (thread) sendTo(request, thread)
        else start(1)
      }),
    close: async () => {
      isClosed = true
      await thread?.kill()
    },
  }
}

function tooLarge(unit: NamedUnit, cause: string): string {
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
