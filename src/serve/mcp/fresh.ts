import { dexHome } from "../../config/home.ts"
import { messageOf } from "../../core/error.ts"
import { type Subprocess, subprocessFile } from "../../subprocess/link.ts"
import { startThread } from "../../subprocess/thread.ts"
import type { AlsoRead } from "../../tools/context.ts"
import { createThreadLock } from "./thread-lock.ts"

export type ThreadStart = { env: Record<string, string | undefined>; cwd: string; version: string }
export type ServeThreadOrder = { type: "look" } | { type: "learn"; also: AlsoRead }
export type ThreadAnswer =
  | { type: "looked"; complete: boolean; lacksVectors: boolean }
  | { type: "learned"; notes: string[] }

export type Freshness = {
  /** Resolves when everything new has been read, or after this long; then reading continues in the background. Never throws. */
  pickUp(withinMs: number, signal?: AbortSignal): Promise<void>
  /**
   * Brings the facts up to date, and returns notes on what is not known yet. After this long it continues in the background.
   * Never throws.
   */
  learn(also: AlsoRead, withinMs: number, signal?: AbortSignal): Promise<string[]>
  /** Everything that was written before this moment has been read. Undefined: this server has not read everything yet. */
  asOf(): number | undefined
  /** Stops reading after the current conversation. False: it was still reading after this long. */
  stop(withinMs: number): Promise<boolean>
}

/** A look is not repeated within this time: a burst of calls looks once. */
const RECENT_MS = 1_000
/** There are as many servers as running agents, so reading must not make them large. */
const HEAP = { maxYoungGenerationSizeMb: 6 }
/** One process makes vectors for at most a minute, so starting another sooner is useless. */
const EMBED_EVERY_MS = 60_000
export const STILL_LEARNING = "dex is still learning: this is what is known so far. Ask again in a moment."

/**
 * Looks for new messages in a separate thread, one look at a time, so that answers never wait for it. Calls `onLearned` each time
 * that it has learned, or failed to.
 */
export function createFreshness(start: ThreadStart, log: (line: string) => void, onLearned = () => {}): Freshness {
  const lock = createThreadLock()
  const stopping = new AbortController()
  let thread: Subprocess<ServeThreadOrder, ThreadAnswer> | undefined
  let last: Promise<unknown> = Promise.resolve()
  let looking: Promise<void> | undefined
  let learning: Promise<string[]> | undefined
  let lookedAt = Number.NEGATIVE_INFINITY
  let freshAsOf: number | undefined
  const running = (): NonNullable<typeof thread> => {
    if (thread && !thread.hasEnded()) return thread
    // Only JSON-RPC may reach stdout, whatever a thread prints.
    const options = { data: { ...start, lock: lock.shared }, limits: HEAP, log, isUnref: true }
    thread = startThread<ServeThreadOrder, ThreadAnswer>(subprocessFile("./serve-thread.ts", import.meta.url), options)
    thread.ended.then(() => lock.finish())
    return thread
  }
  /** Never rejects. */
  const ask = (order: ServeThreadOrder): Promise<ThreadAnswer | { type: "failed"; problem: string }> => {
    const answer = running()
      .ask(order, { signal: stopping.signal })
      .catch((error: unknown) => ({ type: "failed" as const, problem: messageOf(error) }))
    last = answer
    return answer
  }
  let embeddedAt = Number.NEGATIVE_INFINITY
  const embedInBackground = async () => {
    if (Math.abs(Date.now() - embeddedAt) < EMBED_EVERY_MS) return
    embeddedAt = Date.now()
    const { syncBehind } = await import("../../app/background.ts")
    await syncBehind(dexHome(start.env).dir, start.env, ["--no-wait"])
  }
  const look = () => {
    if (looking) return looking
    const since = Date.now() // callers that join a running look get its start time
    lookedAt = since
    looking = ask({ type: "look" }).then((answer) => {
      looking = undefined
      if (answer.type === "failed") log(`New messages could not be read: ${answer.problem}`)
      else if (answer.type === "looked") {
        if (answer.complete) freshAsOf = since
        if (answer.lacksVectors) embedInBackground()
      }
    })
    return looking
  }
  const learn = (also: AlsoRead) => {
    learning = ask({ type: "learn", also }).then((answer) => {
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
      stopping.abort() // the thread stays: this process is about to end, and must not do so while the thread does
      await firstOf(last, withinMs, undefined, undefined)
      return lock.close()
    },
    pickUp: async (withinMs, signal) => {
      // The difference is absolute because the clock may have been set back.
      if (looking === undefined && Math.abs(Date.now() - lookedAt) < RECENT_MS) return
      await firstOf(look(), withinMs, signal, undefined)
    },
    learn: async (also, withinMs, signal) => {
      if (learning) return [STILL_LEARNING]
      return firstOf(learn(also), withinMs, signal, [STILL_LEARNING])
    },
  }
}

function firstOf<T>(work: Promise<T>, withinMs: number, signal: AbortSignal | undefined, otherwise: T): Promise<T> {
  return new Promise((resolve) => {
    const done = (value: T) => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", late)
      resolve(value)
    }
    const late = () => done(otherwise)
    const timer = setTimeout(late, withinMs)
    signal?.addEventListener("abort", late)
    if (signal?.aborted) late()
    work.then(done)
  })
}
