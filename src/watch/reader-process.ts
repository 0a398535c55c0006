import { createDex } from "../app/dex.ts"
import { messageOf } from "../core/error.ts"
import type { SyncProgress } from "../ingest/sync-types.ts"
import { listeners } from "./listeners.ts"
import { carryOutOrder, type Order, type OrderReport } from "./orders.ts"

// The process that reads for `dex watch`. It has what reading needs in memory and ends when there was nothing to do for a
// while, so that the one that waits stays small. Each order opens the databases anew: the index may have been switched.

export type ReaderReply = { progress: SyncProgress } | { answer: OrderReport } | { problem: string }

const PROGRESS_EVERY_MS = 500
const END_WITHIN_MS = 2_000

const [version = ""] = process.argv.slice(2)
const stop = new AbortController()
let busy = false
const reply = (told: ReaderReply) => {
  if (process.connected) process.send!(told)
}

/** Ctrl-C in a terminal reaches this process too; the one that waits says when to end. */
process.on("SIGINT", () => {})
process.on("SIGHUP", () => {})
process.on("SIGTERM", end)
process.on("disconnect", end)
process.on("message", async (order: Order | "end") => {
  if (order === "end") return end()
  busy = true
  const told = await obey(order)
  busy = false
  reply(told)
  if (stop.signal.aborted) process.exit(0)
})

async function obey(order: Order): Promise<ReaderReply> {
  let saidAt = performance.now() // what is quick needs no progress
  const onProgress = (progress: SyncProgress) => {
    if (performance.now() - saidAt < PROGRESS_EVERY_MS) return
    saidAt = performance.now()
    reply({ progress })
  }
  const dex = createDex({ env: process.env, cwd: process.cwd(), version, signal: stop.signal, onProgress })
  try {
    return { answer: await carryOutOrder(order, dex, listeners) }
  } catch (error) {
    return { problem: messageOf(error) }
  } finally {
    dex.close()
  }
}

/** After the conversation at hand; when that takes long, being killed is safe: every write is a transaction. */
function end(): void {
  stop.abort()
  if (!busy) process.exit(0)
  setTimeout(() => process.kill(process.pid, "SIGKILL"), END_WITHIN_MS)
}
