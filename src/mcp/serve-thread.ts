import { parentPort, workerData } from "node:worker_threads"
import { doApart } from "../app/apart.ts"
import { createDex } from "../app/dex.ts"
import { messageOf } from "../core/error.ts"
import { syncHistory } from "../ingest/sync.ts"
import { lacksVectors } from "../tools/embedder.ts"
import { LEFT_TO_ANOTHER, learnNow } from "../tools/learned.ts"
import type { ServeThreadOrder, ThreadAnswer, ThreadStart } from "./fresh.ts"

// Reads what is new, and learns from it, while the server answers. Each order opens the databases anew: the index may have
// been switched.

/** More than this is read in a process that ends: read here, a few megabytes make the server 50 to 90 MB larger for good. */
const MOST_BYTES_HERE = 256 << 10

const start = workerData as ThreadStart
const say = (answer: ThreadAnswer) => parentPort!.postMessage(answer)

const stop = new AbortController()

parentPort!.on("message", async (order: ServeThreadOrder) => {
  if (order.type === "stop") return stop.abort()
  const answer = await obey(order)
  // After the databases are closed: a thread that ends inside one takes the process down with it.
  setImmediate(() => say(answer))
})

async function obey(order: Exclude<ServeThreadOrder, { type: "stop" }>): Promise<ThreadAnswer> {
  const dex = createDex({ ...start, signal: stop.signal, staysSmall: true })
  try {
    if (order.type === "learn" && order.also.only === "spending") {
      // A sync writes what was spent. If another one is at it, that one does.
      const { complete } = await doApart("read", { ...start, signal: stop.signal })
      return { type: "learned", notes: complete ? [] : [LEFT_TO_ANOTHER] }
    }
    if (order.type === "learn") return { type: "learned", notes: await learnNow(dex, order.also) }
    const little = { mostBytes: MOST_BYTES_HERE, quick: true, signal: stop.signal }
    const read = await syncHistory(await dex.syncDeps(), little)
    if ("largestUnitBytes" in read) {
      const { complete } = await doApart("read", { ...start, signal: stop.signal })
      return { type: "looked", complete, lacksVectors: await lacksVectors(dex) }
    }
    if (!read.busy && dex.knows()) await learnNow(dex)
    return { type: "looked", complete: read.complete, lacksVectors: await lacksVectors(dex) }
  } catch (error) {
    return { type: "failed", problem: messageOf(error) }
  } finally {
    dex.close()
  }
}
