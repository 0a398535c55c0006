import { setTimeout as pause } from "node:timers/promises"
import { workerData } from "node:worker_threads"
import { serveOrders } from "../../../src/subprocess/serve.ts"
import type { ClusterSettings } from "../settings.ts"
import { type DatabaseOptions, databaseUnavailable, openDatabase } from "../store/connection.ts"
import { createAnswers, type TeamAnswer, type TeamRequest } from "./answer.ts"
import { createFollower, type TenantLag } from "./follow.ts"
import { openFts5 } from "./fts5.ts"
import { ClusterUnavailable, openCluster } from "./opensearch/client.ts"
import { createIndexer } from "./opensearch/indexer.ts"
import { openWords } from "./opensearch/team-words.ts"

/**
 * The work of a thread: searching, or writing the indexes. It needs the processor, so it is done away from the thread that answers
 * requests.
 */
export type ThreadWork = "answer" | "follow"
export type ThreadData = DatabaseOptions & {
  work: ThreadWork
  cluster?: ClusterSettings
  data: string
  folder: string
  version: string
}
/** `follow` starts to write the indexes, which ends only with the thread. */
export type ThreadOrder = TeamRequest | "follow"
/** `failed` is the stack of an error. */
export type ThreadAnswer = TeamAnswer | { failed: string }
/** `isBuilt` is true once there is an index for every tenant. `isAvailable` is false while OpenSearch cannot be searched. */
export type ThreadEvent = { failed: string } | { lags: TenantLag[]; isBuilt: boolean; isAvailable: boolean }

/** How often to look for changes, in milliseconds. A push can be found after this time plus the time to read it. */
const POLL_MS = 300
const RETRY_AFTER_MS = 2_000

const { work, cluster: clusterSettings, data, folder, version, ...options } = workerData as ThreadData
// Objects lose their class when they are passed to a thread.
const masterKey = Buffer.from(options.masterKey)
const db = openDatabase({ ...options, masterKey })

const stackOf = (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error))

const cluster = clusterSettings && openCluster(clusterSettings)
const answers =
  work === "follow" ? undefined : createAnswers({ db, words: openWords(db, cluster, openFts5(data)), folder, version })

serveOrders<ThreadOrder, ThreadAnswer | undefined, ThreadEvent>(async (order, { emit, signal }) => {
  if (order === "follow") return follow(emit, signal)
  try {
    return await answers!.answer(order)
  } catch (error) {
    const unavailable = databaseUnavailable(error)
    if (unavailable)
      return { problem: { status: unavailable.status, code: unavailable.code, message: unavailable.message } }
    return { failed: stackOf(error) }
  }
})

async function follow(emit: (event: ThreadEvent) => void, signal: AbortSignal): Promise<undefined> {
  const follower = createFollower(db, data)
  const indexer = cluster && createIndexer(db, cluster, (error) => emit({ failed: stackOf(error) }))
  let isBuilt = false
  let isAvailable = true
  const report = async () => {
    isBuilt ||= await follower.isBuilt()
    emit({ lags: [...follower.lags(), ...(indexer?.lags() ?? [])], isBuilt, isAvailable })
  }
  const repeat = async (step: () => Promise<boolean>) => {
    while (!signal.aborted)
      try {
        if (!isBuilt) await report()
        const isDone = await step()
        if (step === indexer?.step) isAvailable = true
        await report()
        if (isDone) await pause(POLL_MS)
      } catch (error) {
        if (error instanceof ClusterUnavailable) isAvailable = false
        emit({ failed: stackOf(error) })
        await pause(RETRY_AFTER_MS)
      }
  }
  await Promise.all([repeat(follower.step), indexer && repeat(indexer.step)])
  follower.close()
  await indexer?.close()
}
