import { Worker } from "node:worker_threads"
import { HubProblem } from "../store/problem.ts"
import type { TeamAnswer, TeamQuestion } from "./answer.ts"
import type { ShardLag } from "./follow.ts"
import type { FromThread, ThreadData } from "./thread.ts"

export type Shards = {
  ask(question: TeamQuestion): Promise<unknown>
  /** Questions that wait or are being answered, what the second wall dropped since the start, and how far behind shards are. */
  state(): { waiting: number; drops: number; lags: ShardLag[] }
  close(): Promise<void>
}

export type ShardsOptions = Omit<ThreadData, "work"> & {
  threads?: number
  /** More than this many waiting are told to come back, rather than to wait. */
  longestQueue?: number
  log(event: Record<string, unknown>): void
}

/** Node gives each thread up to 48 MB for what lives for a moment, and a small hub has four threads. */
const YOUNG_MB = 8

type Waiting = { question: TeamQuestion; resolve(output: unknown): void; reject(error: unknown): void }

/** Threads that answer and one that writes; one that dies is started again. */
export function openShards({ threads = 2, longestQueue = 64, log, ...data }: ShardsOptions): Shards {
  const queue: Waiting[] = []
  let answering = 0
  let drops = 0
  let lags: ShardLag[] = []
  let isClosing = false
  let ids = 0
  const workers: Worker[] = []
  const idle: ((one: Waiting) => void)[] = []
  const next = () => {
    while (idle.length > 0 && queue.length > 0) idle.pop()!(queue.shift()!)
  }
  const start = (work: ThreadData["work"], at: number) => {
    const workerData: ThreadData = { ...data, work }
    const worker = new Worker(threadFile(), { workerData, resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB } })
    workers[at] = worker
    let asked: (Waiting & { id: number }) | undefined
    const take = (one: Waiting) => {
      asked = { ...one, id: ++ids }
      answering++
      worker.postMessage({ id: asked.id, question: one.question })
    }
    const done = (settle: (one: Waiting) => void) => {
      const one = asked
      asked = undefined
      if (!one) return
      answering--
      settle(one)
    }
    worker.on("message", (message: FromThread) => {
      if ("lags" in message) lags = message.lags
      if ("failed" in message) log({ level: "error", event: work, at: placeOf(message.failed) })
      if (!("id" in message)) return
      done((one) => {
        if ("failed" in message) return one.reject(new Error("A search failed."))
        const { answer } = message
        if ("problem" in answer) return one.reject(problemOf(answer))
        drops += answer.drops
        if (answer.drops > 0) log({ level: "error", event: "second_wall", drops: answer.drops })
        one.resolve(answer.output)
      })
      idle.push(take)
      next()
    })
    worker.on("error", (error) => log({ level: "error", event: `${work} thread`, at: placeOf(error.stack ?? "") }))
    worker.on("exit", () => {
      const place = idle.indexOf(take)
      if (place >= 0) idle.splice(place, 1)
      done((one) => one.reject(new Error("The thread that searched has ended.")))
      if (!isClosing) start(work, at)
    })
    if (work === "answer") {
      idle.push(take)
      next()
    }
  }
  for (let i = 0; i < threads; i++) start("answer", i)
  start("follow", threads)
  return {
    ask: (question) => {
      if (queue.length >= longestQueue)
        return Promise.reject(new HubProblem(503, "busy", "Too many are searching at once. Try again in a moment."))
      return new Promise((resolve, reject) => {
        queue.push({ question, resolve, reject })
        next()
      })
    },
    state: () => ({ waiting: queue.length + answering, drops, lags }),
    close: async () => {
      isClosing = true
      await Promise.all(
        workers.map((worker) => {
          const ended = new Promise((resolve) => worker.once("exit", resolve))
          worker.postMessage("close")
          return ended
        }),
      )
    },
  }
}

function problemOf({ problem }: Extract<TeamAnswer, { problem: object }>): HubProblem {
  return new HubProblem(problem.status, problem.code, problem.message)
}

/** Beside this file, as it is written or as it is built. */
function threadFile(): URL {
  return new URL(`./thread${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url)
}

/** Where it was thrown, without its message, which may quote what somebody wrote. */
export function placeOf(stack: string): string {
  const lines = stack.split("\n").filter((line) => /^\s+at /.test(line))
  return lines
    .slice(0, 5)
    .map((line) => line.trim())
    .join("; ")
}
