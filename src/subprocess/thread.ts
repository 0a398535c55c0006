import { type ResourceLimits, Worker } from "node:worker_threads"
import { createLink, type Subprocess, SubprocessEnded } from "./link.ts"

type ThreadOptions = {
  /** The data that the thread gets as `workerData`. */
  data?: unknown
  limits: ResourceLimits
  /** Receives the text that the thread prints, which would otherwise appear in this process's output. */
  log?(text: string): void
  /** True if the thread does not keep this process alive. */
  isUnref?: boolean
}

export function startThread<Order, Answer, Event = never>(
  file: URL,
  { data, limits, log, isUnref }: ThreadOptions,
): Subprocess<Order, Answer, Event> {
  return createLink((on) => {
    const worker = new Worker(file, {
      workerData: data,
      resourceLimits: limits,
      stdout: log !== undefined,
      stderr: log !== undefined,
    })
    const logChunk = (chunk: Buffer) => log?.(chunk.toString().trimEnd())
    if (log) {
      worker.stdout.on("data", logChunk)
      worker.stderr.on("data", logChunk)
    }
    let cause: Error | undefined
    worker.on("message", on.message)
    worker.on("error", (error: Error) => {
      cause = error
    })
    worker.on("exit", () => on.ended(new SubprocessEnded(cause?.message ?? "the thread ended", { cause })))
    if (isUnref) worker.unref()
    return { post: (message) => worker.postMessage(message), kill: () => void worker.terminate() }
  })
}
