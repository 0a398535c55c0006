import { dexHome } from "../../config/home.ts"
import { messageOf } from "../../core/error.ts"
import { type Subprocess, subprocessFile } from "../../subprocess/link.ts"
import { startThread } from "../../subprocess/thread.ts"
import type { ExtraFacts } from "../../tools/context.ts"
import { createThreadLock } from "./thread-lock.ts"

export type ThreadStart = { env: Record<string, string | undefined>; cwd: string; version: string }
export type ServeThreadOrder = { type: "read" } | { type: "learn"; extraFacts: ExtraFacts }
export type ThreadAnswer =
  | { type: "read"; complete: boolean; lacksVectors: boolean }
  | { type: "learned"; notes: string[] }

export type Freshness = {
  /** Resolves when everything new has been read, or after `withinMs`; reading then continues in the background. Never throws. */
  readNewMessages(withinMs: number, signal?: AbortSignal): Promise<void>
  /**
   * Updates the facts, and returns notes about anything that was not learned yet. After `withinMs`, learning continues in
   * the background. Never throws.
   */
  learn(extraFacts: ExtraFacts, withinMs: number, signal?: AbortSignal): Promise<string[]>
  /** The time up to which everything has been read. Undefined if this server has not read everything yet. */
  asOf(): number | undefined
  /** Stops reading after the current conversation. Returns false if it was still reading after `withinMs`. */
  stop(withinMs: number): Promise<boolean>
}

/** The minimum time between two reads of new messages, in milliseconds, so that a burst of calls causes only one. */
const READ_INTERVAL_MS = 1_000
/** A small heap, because there are as many servers as running agents. */
const HEAP_LIMITS = { maxYoungGenerationSizeMb: 6 }
/** The minimum time between two starts of an embedding process, in milliseconds. Each one embeds for at most a minute. */
const EMBED_INTERVAL_MS = 60_000
export const STILL_LEARNING = "dex is still learning, so this answer may be incomplete. Try again in a moment."

/**
 * Reads new messages in a separate thread, so that the server can answer meanwhile. Calls `onLearned` whenever it has
 * learned, or has failed to learn.
 */
export function createFreshness(start: ThreadStart, log: (line: string) => void, onLearned = () => {}): Freshness {
  const lock = createThreadLock()
  const stopping = new AbortController()
  let thread: Subprocess<ServeThreadOrder, ThreadAnswer> | undefined
  let lastAnswer: Promise<unknown> = Promise.resolve()
  let reading: Promise<void> | undefined
  let learning: Promise<string[]> | undefined
  let readStartedAt = Number.NEGATIVE_INFINITY
  let freshAsOf: number | undefined
  const runningThread = (): NonNullable<typeof thread> => {
    if (thread && !thread.hasEnded()) return thread
    // The output of the thread goes to the log, because only JSON-RPC may reach stdout.
    const options = { data: { ...start, lock: lock.shared }, limits: HEAP_LIMITS, log, isUnref: true }
    thread = startThread<ServeThreadOrder, ThreadAnswer>(subprocessFile("./serve-thread.ts", import.meta.url), options)
    thread.ended.then(() => lock.finish())
    return thread
  }
  /** Sends an order to the thread. Never rejects. */
  const sendOrder = (order: ServeThreadOrder): Promise<ThreadAnswer | { type: "failed"; problem: string }> => {
    const answer = runningThread()
      .ask(order, { signal: stopping.signal })
      .catch((error: unknown) => ({ type: "failed" as const, problem: messageOf(error) }))
    lastAnswer = answer
    return answer
  }
  let embeddedAt = Number.NEGATIVE_INFINITY
  const embedInBackground = async () => {
    if (Math.abs(Date.now() - embeddedAt) < EMBED_INTERVAL_MS) return
    embeddedAt = Date.now()
    const { startBackgroundSync } = await import("../../app/background.ts")
    await startBackgroundSync(dexHome(start.env).dir, start.env, ["--no-wait"])
  }
  const readMessages = () => {
    if (reading) return reading
    const startedAt = Date.now() // if the order completes, everything up to this time has been read
    readStartedAt = startedAt
    reading = sendOrder({ type: "read" }).then((answer) => {
      reading = undefined
      if (answer.type === "failed") log(`New messages could not be read: ${answer.problem}`)
      else if (answer.type === "read") {
        if (answer.complete) freshAsOf = startedAt
        if (answer.lacksVectors) embedInBackground()
      }
    })
    return reading
  }
  const learn = (extraFacts: ExtraFacts) => {
    learning = sendOrder({ type: "learn", extraFacts }).then((answer) => {
      learning = undefined
      onLearned()
      if (answer.type === "failed") return [`dex could not learn from new messages: ${answer.problem}`]
      return answer.type === "learned" ? answer.notes : []
    })
    return learning
  }
  return {
    asOf: () => freshAsOf,
    stop: async (withinMs) => {
      if (lock.close()) return true
      stopping.abort() // the thread is not terminated, because Node crashes if a thread ends inside SQLite
      await withTimeout(lastAnswer, withinMs, undefined, undefined)
      return lock.close()
    },
    readNewMessages: async (withinMs, signal) => {
      // The difference is absolute because the clock may have been set back.
      if (reading === undefined && Math.abs(Date.now() - readStartedAt) < READ_INTERVAL_MS) return
      await withTimeout(readMessages(), withinMs, signal, undefined)
    },
    learn: async (extraFacts, withinMs, signal) => {
      if (learning) return [STILL_LEARNING]
      return withTimeout(learn(extraFacts), withinMs, signal, [STILL_LEARNING])
    },
  }
}

function withTimeout<T>(work: Promise<T>, withinMs: number, signal: AbortSignal | undefined, fallback: T): Promise<T> {
  return new Promise((resolve) => {
    const finish = (value: T) => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", giveUp)
      resolve(value)
    }
    const giveUp = () => finish(fallback)
    const timer = setTimeout(giveUp, withinMs)
    signal?.addEventListener("abort", giveUp)
    if (signal?.aborted) giveUp()
    work.then(finish)
  })
}
