import { isSubprocessEnded, type Subprocess, subprocessFile } from "../../../src/subprocess/link.ts"
import { startThread } from "../../../src/subprocess/thread.ts"
import { HubProblem } from "../store/problem.ts"
import type { TeamAnswer, TeamQuestion } from "./answer.ts"
import type { ShardLag } from "./follow.ts"
import type { ShardAnswer, ShardQuestion } from "./remote.ts"
import type { AnyQuestion, ThreadAnswer, ThreadData, ThreadEvent, ThreadOrder, ThreadWork } from "./thread.ts"

export type Shards = {
  ask(question: TeamQuestion): Promise<unknown>
  /**
   * `waiting` is the number of questions that wait or are being answered. `drops` is the number of documents that the second
   * access check has dropped since the start.
   */
  state(): { waiting: number; drops: number; lags: ShardLag[] }
  close(): Promise<void>
}

/** This node's answers to other nodes. */
export type NodeShards = {
  askShard(question: ShardQuestion): Promise<ShardAnswer>
  askLines(question: Omit<TeamQuestion, "tool">): Promise<unknown>
}

export type ShardsOptions = Omit<ThreadData, "work"> & {
  threads?: number
  /** The maximum number of waiting questions. Further ones are refused and must be repeated. */
  longestQueue?: number
  log(event: Record<string, unknown>): void
}

/**
 * The memory for short-lived objects in each thread, in megabytes. Node's default is up to 48, and a small hub has four threads.
 */
const YOUNG_MB = 8

type ShardThread = Subprocess<ThreadOrder, ThreadAnswer | undefined, ThreadEvent>

type WaitingQuestion = { question: AnyQuestion; resolve(output: unknown): void; reject(error: unknown): void }

type Lane = { queue: WaitingQuestion[]; idle: ((one: WaitingQuestion) => void)[]; answering: number }

/**
 * Starts threads that answer questions, as many again for other nodes if those can reach this one, and one thread that writes the
 * shards. Restarts threads that end.
 */
export function openShards({ threads = 2, longestQueue = 64, log, ...data }: ShardsOptions): Shards & NodeShards {
  const lanes: Record<"answer" | "asked", Lane> = {
    answer: { queue: [], idle: [], answering: 0 },
    asked: { queue: [], idle: [], answering: 0 },
  }
  let drops = 0
  let lags: ShardLag[] = []
  let isClosing = false
  const running: ShardThread[] = []
  const dispatch = ({ idle, queue }: Lane) => {
    while (idle.length > 0 && queue.length > 0) idle.pop()!(queue.shift()!)
  }
  const start = (work: ThreadWork, slot: number) => {
    const lane = work === "follow" ? undefined : lanes[work]
    const workerData: ThreadData = { ...data, work }
    const file = subprocessFile("./thread.ts", import.meta.url)
    const thread: ShardThread = startThread(file, { data: workerData, limits: { maxYoungGenerationSizeMb: YOUNG_MB } })
    running[slot] = thread
    const logFailure = (stack: string) => log({ level: "error", event: work, at: throwLocation(stack) })
    const answerOne = async ({ question, resolve, reject }: WaitingQuestion) => {
      lane!.answering++
      try {
        const answer = (await thread.ask(question))!
        lane!.answering--
        if ("failed" in answer) {
          logFailure(answer.failed)
          reject(new Error("A search failed."))
        } else if ("problem" in answer) reject(problemOf(answer))
        else {
          drops += answer.drops
          if (answer.drops > 0) log({ level: "error", event: "second_wall", drops: answer.drops })
          resolve(answer.output)
        }
        lane!.idle.push(answerOne)
        dispatch(lane!)
      } catch (error) {
        lane!.answering--
        reject(isSubprocessEnded(error) ? new Error("The search thread ended unexpectedly. Try again.") : error)
      }
    }
    thread.ended.then(({ cause }) => {
      if (cause instanceof Error) log({ level: "error", event: `${work} thread`, at: throwLocation(cause.stack ?? "") })
      const idleIndex = lane?.idle.indexOf(answerOne) ?? -1
      if (idleIndex >= 0) lane!.idle.splice(idleIndex, 1)
      if (!isClosing) start(work, slot)
    })
    if (lane) {
      lane.idle.push(answerOne)
      return dispatch(lane)
    }
    const onEvent = (event: ThreadEvent) => {
      if ("lags" in event) lags = event.lags
      else logFailure(event.failed)
    }
    thread.ask("follow", { onEvent }).catch(() => {}) // the thread is restarted
  }
  const works: ThreadWork[] = ["follow"]
  for (let i = 0; i < threads; i++) works.push("answer", ...(data.node.url === undefined ? [] : ["asked" as const]))
  for (const [slot, work] of works.entries()) start(work, slot)
  const askIn = (lane: Lane, question: AnyQuestion): Promise<unknown> => {
    if (lane.queue.length >= longestQueue)
      return Promise.reject(new HubProblem(503, "busy", "Too many searches at once. Try again in a moment."))
    return new Promise((resolve, reject) => {
      lane.queue.push({ question, resolve, reject })
      dispatch(lane)
    })
  }
  const { answer, asked: forNodes } = lanes
  return {
    ask: (question) => askIn(answer, { team: question }),
    askShard: (question) => askIn(forNodes, { shard: question }) as Promise<ShardAnswer>,
    askLines: (question) => askIn(forNodes, { team: { ...question, tool: "lines" } }),
    state: () => ({ waiting: answer.queue.length + answer.answering, drops, lags }),
    close: async () => {
      isClosing = true
      await Promise.all(running.map((thread) => thread.end()))
    },
  }
}

function problemOf({ problem }: Extract<TeamAnswer, { problem: object }>): HubProblem {
  return new HubProblem(problem.status, problem.code, problem.message)
}

/** The location where an error was thrown, without its message, which may quote what somebody wrote. */
export function throwLocation(stack: string): string {
  const lines = stack.split("\n").filter((line) => /^\s+at /.test(line))
  return lines
    .slice(0, 5)
    .map((line) => line.trim())
    .join("; ")
}
