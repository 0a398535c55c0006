import { isSubprocessEnded, type Subprocess, subprocessFile } from "../../../src/subprocess/link.ts"
import { startThread } from "../../../src/subprocess/thread.ts"
import { HubProblem } from "../store/problem.ts"
import type { Drops, TeamAnswer, TeamRequest } from "./answer.ts"
import { SEARCH_UNAVAILABLE } from "./engine.ts"
import type { TenantLag } from "./follow.ts"
import type { ThreadAnswer, ThreadData, ThreadEvent, ThreadOrder, ThreadWork } from "./thread.ts"

export type SearchState = {
  waiting: number
  drops: Drops
  lags: TenantLag[]
  isBuilt: boolean
  isAvailable?: boolean
  unavailable?: number
}

export type Search = {
  ask(request: TeamRequest): Promise<unknown>
  /**
   * `waiting` is the number of questions that wait or are being answered. `drops` are the conversations that only the second
   * access check has dropped since the start. `isBuilt` is true once there is an index for every tenant. `isAvailable` is false
   * while OpenSearch cannot be searched, and `unavailable` is the number of searches that failed for that reason.
   */
  state(): SearchState
  close(): Promise<void>
}

type SearchOptions = Omit<ThreadData, "work"> & {
  threads?: number
  /** The maximum number of waiting questions. Further ones are refused and must be repeated. */
  longestQueue?: number
  log(event: Record<string, unknown>): void
}

/**
 * The memory for short-lived objects in each thread, in megabytes. Node's default is up to 48, and a small hub has four threads.
 */
const YOUNG_MB = 8

type SearchThread = Subprocess<ThreadOrder, ThreadAnswer | undefined, ThreadEvent>

type WaitingRequest = { request: TeamRequest; resolve(output: unknown): void; reject(error: unknown): void }

/** Starts threads that answer questions, and one thread that writes the indexes. Restarts threads that end. */
export function openSearch({ threads = 2, longestQueue = 64, log, ...data }: SearchOptions): Search {
  const queue: WaitingRequest[] = []
  const idle: ((one: WaitingRequest) => void)[] = []
  let answering = 0
  const drops: Drops = { expected: 0, unexpected: 0 }
  let lags: TenantLag[] = []
  let isBuilt = false
  let isAvailable = true
  let unavailable = 0
  let isClosing = false
  const running: SearchThread[] = []
  const dispatch = () => {
    while (idle.length > 0 && queue.length > 0) idle.pop()!(queue.shift()!)
  }
  const start = (work: ThreadWork, slot: number) => {
    const workerData: ThreadData = { ...data, work }
    const file = subprocessFile("./thread.ts", import.meta.url)
    const thread: SearchThread = startThread(file, { data: workerData, limits: { maxYoungGenerationSizeMb: YOUNG_MB } })
    running[slot] = thread
    const logFailure = (stack: string) => log({ level: "error", event: work, at: throwLocation(stack) })
    const answerOne = async ({ request, resolve, reject }: WaitingRequest) => {
      answering++
      try {
        const answer = (await thread.ask(request))!
        answering--
        if ("failed" in answer) {
          logFailure(answer.failed)
          reject(new Error("A search failed."))
        } else if ("problem" in answer) {
          if (answer.problem.code === SEARCH_UNAVAILABLE.code) unavailable++
          reject(problemOf(answer))
        } else {
          drops.expected += answer.drops.expected
          drops.unexpected += answer.drops.unexpected
          if (answer.drops.unexpected > 0) log({ level: "error", event: "second_wall", drops: answer.drops.unexpected })
          resolve(answer.output)
        }
        idle.push(answerOne)
        dispatch()
      } catch (error) {
        answering--
        reject(isSubprocessEnded(error) ? new Error("The search thread ended unexpectedly. Try again.") : error)
      }
    }
    thread.ended.then(({ cause }) => {
      if (cause instanceof Error) log({ level: "error", event: `${work} thread`, at: throwLocation(cause.stack ?? "") })
      const idleIndex = idle.indexOf(answerOne)
      if (idleIndex >= 0) idle.splice(idleIndex, 1)
      if (!isClosing) start(work, slot)
    })
    if (work === "answer") {
      idle.push(answerOne)
      return dispatch()
    }
    const onEvent = (event: ThreadEvent) => {
      if ("failed" in event) return logFailure(event.failed)
      lags = event.lags
      isBuilt ||= event.isBuilt
      isAvailable = event.isAvailable
    }
    thread.ask("follow", { onEvent }).catch(() => {}) // the thread is restarted
  }
  start("follow", 0)
  for (let slot = 1; slot <= threads; slot++) start("answer", slot)
  return {
    ask: (request) => {
      if (queue.length >= longestQueue)
        return Promise.reject(new HubProblem(503, "busy", "Too many searches at once. Try again in a moment."))
      return new Promise((resolve, reject) => {
        queue.push({ request, resolve, reject })
        dispatch()
      })
    },
    state: () => ({ waiting: queue.length + answering, drops: { ...drops }, lags, isBuilt, isAvailable, unavailable }),
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
