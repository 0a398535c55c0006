import { Worker } from "node:worker_threads"
import { HubProblem } from "../store/problem.ts"
import type { CheckedChunk, FromCheck, ToCheck } from "./check-thread.ts"
import { checkSent } from "./incoming.ts"

export type ChunkChecker = {
  /** Throws a HubProblem if the chunk is not taken. */
  check(hash: string, data: Uint8Array): Promise<CheckedChunk>
  /** The rules that find something in a chunk which the hub has. */
  rulesIn(data: Uint8Array): Promise<string[]>
  close(): Promise<void>
}

export type CheckerOptions = {
  threads?: number
  /** For one chunk. The thread that takes longer is ended. */
  longestMs?: number
  log?(event: Record<string, unknown>): void
}

const LONGEST_MS = 10_000
/** Chunks of earlier versions unpack to 64 MB, and nobody waits for these. */
const KEPT_TIMES = 12
/** Chunks that wait are in memory. */
const LONGEST_QUEUE = 128
const MEMORY_MB = 256

type Answer = Exclude<FromCheck, { problem: object }>
type Waiting = { asked: Omit<ToCheck, "id">; resolve(answer: Answer): void; reject(error: Error): void }

/** Threads are started when there is something to look at. */
export function openChecker({ threads = 2, longestMs = LONGEST_MS, log }: CheckerOptions = {}): ChunkChecker {
  const queue: Waiting[] = []
  const idle: Worker[] = []
  const all = new Set<Worker>()
  let ids = 0
  const start = (): Worker => {
    const worker = new Worker(threadFile(), { resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB } })
    worker.unref()
    all.add(worker)
    worker.on("error", () => {}) // who waits is told when it exits
    worker.once("exit", () => {
      all.delete(worker)
      const place = idle.indexOf(worker)
      if (place >= 0) idle.splice(place, 1)
      next()
    })
    return worker
  }
  const next = (): void => {
    while (queue.length > 0 && (idle.length > 0 || all.size < threads)) give(idle.pop() ?? start(), queue.shift()!)
  }
  const give = (worker: Worker, { asked, resolve, reject }: Waiting): void => {
    const id = ++ids
    let why = { code: "failed", message: "The hub could not look at this chunk." }
    const timer = setTimeout(
      () => {
        why = { code: "too_slow", message: "The hub could not look at this chunk in time." }
        void worker.terminate()
      },
      longestMs * (asked.hash === undefined ? KEPT_TIMES : 1),
    )
    const ended = () => {
      clearTimeout(timer)
      log?.({ level: "error", event: "chunk", code: why.code, bytes: asked.data.length })
      reject(new HubProblem(422, why.code, why.message))
    }
    worker.once("exit", ended)
    worker.once("message", (answer: FromCheck) => {
      clearTimeout(timer)
      worker.off("exit", ended)
      idle.push(worker)
      if ("problem" in answer) reject(problemOf(answer))
      else resolve(answer)
      next()
    })
    worker.postMessage({ id, ...asked } satisfies ToCheck)
  }
  const ask = (asked: Omit<ToCheck, "id">): Promise<Answer> => {
    if (queue.length >= LONGEST_QUEUE)
      throw new HubProblem(503, "busy", "Too many push at once. Try again in a moment.", { afterSeconds: 1 })
    return new Promise((resolve, reject) => {
      queue.push({ asked, resolve, reject })
      next()
    })
  }
  return {
    check: async (hash, data) => {
      checkSent(hash, data)
      return (await ask({ hash, data })) as CheckedChunk
    },
    rulesIn: async (data) => ((await ask({ data })) as { rules: string[] }).rules,
    close: async () => {
      await Promise.all([...all].map((worker) => worker.terminate()))
    },
  }
}

function problemOf({ problem }: Extract<FromCheck, { problem: object }>): HubProblem {
  const { status, code, message, rules } = problem
  return new HubProblem(status, code, message, rules && { rules })
}

/** Beside this file, as it is written or as it is built. */
function threadFile(): URL {
  return new URL(`./check-thread${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url)
}
