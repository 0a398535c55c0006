import { type ChildProcess, fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import type { SyncProgress } from "../ingest/sync-types.ts"
import type { Order, OrderReport } from "./orders.ts"
import type { ReaderReply } from "./reader-process.ts"

export type ReaderStart = { env: Record<string, string | undefined>; cwd: string; version: string }

export type ReaderProcess = {
  /** One at a time. Throws what the other process could not do, that it ended, or that it cannot be started. */
  ask(order: Order, onProgress: (progress: SyncProgress) => void): Promise<OrderReport>
  stop(): Promise<void>
}

/** While something happens it is kept; then it ends, and its memory is given back. */
const IDLE_MS = 20_000
/** Left to itself, V8 lets new garbage grow to 50 MB and more before it looks. */
const HEAP = ["--max-semi-space-size=4"]

/** Reads in a process of its own, started when there is something to do. */
export function createReader(start: ReaderStart, log: (line: string) => void): ReaderProcess {
  let child: ChildProcess | undefined
  let idle: NodeJS.Timeout | undefined
  const begin = () => {
    const made = fork(processFile(), [start.version], {
      cwd: start.cwd,
      env: start.env as NodeJS.ProcessEnv,
      execArgv: HEAP,
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    })
    const gone = () => {
      if (child === made) child = undefined
    }
    // There is none where the system had no room for the process.
    made.stderr?.on("data", (chunk: Buffer) => log(chunk.toString().trimEnd()))
    made.once("exit", gone)
    // Also of one that never started, and when nobody asks it anything: an error that nobody hears ends this process.
    made.on("error", gone)
    return made
  }
  const end = async () => {
    const ending = child
    clearTimeout(idle)
    if (ending === undefined) return
    child = undefined
    const gone = new Promise((resolve) => ending.once("exit", resolve))
    if (ending.connected) ending.send("end", () => {}) // what cannot be told any more ends by itself
    await gone
  }
  return {
    stop: end,
    ask: (order, onProgress) => {
      clearTimeout(idle)
      child ??= begin()
      const asked = child
      return new Promise<OrderReport>((resolve, reject) => {
        const finish = () => {
          asked.off("message", take)
          asked.off("exit", lost)
          asked.off("error", failed)
          idle = setTimeout(() => void end(), IDLE_MS).unref()
        }
        const take = (told: ReaderReply) => {
          if ("progress" in told) return onProgress(told.progress)
          finish()
          if ("answer" in told) resolve(told.answer)
          else reject(new Error(told.problem))
        }
        const lost = (code: number | null, signal: string | null) => {
          finish()
          reject(new Error(`The reading process ended early (${signal ?? `exit ${code}`}).`))
        }
        const failed = (error: Error) => {
          finish()
          reject(asked.pid === undefined ? notStarted(error) : error)
        }
        asked.on("message", take)
        asked.on("exit", lost)
        asked.on("error", failed)
        if (asked.pid !== undefined) asked.send(order, (error) => error && failed(error))
      })
    },
  }
}

function notStarted(error: Error): Error {
  return new Error(
    `The process that reads cannot be started (${error.message}). dex tries again. Where Node or dex was moved or replaced, stop dex watch and start it again.`,
    { cause: error },
  )
}

/** Source files run as they are in development; the bundle has its processes beside its first file. */
function processFile(): string {
  const development = import.meta.url.endsWith(".ts")
  return fileURLToPath(new URL(development ? "./reader-process.ts" : "../reader-process.js", import.meta.url))
}
