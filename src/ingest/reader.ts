import { Worker } from "node:worker_threads"
import type { Unit } from "../connectors/connector.ts"
import type { SourceId } from "../core/conversation.ts"
import { createProjectFinder } from "../git/project.ts"
import type { KnownUnit, UnitWrite } from "../store/store.ts"
import { readUnit, replayUnit } from "./read-unit.ts"
import type { SyncDeps } from "./sync.ts"

/** Reads units: in this thread when there is little to do, in a worker while this thread stores when there is much. */
export type Reader = {
  /** How many units may be under way before the first of them is stored. */
  ahead: number
  read(source: SourceId, unit: Unit, known: KnownUnit | undefined, replay: boolean): Promise<UnitWrite>
  close(): Promise<void>
}

/** Starting a worker costs as much as reading about this many bytes. */
const WORKER_PAYS_FROM_BYTES = 4 << 20
const AHEAD = 4

export async function openReader(deps: SyncDeps, bytes: number): Promise<Reader> {
  return bytes < WORKER_PAYS_FROM_BYTES ? inlineReader(deps) : workerReader(deps)
}

function inlineReader(deps: SyncDeps): Reader {
  const projectOf = createProjectFinder()
  return {
    ahead: 1,
    read: (source, unit, known, replay) => {
      const connector = deps.connectors.find((candidate) => candidate.source === source)!
      const context = {
        projectOf,
        dexDir: deps.home.dir,
        rawLines: (key: string, kind: "live" | "left") => deps.store.rawLines(source, key, kind),
      }
      return replay && known
        ? replayUnit(connector, unit, known.cursor, context)
        : readUnit(connector, unit, known, context)
    },
    close: async () => {},
  }
}

export type WorkerJob = { id: number; source: SourceId; unit: Unit; known: KnownUnit | undefined; replay: boolean }
export type WorkerAnswer = { id: number; write: UnitWrite } | { id: number; error: string }

function workerReader(deps: SyncDeps): Reader {
  // Source files run as they are in development; the bundle has the worker beside it.
  const file = import.meta.url.endsWith(".ts") ? "./worker.ts" : "../worker.js"
  const worker = new Worker(new URL(file, import.meta.url), {
    workerData: { dexDir: deps.home.dir, history: deps.home.history },
    // A small young generation: the default lets garbage of the parser grow to hundreds of megabytes.
    resourceLimits: { maxYoungGenerationSizeMb: 12 },
  })
  const waiting = new Map<number, { resolve: (write: UnitWrite) => void; reject: (error: Error) => void }>()
  let next = 0
  worker.on("message", (answer: WorkerAnswer) => {
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
    read: (source, unit, known, replay) =>
      new Promise((resolve, reject) => {
        const id = next++
        waiting.set(id, { resolve, reject })
        worker.postMessage({ id, source, unit, known, replay } satisfies WorkerJob)
      }),
    close: async () => {
      await worker.terminate()
    },
  }
}
