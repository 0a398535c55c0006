import { fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { DexError } from "../core/error.ts"
import type { SyncProgress } from "../ingest/sync-types.ts"
import type { DexOptions } from "./dex.ts"

/** `learn`: from the history, for who holds the lock. `read`: what is new, and learn from it. */
export type ApartWork = "learn" | "read"
export type ApartReport = { progress: SyncProgress } | { complete: boolean } | { error: string; code?: string }

/** Left to itself, V8 lets new garbage grow to 50 MB and more, and a conversation is garbage once it was learned from. */
const HEAP = ["--max-semi-space-size=4"]

/**
 * Does what takes memory in a process of its own, so that it is given back: there may be any number of conversations. That
 * process ends with whoever started it.
 */
export function doApart(work: ApartWork, options: DexOptions): Promise<{ complete: boolean }> {
  const { env, cwd, version, signal, onProgress } = options
  return new Promise((resolve, reject) => {
    const child = fork(processFile(), [work, version], {
      cwd,
      env: env as NodeJS.ProcessEnv,
      execArgv: HEAP,
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    })
    const stop = () => child.connected && child.send("stop", () => {})
    signal?.addEventListener("abort", stop)
    if (signal?.aborted) stop()
    let report: Exclude<ApartReport, { progress: SyncProgress }> = { error: "The process that does it ended early." }
    child.on("message", (told: ApartReport) => {
      if ("progress" in told) onProgress?.(told.progress)
      else report = told
    })
    child.on("error", reject)
    child.on("exit", () => {
      signal?.removeEventListener("abort", stop)
      if ("complete" in report) resolve(report)
      else reject(report.code === undefined ? new Error(report.error) : new DexError(report.code, report.error))
    })
  })
}

/** Source files run as they are in development; the bundle has its processes beside its first file. */
function processFile(): string {
  const development = import.meta.url.endsWith(".ts")
  return fileURLToPath(new URL(development ? "./apart-process.ts" : "../apart-process.js", import.meta.url))
}
