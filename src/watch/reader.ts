import type { SyncProgress } from "../ingest/sync-types.ts"
import { hasSubprocessEnded, type Subprocess, subprocessFile } from "../subprocess/link.ts"
import { startProcess } from "../subprocess/process.ts"
import type { Order, OrderReport } from "./orders.ts"

export type ReaderStart = { env: Record<string, string | undefined>; cwd: string; version: string }

export type ReaderProcess = {
  /** One order at a time. Throws if the order failed, if the process ended, or if it cannot be started. */
  ask(order: Order, onProgress: (progress: SyncProgress) => void): Promise<OrderReport>
  stop(): Promise<void>
}

/** The process is kept while there is work; after this long without any it ends and frees its memory. */
const IDLE_MS = 20_000
/** By default, V8 lets new garbage grow to 50 MB and more before it collects. */
const HEAP = ["--max-semi-space-size=4"]

/** Reads in a separate process, started when there is something to do. */
export function createReader({ env, cwd, version }: ReaderStart, log: (line: string) => void): ReaderProcess {
  let current: Subprocess<Order, OrderReport, SyncProgress> | undefined
  let idle: NodeJS.Timeout | undefined
  const running = (): NonNullable<typeof current> => {
    const file = subprocessFile("./reader-process.ts", import.meta.url)
    if (!current || current.hasEnded()) current = startProcess(file, { args: [version], flags: HEAP, cwd, env, log })
    return current
  }
  const end = async () => {
    const ending = current
    clearTimeout(idle)
    current = undefined
    await ending?.end()
  }
  return {
    stop: end,
    ask: async (order, onEvent) => {
      clearTimeout(idle)
      try {
        return await running().ask(order, { onEvent })
      } catch (error) {
        if (!hasSubprocessEnded(error)) throw error
        throw error.isNotStarted ? notStarted(error) : new Error(`The reading process ended early (${error.message}).`)
      } finally {
        idle = setTimeout(() => void end(), IDLE_MS).unref()
      }
    },
  }
}

function notStarted(error: Error): Error {
  return new Error(
    `The reading process cannot be started (${error.message}). dex will try again. If Node or dex was moved or replaced, stop dex watch and start it again.`,
    { cause: error },
  )
}
