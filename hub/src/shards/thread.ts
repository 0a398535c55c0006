import { setTimeout as pause } from "node:timers/promises"
import { workerData } from "node:worker_threads"
import { serveOrders } from "../../../src/subprocess/serve.ts"
import { type DatabaseOptions, databaseUnavailable, openDatabase } from "../store/connection.ts"
import type { ShardNode } from "../store/shards.ts"
import { createAnswers, type TeamAnswer, type TeamQuestion } from "./answer.ts"
import { createFollower, type ShardLag } from "./follow.ts"
import { createNodeCaller } from "./node-call.ts"
import type { ShardQuestion } from "./remote.ts"

/**
 * The work of a thread: searching, or writing the shards. It needs the processor, so it is done away from the thread that answers
 * requests. `asked` answers other nodes and calls no other node, so that two nodes never wait for each other.
 */
export type ThreadWork = "answer" | "asked" | "follow"
export type ThreadData = DatabaseOptions & {
  work: ThreadWork
  data: string
  folder: string
  version: string
  node: ShardNode
}
export type AnyQuestion = { team: TeamQuestion } | { shard: ShardQuestion }
/** `follow` is one order that never ends. `failed` has the stack of an error. */
export type ThreadOrder = AnyQuestion | "follow"
export type ThreadAnswer = TeamAnswer | { failed: string }
export type ThreadEvent = { failed: string } | { lags: ShardLag[] }

/** How often to look for changes, in milliseconds. A push can be found after this time plus the time to read it. */
const LOOK_MS = 300
const RETRY_AFTER_MS = 2_000

const { work, data, folder, version, node, ...options } = workerData as ThreadData
// Objects lose their class when they are passed to a thread.
const masterKey = Buffer.from(options.masterKey)
const db = openDatabase({ ...options, masterKey })

const stackOf = (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error))

const answer = work === "follow" ? undefined : createAnswer()

serveOrders<ThreadOrder, ThreadAnswer | undefined, ThreadEvent>(async (order, { emit, signal }) => {
  if (order === "follow") return follow(emit, signal)
  try {
    return await answer!(order)
  } catch (error) {
    const unavailable = databaseUnavailable(error)
    return unavailable
      ? { problem: { status: unavailable.status, code: unavailable.code, message: unavailable.message } }
      : { failed: stackOf(error) }
  }
})

function createAnswer(): (question: AnyQuestion) => Promise<TeamAnswer> {
  const others = work === "answer" ? { others: { self: node.name, call: createNodeCaller(masterKey) } } : {}
  const answers = createAnswers({ db, data, folder, version, ...others })
  return async (question) =>
    "team" in question ? answers.answer(question.team) : { output: await answers.answerShard(question.shard), drops: 0 }
}

async function follow(emit: (event: ThreadEvent) => void, signal: AbortSignal): Promise<undefined> {
  const follower = createFollower(db, data, node)
  while (!signal.aborted)
    try {
      const isDone = await follower.step()
      emit({ lags: follower.lags() })
      if (isDone) await pause(LOOK_MS)
    } catch (error) {
      emit({ failed: stackOf(error) })
      await pause(RETRY_AFTER_MS)
    }
  follower.close()
}
