import { Worker } from "node:worker_threads"

export type ThreadStart = { env: Record<string, string | undefined>; cwd: string; version: string }
export type ThreadAnswer = { complete: boolean; busy: boolean } | { problem: string }

export type Freshness = {
  /** Comes back when what was new is read, or after so long; then the reading goes on behind. Never throws. */
  pickUp(withinMs: number, signal?: AbortSignal): Promise<void>
  /** Everything that was written before this moment is known. Undefined: this server has not read everything yet. */
  asOf(): number | undefined
  /** Lets go of what is being read after the conversation at hand. False: it was still at it after so long. */
  stop(withinMs: number): Promise<boolean>
}

/** What was looked for within this time is new enough: a burst of calls looks once. */
const RECENT_MS = 1_000

/** Looks for what is new in a thread of its own, one look at a time, so that answers never wait behind it. */
export function createFreshness(start: ThreadStart, log: (line: string) => void): Freshness {
  let worker: Worker | undefined
  let looking: Promise<void> | undefined
  let settle = () => {}
  let lookedAt = Number.NEGATIVE_INFINITY
  let freshAsOf: number | undefined
  const answered = (answer: ThreadAnswer) => {
    if ("problem" in answer) log(`What is new could not be read: ${answer.problem}`)
    else if (answer.complete) freshAsOf = lookedAt
    settle()
  }
  const startThread = () => {
    const made = new Worker(threadFile(), { workerData: start, stdout: true, stderr: true })
    // Only JSON-RPC may reach stdout, whatever a thread prints.
    made.stdout.on("data", (chunk: Buffer) => log(chunk.toString().trimEnd()))
    made.stderr.on("data", (chunk: Buffer) => log(chunk.toString().trimEnd()))
    made.on("message", answered)
    made.on("error", (error) => answered({ problem: error.message }))
    made.on("exit", () => {
      if (worker === made) worker = undefined
      settle()
    })
    made.unref()
    return made
  }
  const look = () => {
    looking ??= new Promise<void>((resolve) => {
      settle = () => {
        looking = undefined
        resolve()
      }
      lookedAt = Date.now()
      worker ??= startThread()
      worker.postMessage("look")
    })
    return looking
  }
  return {
    asOf: () => freshAsOf,
    stop: async (withinMs) => {
      if (looking === undefined) return true
      worker?.postMessage("stop")
      await firstOf(looking, withinMs, undefined)
      return looking === undefined
    },
    pickUp: async (withinMs, signal) => {
      // Either way: a clock that was set back says that it was looked at in an hour from now.
      if (looking === undefined && Math.abs(Date.now() - lookedAt) < RECENT_MS) return
      await firstOf(look(), withinMs, signal)
    },
  }
}

function firstOf(work: Promise<void>, withinMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", done)
      resolve()
    }
    const timer = setTimeout(done, withinMs)
    signal?.addEventListener("abort", done)
    if (signal?.aborted) done()
    work.then(done)
  })
}

/** Source files run as they are in development; the bundle has its threads beside its first file. */
function threadFile(): URL {
  const development = import.meta.url.endsWith(".ts")
  return new URL(development ? "./serve-thread.ts" : "../serve-thread.js", import.meta.url)
}
