import { type ChildProcess, fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import type { FoundRows } from "./newest-rows.ts"
import type { Preview } from "./preview-lines.ts"
import type { PickerFilter, PickerRow } from "./state.ts"

export type RowQuery = { text: string; filter: PickerFilter; limit: number }

export type LookUpQuestion =
  | { type: "ranked"; query: RowQuery }
  /** With `isAgain` something new was read since. */
  | { type: "typed"; query: RowQuery; isAgain: boolean }
  | { type: "preview"; row: Pick<PickerRow, "ref" | "message">; columns: number; color: boolean }
  | { type: "resumable"; ref: string }
  | { type: "sources" }
  | { type: "note" }
export type LookUpAnswer =
  | { found: FoundRows }
  | { preview: Preview | null }
  /** Empty where the agent can go on with it. */
  | { why_not: string }
  /** The agents that there are conversations of, and what the first screen has to say beside rows. */
  | { sources: string[] }
  | { note: string }
  | { problem: string }
export type LookUp = { id: number } & LookUpAnswer

export type LookUpProcess = {
  /** A newer question of the same type takes the place of one that waits: that one is never answered. */
  ask(question: LookUpQuestion, answered: (answer: LookUpAnswer) => void): void
  close(): void
}

type OpenQuestion = { question: LookUpQuestion; answered: (answer: LookUpAnswer) => void }

/**
 * Looks things up in a process of its own, one after the other, so that drawing never waits. Started with the first
 * question. One that died is started again, and is asked what the other one did not answer.
 */
export function startLookUp(): LookUpProcess {
  let child: ChildProcess | undefined
  let asking: (OpenQuestion & { isAgain: boolean }) | undefined
  const waiting = new Map<LookUpQuestion["type"], OpenQuestion>()
  let id = 0
  const end = (answer: LookUpAnswer) => {
    const { answered } = asking!
    asking = undefined
    answered(answer)
    askNext()
  }
  const started = () => {
    if (child) return child
    const one = fork(processFile(), { stdio: ["ignore", "ignore", "ignore", "ipc"], execArgv: [] })
    one.on("message", (answer: LookUp) => answer.id === id && asking && end(answer))
    const gone = () => {
      if (child !== one) return
      child = undefined
      // What two of them did not survive is not asked a third time.
      if (asking?.isAgain) end({ problem: "The process that searches ended early." })
      else if (asking) send({ ...asking, isAgain: true })
    }
    one.on("error", gone)
    one.on("exit", gone)
    child = one
    return one
  }
  const send = (asked: OpenQuestion & { isAgain: boolean }) => {
    asking = asked
    started().send({ id: ++id, question: asked.question }, () => {})
  }
  const askNext = () => {
    const [next] = waiting.values()
    if (asking || next === undefined) return
    waiting.delete(next.question.type)
    send({ ...next, isAgain: false })
  }
  return {
    ask: (question, answered) => {
      waiting.set(question.type, { question, answered })
      askNext()
    },
    close: () => {
      const one = child
      child = undefined
      waiting.clear()
      one?.kill("SIGKILL") // it only reads
    },
  }
}

/** Source files run as they are in development; the bundle has its processes beside its first file. */
function processFile(): string {
  const development = import.meta.url.endsWith(".ts")
  return fileURLToPath(new URL(development ? "./look-up-process.ts" : "../look-up-process.js", import.meta.url))
}
