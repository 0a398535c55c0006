import { Worker } from "node:worker_threads"
import type { SourceId } from "../core/conversation.ts"
import { createProjectFinder } from "../git/project.ts"
import type { UnitWrite } from "../store/history/store.ts"
import { takeUnit } from "./read-unit.ts"
import type { SyncDeps } from "./sync-types.ts"
import { heapLimits, THREADS_PAY_FROM_BYTES, threadFile } from "./threads.ts"
import type { NamedUnit } from "./unit-names.ts"

/** Reads units: in this thread when there is little to do, in a worker while this thread stores when there is much. */
export type UnitReader = {
  /** How much may be under way before the first of it is stored. */
  ahead: { units: number; bytes: number }
  read(source: SourceId, unit: NamedUnit, replay: boolean): Promise<UnitWrite>
  close(): Promise<void>
}

/** Enough to keep reading while the index catches up, little enough to hold in memory. */
const AHEAD = { units: 256, bytes: 6 << 20 }

export function openReader(deps: SyncDeps, bytes: number, largestUnitBytes: number): UnitReader {
  const thread = threadReader(deps, largestUnitBytes)
  if (bytes >= THREADS_PAY_FROM_BYTES) return thread
  const inline = inlineReader(deps)
  const isOutside = (source: SourceId) => deps.connectors.some((one) => one.source === source && one.isOutside)
  return {
    ahead: inline.ahead,
    read: (source, unit, replay) => (isOutside(source) ? thread : inline).read(source, unit, replay),
    close: thread.close,
  }
}

function inlineReader(deps: SyncDeps): Omit<UnitReader, "close"> {
  const projectOf = createProjectFinder()
  return {
    ahead: { units: 1, bytes: 0 },
    read: (source, unit, replay) => {
      const connector = deps.connectors.find((candidate) => candidate.source === source)!
      return takeUnit(connector, unit, replay, { projectOf, dexDir: deps.home.dir, store: deps.store })
    },
  }
}

export type UnitOrder = { id: number; source: SourceId; unit: NamedUnit; replay: boolean }
export type ReadAnswer = { id: number; write: UnitWrite } | { id: number; error: string }

/** A unit that the reading thread died of, with all the memory it may have. */
export class TooLarge extends Error {}

/** A unit that the thread died of is tried once more, with so many times the memory. */
export const SECOND_TRY = 4

type PendingRead = {
  order: UnitOrder
  isSecondTry: boolean
  resolve: (write: UnitWrite) => void
  reject: (error: Error) => void
}

/**
 * The thread reads one unit after the other, in the order in which they are asked for: so when it dies, it died of the
 * first that waits. That one is tried once more; whatever comes of it, another thread goes on with the rest.
 */
function threadReader(deps: SyncDeps, largestUnitBytes: number): UnitReader {
  const waiting = new Map<number, PendingRead>()
  let next = 0
  let closed = false
  let worker: Worker | undefined

  function start(times: number): Worker {
    const started = new Worker(threadFile("read"), {
      workerData: { dexDir: deps.home.dir, history: deps.home.history, outside: deps.outside ?? [] },
      resourceLimits: heapLimits(largestUnitBytes * times),
    })
    let cause = "the reading thread ended"
    started.on("message", (answer: ReadAnswer) => {
      const asked = waiting.get(answer.id)
      waiting.delete(answer.id)
      if ("write" in answer) asked?.resolve(answer.write)
      else asked?.reject(new Error(answer.error))
    })
    started.on("error", (error) => {
      cause = error.message
    })
    started.on("exit", () => {
      if (!closed) goOn(cause)
    })
    for (const { order } of waiting.values()) started.postMessage(order)
    return started
  }

  function goOn(cause: string): void {
    const [first] = waiting.values()
    if (first?.isSecondTry) {
      waiting.delete(first.order.id)
      first.reject(new TooLarge(tooLarge(first.order.unit, cause)))
    } else if (first) first.isSecondTry = true
    const [now] = waiting.values()
    worker = now && start(now.isSecondTry ? SECOND_TRY : 1)
  }

  return {
    ahead: AHEAD,
    read: (source, unit, replay) =>
      new Promise((resolve, reject) => {
        const order: UnitOrder = { id: next++, source, unit, replay }
        waiting.set(order.id, { order, isSecondTry: false, resolve, reject })
        if (worker) worker.postMessage(order)
        else worker = start(1)
      }),
    close: async () => {
      closed = true
      await worker?.terminate()
    },
  }
}

function tooLarge(unit: NamedUnit, cause: string): string {
  const megabytes = Math.max(1, Math.round(unit.bytes / 1e6))
  return `too large to read: ${megabytes} MB on disk, and more memory than dex takes for one file (${cause}). It is tried again when it changes, or tomorrow.`
}
