import { messageOf } from "../../core/error.ts"
import { isSubprocessEnded, type Subprocess, subprocessFile } from "../../subprocess/link.ts"
import type { FoundRows } from "./newest-rows.ts"
import type { Preview } from "./screen.ts"
import type { PickerFilter, PickerRow, RowMarks } from "./state.ts"

export type RowQuery = { text: string; filter: PickerFilter; limit: number }

export type LookUpRequest =
  | { type: "ranked"; query: RowQuery }
  /** `isAgain`: the same words are searched for again, because something new was read. */
  | { type: "typed"; query: RowQuery; isAgain: boolean }
  | { type: "preview"; row: Pick<PickerRow, "ref" | "message">; columns: number; color: boolean }
  | { type: "resumable"; ref: string }
  | { type: "mark"; ref: string; marks: RowMarks }
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
  /** The title and tags after a change. */
  | { marked: { title: string; tags: string[] } }
  | { problem: string }

export type LookUpProcess = {
  /** A newer request replaces a waiting one of the same type, which then gets no answer. No change is ever replaced. */
  ask(request: LookUpRequest, onAnswer: (answer: LookUpAnswer) => void): void
  close(): void
}

type OpenLookUp = { request: LookUpRequest; onAnswer: (answer: LookUpAnswer) => void }

/**
 * Looks things up in a subprocess, one at a time, so that drawing never waits. The first request starts it, and loads what starts
 * processes. If the subprocess dies, a new one gets the unanswered request.
 */
export function startLookUp(): LookUpProcess {
  let current: Subprocess<LookUpRequest, LookUpAnswer> | undefined
  let isAsking = false
  let isClosed = false
  const waiting = new Map<string, OpenLookUp>()
  const ensureRunning = async (): Promise<NonNullable<typeof current>> => {
    const { startProcess } = await import("../../subprocess/process.ts")
    if (!current || current.hasEnded()) current = startProcess(subprocessFile("./look-up-process.ts", import.meta.url))
    if (isClosed) current.kill()
    return current
  }
  const lookUp = async (request: LookUpRequest, isRetry = false): Promise<LookUpAnswer> => {
    try {
      return await (await ensureRunning()).ask(request)
    } catch (error) {
      if (!isSubprocessEnded(error)) return { problem: messageOf(error) }
      // If the second process died too, the request is not sent again.
      return isRetry || isClosed
        ? { problem: "The search process ended unexpectedly. Try again." }
        : lookUp(request, true)
    }
  }
  const askNext = async () => {
    const [next] = waiting.values()
    if (isAsking || next === undefined) return
    waiting.delete(keyOf(next.request))
    isAsking = true
    const answer = await lookUp(next.request)
    isAsking = false
    if (isClosed) return
    next.onAnswer(answer)
    askNext()
  }
  return {
    ask: (request, onAnswer) => {
      waiting.set(keyOf(request), { request, onAnswer })
      askNext()
    },
    close: () => {
      isClosed = true
      waiting.clear()
      current?.kill() // it reads, and changes the history in one step, so it can be killed
    },
  }
}

function keyOf(request: LookUpRequest): string {
  return request.type === "mark" ? JSON.stringify(request) : request.type
}
