import { parentPort, workerData } from "node:worker_threads"
import { createDex } from "../app/dex.ts"
import { messageOf } from "../core/error.ts"
import { syncWithThreads } from "../ingest/sync-thread.ts"
import { learnedOf } from "../tools/learned.ts"
import type { ThreadAnswer, ThreadStart } from "./fresh.ts"

// Reads what is new while the server answers. Each order opens the databases anew: the index may have been switched.

const start = workerData as ThreadStart
const say = (answer: ThreadAnswer) => parentPort!.postMessage(answer)

const stop = new AbortController()

parentPort!.on("message", async (order: "look" | "stop") => {
  if (order === "stop") return stop.abort()
  const answer = await look()
  // After the databases are closed: a thread that ends inside one takes the process down with it.
  setImmediate(() => say(answer))
})

async function look(): Promise<ThreadAnswer> {
  const dex = createDex(start)
  try {
    const { complete, busy } = await syncWithThreads(await dex.syncDeps(), dex.home.index, { signal: stop.signal })
    if (!busy && dex.knows()) await learnedOf(dex)
    return { complete, busy }
  } catch (error) {
    return { problem: messageOf(error) }
  } finally {
    dex.close()
  }
}
