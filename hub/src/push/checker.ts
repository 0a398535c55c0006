import { isSubprocessEnded, type Subprocess, subprocessFile } from "../../../src/subprocess/link.ts"
import { startThread } from "../../../src/subprocess/thread.ts"
import { HubProblem } from "../store/problem.ts"
import type { CheckedChunk, CheckResult, ChunkToCheck } from "./check-thread.ts"
import { checkPackedChunk } from "./incoming.ts"

export type ChunkChecker = {
  /** Throws a HubProblem if the chunk is refused. */
  check(hash: string, data: Uint8Array): Promise<CheckedChunk>
  /** The names of the rules that match something in a stored chunk. */
  secretRulesInChunk(data: Uint8Array): Promise<string[]>
  close(): Promise<void>
}

export type CheckerOptions = {
  threads?: number
  /** The time limit for one chunk, in milliseconds. A thread that takes longer is ended. */
  longestMs?: number
  log?(event: Record<string, unknown>): void
}

const MAX_CHECK_MS = 10_000
/**
 * How many times longer the check of a stored chunk may take. Chunks of earlier versions decompress to up to 64 MB, and nobody
 * waits for the result.
 */
const STORED_TIME_FACTOR = 12
/** The maximum number of waiting pushed chunks, all of which are in memory. Stored ones are checked one at a time. */
const MAX_QUEUE = 128
const MEMORY_MB = 256

type CheckThread = Subprocess<ChunkToCheck, CheckResult>
type CheckAnswer = Exclude<CheckResult, { problem: object }>
type WaitingChunk = { chunk: ChunkToCheck; resolve(answer: CheckAnswer): void; reject(error: Error): void }

/** Checks chunks in threads, which are started when the first chunks arrive. */
export function openChecker({ threads = 2, longestMs = MAX_CHECK_MS, log }: CheckerOptions = {}): ChunkChecker {
  const queue: WaitingChunk[] = []
  const idle: CheckThread[] = []
  const running = new Set<CheckThread>()
  const start = (): CheckThread => {
    const limits = { maxOldGenerationSizeMb: MEMORY_MB }
    const file = subprocessFile("./check-thread.ts", import.meta.url)
    const thread: CheckThread = startThread(file, { limits, isUnref: true })
    running.add(thread)
    thread.ended.then(() => {
      running.delete(thread)
      assignWaiting()
    })
    return thread
  }
  const assignWaiting = (): void => {
    while (queue.length > 0 && (idle.length > 0 || running.size < threads)) {
      const thread = idle.pop() ?? start()
      if (!thread.hasEnded()) assign(thread, queue.shift()!)
    }
  }
  const assign = async (thread: CheckThread, { chunk, resolve, reject }: WaitingChunk): Promise<void> => {
    let failure = {
      code: "failed",
      message: "The hub could not check this chunk. Its operator can find the reason in the log.",
    }
    const timer = setTimeout(
      () => {
        failure = {
          code: "too_slow",
          message: "The hub could not check this chunk in time. Its operator can raise DEX_HUB_CHUNK_SECONDS.",
        }
        thread.kill()
      },
      longestMs * (chunk.hash === undefined ? STORED_TIME_FACTOR : 1),
    )
    try {
      const answer = await thread.ask(chunk)
      if ("problem" in answer) reject(problemOf(answer))
      else resolve(answer)
    } catch (error) {
      log?.({ level: "error", event: "chunk", code: failure.code, bytes: chunk.data.length })
      reject(new HubProblem(422, failure.code, failure.message))
      if (!isSubprocessEnded(error)) await thread.kill()
    }
    clearTimeout(timer)
    if (!thread.hasEnded()) idle.push(thread)
    assignWaiting()
  }
  const ask = (chunk: ChunkToCheck): Promise<CheckAnswer> => {
    if (chunk.hash !== undefined && queue.length >= MAX_QUEUE)
      throw new HubProblem(503, "busy", "Too many pushes at once. Try again in a moment.", { afterSeconds: 1 })
    return new Promise((resolve, reject) => {
      queue.push({ chunk, resolve, reject })
      assignWaiting()
    })
  }
  return {
    check: async (hash, data) => {
      checkPackedChunk(hash, data)
      return (await ask({ hash, data })) as CheckedChunk
    },
    secretRulesInChunk: async (data) => ((await ask({ data })) as { rules: string[] }).rules,
    close: async () => {
      await Promise.all([...running].map((thread) => thread.kill()))
    },
  }
}

function problemOf({ problem }: Extract<CheckResult, { problem: object }>): HubProblem {
  const { status, code, message, rules } = problem
  return new HubProblem(status, code, message, rules && { rules })
}
