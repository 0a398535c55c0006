import { messageOf } from "../../core/error.ts"
import { isSubprocessEnded, type Subprocess, subprocessFile } from "../../subprocess/link.ts"
import { startProcess } from "../../subprocess/process.ts"
import type { FoundRows } from "./newest-rows.ts"
import type { Preview } from "./preview-lines.ts"
import type { PickerFilter, PickerRow } from "./state.ts"

export type RowQuery = { text: string; filter: PickerFilter; limit: number }

export type LookUpQuestion =
  | { type: "ranked"; query: RowQuery }
  /** `isAgain`: the same words are searched for again, because something new was read. */
  | { type: "typed"; query: RowQuery; isAgain: boolean }
  | { type: "preview"; row: Pick<PickerRow, "ref" | "message">; columns: number; color: boolean }
  | { type: "resumable"; ref: string }
  | { type: "sources" }
  | { type: "note" }
export type LookUpAnswer =
  | { found: FoundRows }
  | { preview: Preview | null }
  /** The reason why the agent cannot resume the conversation; empty if it can. */
  | { why_not: string }
  /** The agents that have conversations. */
  | { sources: string[] }
  /** The line above the list on the first screen. */
  | { note: string }
  | { problem: string }

export type LookUpProcess = {
  /** A newer question replaces a waiting one of the same type, which then gets no answer. */
  ask(question: LookUpQuestion, onAnswer: (answer: LookUpAnswer) => void): void
  close(): void
}

type OpenQuestion = { question: LookUpQuestion; onAnswer: (answer: LookUpAnswer) => void }

/**
 * Looks things up in a subprocess, one at a time, so that drawing never waits. The first question starts it. If it dies, a new
 * subprocess gets the unanswered question.
 */
export function startLookUp(): LookUpProcess {
  let current: Subprocess<LookUpQuestion, LookUpAnswer> | undefined
  let isAsking = false
  let isClosed = false
  const waiting = new Map<LookUpQuestion["type"], OpenQuestion>()
  const ensureRunning = (): NonNullable<typeof current> => {
    if (!current || current.hasEnded()) current = startProcess(subprocessFile("./look-up-process.ts", import.meta.url))
    return current
  }
  const lookUp = async (question: LookUpQuestion, isRetry = false): Promise<LookUpAnswer> => {
    try {
      return await ensureRunning().ask(question)
    } catch (error) {
      if (!isSubprocessEnded(error)) return { problem: messageOf(error) }
      // If the second process died too, the question is not asked again.
      return isRetry || isClosed ? { problem: "The search process ended unexpectedly." } : lookUp(question, true)
    }
  }
  const askNext = async () => {
    const [next] = waiting.values()
    if (isAsking || next === undefined) return
    waiting.delete(next.question.type)
    isAsking = true
    const answer = await lookUp(next.question)
    isAsking = false
    if (isClosed) return
    next.onAnswer(answer)
    askNext()
  }
  return {
    ask: (question, onAnswer) => {
      waiting.set(question.type, { question, onAnswer })
      askNext()
    },
    close: () => {
      isClosed = true
      waiting.clear()
      current?.kill() // it only reads, so it can be killed
    },
  }
}
