import { parentPort, workerData } from "node:worker_threads"
import { createDex } from "../app/dex.ts"
import { messageOf } from "../core/error.ts"
import { syncWithThreads } from "../ingest/sync-thread.ts"
import { learnNow } from "../tools/learned.ts"
import type { ThreadAnswer, ThreadOrder, ThreadStart } from "./fresh.ts"

// Reads what is new, and learns from it, while the server answers. Each order opens the databases anew: the index may have
// been switched.

const start = workerData as ThreadStart
const say = (answer: ThreadAnswer) => parentPort!.postMessage(answer)

const stop = new AbortController()

parentPort!.on("message", async (order: ThreadOrder) => {
  if (order.type === "stop") return stop.abort()
  const answer = await obey(order)
  // After the databases are closed: a thread that ends inside one takes the process down with it.
  setImmediate(() => say(answer))
})

async function obey(order: Exclude<ThreadOrder, { type: "stop" }>): Promise<ThreadAnswer> {
  const dex = createDex({ ...start, signal: stop.signal })
  try {
    if (order.type === "learn") return { type: "learned", notes: await learnNow(dex, order.also) }
    const { complete, busy } = await syncWithThreads(await dex.syncDeps(), dex.home.index, { signal: stop.signal })
    if (!busy && dex.knows()) await learnNow(dex)
    return { type: "looked", complete }
  } catch (error) {
    return { type: "failed", problem: messageOf(error) }
  } finally {
    dex.close()
  }
}
