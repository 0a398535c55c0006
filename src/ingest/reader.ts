import { Worker } from "node:worker_threads"
import type { Unit } from "../connectors/connector.ts"
import type { SourceId } from "../core/conversation.ts"
import { createProjectFinder } from "../git/project.ts"
import type { UnitWrite } from "../store/store.ts"
import { takeUnit } from "./read-unit.ts"
import type { SyncDeps } from "./sync.ts"
import { heapLimits, THREADS_PAY_FROM_BYTES, threadFile } from "./threads.ts"

/** Reads units: in this thread when there is little to do, in a worker while this thread stores when there is much. */
export type Reader = {
  /** How much may be under way before the first of it is stored. */
  ahead: { units: number; bytes: number }
  read(source: SourceId, unit: Unit, replay: boolean): Promise<UnitWrite>
  close(): Promise<void>
}

/** Enough to keep reading while the index catches up, little enough to hold in memory. */
const AHEAD = { units: 256, bytes: 6 << 20 }

export async function openReader(deps: SyncDeps, bytes: number, largestUnitBytes: number): Promise<Reader> {
  return bytes < THREADS_PAY_FROM_BYTES ? inlineReader(deps) : threadReader(deps, largestUnitBytes)
}

function inlineReader(deps: SyncDeps): Reader {
  const projectOf = createProjectFinder()
  return {
    ahead: { units: 1, bytes: 0 },
    read: (source, unit, replay) => {
      const connector = deps.connectors.find((candidate) => candidate.source === source)!
      return takeUnit(connector, unit, replay, { projectOf, dexDir: deps.home.dir, store: deps.store })
    },
    close: async () => {},
  }
}

export type ReadOrder = { id: number; source: SourceId; unit: Unit; replay: boolean }
export type ReadAnswer = { id: number; write: UnitWrite } | { id: number; error: string }

function threadReader(deps: SyncDeps, largestUnitBytes: number): Reader {
  const worker = new Worker(threadFile("read"), {
    workerData: { dexDir: deps.home.dir, history: deps.home.history },
    resourceLimits: heapLimits(largestUnitBytes),
  })
  const waiting = new Map<number, { resolve: (write: UnitWrite) => void; reject: (error: Error) => void }>()
  let next = 0
  worker.on("message", (answer: ReadAnswer) => {
    const asked = waiting.get(answer.id)
    waiting.delete(answer.id)
    if ("write" in answer) asked?.resolve(answer.write)
    else asked?.reject(new Error(answer.error))
  })
  const fail = (error: Error) => {
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
  }
  worker.on("error", fail)
  worker.on("exit", () => fail(new Error("The reading thread ended early")))
  return {
    ahead: AHEAD,
    read: (source, unit, replay) =>
      new Promise((resolve, reject) => {
        const id = next++
        waiting.set(id, { resolve, reject })
        worker.postMessage({ id, source, unit, replay } satisfies ReadOrder)
      }),
    close: async () => {
      await worker.terminate()
    },
  }
}
