import { workerData } from "node:worker_threads"
import { runInSubprocess } from "../../app/background.ts"
import { createDex } from "../../app/dex.ts"
import { syncHistory } from "../../ingest/sync.ts"
import { serveOrders } from "../../subprocess/serve.ts"
import type { Dex } from "../../tools/context.ts"
import { lacksVectors } from "../../tools/embedder.ts"
import { ANOTHER_IS_LEARNING, learnNow } from "../../tools/learned.ts"
import type { ServeThreadOrder, ThreadAnswer, ThreadStart } from "./fresh.ts"
import { createThreadLock } from "./thread-lock.ts"

// Reads new messages, and learns from them, while the server answers. Reopens the databases for each order, because the index may
// have been replaced.

/**
 * The maximum number of bytes to read in this thread. More is read in a separate process, because reading a few megabytes here
 * would make the server 50 to 90 MB larger permanently.
 */
const MAX_BYTES_HERE = 256 << 10

const { lock: shared, ...start } = workerData as ThreadStart & { lock: SharedArrayBuffer }
const lock = createThreadLock(shared)

serveOrders(async (order: ServeThreadOrder, { signal }): Promise<ThreadAnswer> => {
  if (!lock.begin()) throw serverEndingError()
  try {
    return await runOrder(order, signal)
  } finally {
    // Lets the databases close first, because the process crashes if a thread ends inside one.
    await new Promise(setImmediate)
    lock.finish()
  }
})

async function runOrder(order: ServeThreadOrder, signal: AbortSignal): Promise<ThreadAnswer> {
  const withDex = async <T>(work: (dex: Dex) => Promise<T>): Promise<T> => {
    const dex = createDex({ ...start, signal, staysSmall: true })
    try {
      return await work(dex)
    } finally {
      dex.close()
    }
  }
  if (order.type === "learn" && order.extraFacts.only === "spending")
    // A sync also records spending. If another sync is already running, that one records it.
    return { type: "learned", notes: (await readInSubprocess(signal)) ? [] : [ANOTHER_IS_LEARNING] }
  if (order.type === "learn")
    return withDex(async (dex) => ({ type: "learned", notes: await learnNow(dex, order.extraFacts) }))
  const answer = await withDex((dex) => readHere(dex, signal))
  if (answer) return answer
  const complete = await readInSubprocess(signal)
  return withDex(async (dex) => ({ type: "read", complete, lacksVectors: await lacksVectors(dex) }))
}

/** Reads new messages. Returns undefined if there are too many to read in this thread. */
async function readHere(dex: Dex, signal: AbortSignal): Promise<ThreadAnswer | undefined> {
  const limits = { maxBytes: MAX_BYTES_HERE, quick: true, signal }
  const result = await syncHistory(await dex.syncDeps(), limits)
  if ("largestUnitBytes" in result) return undefined
  if (!result.busy && dex.hasKnowledge()) await learnNow(dex)
  return { type: "read", complete: result.complete, lacksVectors: await lacksVectors(dex) }
}

/**
 * Reads in another process, which ends if the server ends. Returns true if it has read everything. Meanwhile, no database is open
 * in this thread, so the server can end at any time.
 */
async function readInSubprocess(signal: AbortSignal): Promise<boolean> {
  lock.finish()
  const { complete } = await runInSubprocess("read", { ...start, signal })
  if (!lock.begin()) throw serverEndingError()
  return complete
}

function serverEndingError(): Error {
  return new Error("the server is ending")
}
