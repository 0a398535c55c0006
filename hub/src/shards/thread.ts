import { parentPort, workerData } from "node:worker_threads"
import { type DatabaseOptions, openDatabase } from "../store/connection.ts"
import { createAnswers, type TeamAnswer, type TeamQuestion } from "./answer.ts"
import { createFollower, type ShardLag } from "./follow.ts"

// What takes the processor runs here, away from the thread that answers requests: searching, or writing the shards.

export type ThreadData = DatabaseOptions & { work: "answer" | "follow"; data: string; folder: string; version: string }
export type ToThread = { id: number; question: TeamQuestion } | "close"
export type FromThread =
  | { id: number; answer: TeamAnswer }
  | { id: number; failed: string }
  | { failed: string }
  | { lags: ShardLag[] }

/** A push is found within this time, and reading it. */
const LOOK_MS = 300
const AFTER_FAILURE_MS = 2_000

const { work, data, folder, version, ...options } = workerData as ThreadData
// What crosses to a thread loses its class.
const db = openDatabase({ ...options, masterKey: Buffer.from(options.masterKey) })
const send = (message: FromThread) => parentPort!.postMessage(message)
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

if (work === "answer") {
  const answers = createAnswers({ db, data, folder, version })
  let last: Promise<void> = Promise.resolve()
  parentPort!.on("message", (message: ToThread) => {
    if (message === "close") return void last.then(() => process.exit(0))
    const { id, question } = message
    last = last.then(async () => {
      try {
        send({ id, answer: await answers.answer(question) })
      } catch (error) {
        send({ id, failed: error instanceof Error ? (error.stack ?? error.message) : String(error) })
      }
    })
  })
} else {
  let isClosing = false
  parentPort!.on("message", () => {
    isClosing = true
  })
  const follower = createFollower(db, data)
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
