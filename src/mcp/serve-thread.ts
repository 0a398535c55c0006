import { parentPort, workerData } from "node:worker_threads"
import { doApart } from "../app/apart.ts"
import { createDex } from "../app/dex.ts"
import { messageOf } from "../core/error.ts"
import { syncHistory } from "../ingest/sync.ts"
import type { Dex } from "../tools/context.ts"
import { lacksVectors } from "../tools/embedder.ts"
import { LEFT_TO_ANOTHER, learnNow } from "../tools/learned.ts"
import type { ServeThreadOrder, ThreadAnswer, ThreadStart } from "./fresh.ts"
import { createThreadLock } from "./thread-lock.ts"

// Reads what is new, and learns from it, while the server answers. Each order opens the databases anew: the index may have
// been switched.

/** More than this is read in a process that ends: read here, a few megabytes make the server 50 to 90 MB larger for good. */
const MOST_BYTES_HERE = 256 << 10

const { lock: shared, ...start } = workerData as ThreadStart & { lock: SharedArrayBuffer }
const lock = createThreadLock(shared)
const say = (answer: ThreadAnswer) => parentPort!.postMessage(answer)

const ENDS: ThreadAnswer = { type: "failed", problem: "the server ends" }
const stop = new AbortController()

parentPort!.on("message", async (order: ServeThreadOrder) => {
  if (order.type === "stop") return stop.abort()
  if (!lock.begin()) return say(ENDS)
  const answer = await obey(order)
  // After the databases are closed: a thread that ends inside one takes the process down with it.
  setImmediate(() => {
    lock.finish()
    say(answer)
  })
})

async function obey(order: Exclude<ServeThreadOrder, { type: "stop" }>): Promise<ThreadAnswer> {
  try {
    if (order.type === "learn" && order.also.only === "spending") return await countApart()
    if (order.type === "learn")
      return await withDex(async (dex) => ({ type: "learned", notes: await learnNow(dex, order.also) }))
    return (await withDex(look)) ?? (await lookApart())
  } catch (error) {
    return { type: "failed", problem: messageOf(error) }
  }
}

/** Undefined: there is too much to be read here. */
async function look(dex: Dex): Promise<ThreadAnswer | undefined> {
  const little = { mostBytes: MOST_BYTES_HERE, quick: true, signal: stop.signal }
  const read = await syncHistory(await dex.syncDeps(), little)
  if ("largestUnitBytes" in read) return undefined
  if (!read.busy && dex.knows()) await learnNow(dex)
  return { type: "looked", complete: read.complete, lacksVectors: await lacksVectors(dex) }
}

/** A sync writes what was spent. If another one is at it, that one does. */
async function countApart(): Promise<ThreadAnswer> {
  const complete = await readApart()
  return complete === undefined ? ENDS : { type: "learned", notes: complete ? [] : [LEFT_TO_ANOTHER] }
}

async function lookApart(): Promise<ThreadAnswer> {
  const complete = await readApart()
  if (complete === undefined) return ENDS
  return withDex(async (dex) => ({ type: "looked", complete, lacksVectors: await lacksVectors(dex) }))
}

/**
 * Whether another process has read everything; undefined if the server ends. Meanwhile no database is open here: the server may
 * end at any time, and that process ends with it.
 */
async function readApart(): Promise<boolean | undefined> {
  lock.finish()
  const { complete } = await doApart("read", { ...start, signal: stop.signal })
  return lock.begin() ? complete : undefined
}

async function withDex<T>(work: (dex: Dex) => Promise<T>): Promise<T> {
  const dex = createDex({ ...start, signal: stop.signal, staysSmall: true })
  try {
    return await work(dex)
  } finally {
    dex.close()
  }
}
