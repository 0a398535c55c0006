import { parentPort, workerData } from "node:worker_threads"
import { type DatabaseOptions, databaseGone, openDatabase } from "../store/connection.ts"
import type { ShardNode } from "../store/shards.ts"
import { createAnswers, type TeamAnswer, type TeamQuestion } from "./answer.ts"
import { createFollower, type ShardLag } from "./follow.ts"
import { nodeCaller } from "./node-call.ts"
import type { ShardQuestion } from "./remote.ts"

// What takes the processor runs here, away from the thread that answers requests: searching, or writing the shards.

/** `asked`: by other nodes. It asks nobody else, so that two nodes never wait for each other. */
export type ThreadWork = "answer" | "asked" | "follow"
export type ThreadData = DatabaseOptions & {
  work: ThreadWork
  data: string
  folder: string
  version: string
  node: ShardNode
}
export type AnyQuestion = { team: TeamQuestion } | { shard: ShardQuestion }
export type ToThread = { id: number; question: AnyQuestion } | "close"
export type FromThread =
  | { id: number; answer: TeamAnswer }
  | { id: number; failed: string }
  | { failed: string }
  | { lags: ShardLag[] }

/** A push is found within this time, and reading it. */
const LOOK_MS = 300
const AFTER_FAILURE_MS = 2_000

const { work, data, folder, version, node, ...options } = workerData as ThreadData
// What crosses to a thread loses its class.
const masterKey = Buffer.from(options.masterKey)
const db = openDatabase({ ...options, masterKey })
const send = (message: FromThread) => parentPort!.postMessage(message)
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

if (work !== "follow") {
  const others = work === "answer" ? { others: { self: node.name, call: nodeCaller(masterKey) } } : {}
  const answers = createAnswers({ db, data, folder, version, ...others })
  const answer = async (question: AnyQuestion): Promise<TeamAnswer> =>
    "team" in question ? answers.answer(question.team) : { output: await answers.answerShard(question.shard), drops: 0 }
  let last: Promise<void> = Promise.resolve()
  parentPort!.on("message", (message: ToThread) => {
    if (message === "close") return void last.then(() => process.exit(0))
    const { id, question } = message
    last = last.then(async () => {
      try {
        send({ id, answer: await answer(question) })
      } catch (error) {
        const gone = databaseGone(error)
        if (gone)
          return send({ id, answer: { problem: { status: gone.status, code: gone.code, message: gone.message } } })
        send({ id, failed: error instanceof Error ? (error.stack ?? error.message) : String(error) })
      }
    })
  })
} else {
  let isClosing = false
  parentPort!.on("message", () => {
    isClosing = true
  })
  const follower = createFollower(db, data, node)
  while (!isClosing)
    try {
      const isDone = await follower.step()
      send({ lags: follower.lags() })
      if (isDone) await pause(LOOK_MS)
    } catch (error) {
      send({ failed: error instanceof Error ? (error.stack ?? error.message) : String(error) })
      await pause(AFTER_FAILURE_MS)
    }
  follower.close()
  process.exit(0)
}
