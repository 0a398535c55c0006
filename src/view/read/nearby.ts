import { formatRef, type Ref } from "../../core/ref.ts"
import { outcomesOf } from "../../render/fold.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many } from "../../render/words.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { conversationOf } from "../../tools/fields.ts"
import type { Addresses } from "../page.ts"

/**
 * A call is shown with its result if the result came within this many messages, as nearly all do. A later result is shown in its
 * own message. This way, a part of a conversation can be shown without reading the rest.
 */
const MAX_DISTANCE = 30

/** The numbers of the two messages that contain a call and its result. */
type CallMessages = { madeIn?: number; answeredIn?: number }

export type MessagesWithResults = {
  messages: StoredMessage[]
  outcomes: ReturnType<typeof outcomesOf>
  /** The calls whose results are in `outcomes`. */
  calls: Map<string, CallMessages>
}

/** The messages with the numbers in `part`, and the results of their calls. `allNumbers` covers the whole conversation. */
export async function readWithResults(
  store: HistoryReader,
  ref: Ref,
  allNumbers: readonly number[],
  part: readonly number[],
): Promise<MessagesWithResults> {
  const first = allNumbers.indexOf(part[0] ?? 0)
  const nearbyNumbers = allNumbers.slice(Math.max(0, first - MAX_DISTANCE), first + part.length + MAX_DISTANCE)
  const positions = new Map(nearbyNumbers.map((number, i) => [number, i]))
  const storedMessages = await store.messages(ref, nearbyNumbers)
  const outcomes = outcomesOf(storedMessages)
  const calls = callsIn(storedMessages)
  for (const [id, call] of calls) {
    if (isTogether(call, positions)) continue
    outcomes.delete(id)
    calls.delete(id)
  }
  const partNumbers = new Set(part)
  return { messages: storedMessages.filter(({ number }) => partNumbers.has(number)), outcomes, calls }
}

/** True if a call is shown with its result. `positions` maps a message's number to its position. */
function isTogether({ madeIn, answeredIn }: CallMessages, positions: ReadonlyMap<number, number>): boolean {
  if (madeIn === undefined || answeredIn === undefined) return false
  return Math.abs(positions.get(answeredIn)! - positions.get(madeIn)!) <= MAX_DISTANCE
}

/** Returns a function that says in which message the page shows a call's result, which is in message `number`. */
export function messageShowing(messages: readonly StoredMessage[]): (callId: string, number: number) => number {
  const positions = new Map(messages.map(({ number }, i) => [number, i]))
  const calls = callsIn(messages)
  return (callId, number) => {
    const call = calls.get(callId)
    return call?.answeredIn === number && isTogether(call, positions) ? call.madeIn! : number
  }
}

function callsIn(messages: readonly StoredMessage[]): Map<string, CallMessages> {
  const calls = new Map<string, CallMessages>()
  for (const { number, parts } of messages)
    for (const part of parts) {
      if ((part.type !== "tool_call" && part.type !== "tool_result") || part.call_id === undefined) continue
      const call = calls.get(part.call_id)
      calls.set(part.call_id, { ...call, [part.type === "tool_call" ? "madeIn" : "answeredIn"]: number })
    }
  return calls
}

export type Subagents = { all: ConversationRow[]; byCall: Map<string, ConversationRow> }

export async function subagentsOf(dex: Dex, row: ConversationRow): Promise<Subagents> {
  const store = await dex.store()
  const { rows } = await store.list({
    conversation: row.ref,
    kinds: ["subagent"],
    limit: 500,
    offset: 0,
    inside: dex.project,
  })
  const all = rows.filter(({ parent }) => parent?.id === row.ref.id)
  return {
    all,
    byCall: new Map(all.flatMap((subagent) => (subagent.parent?.call_id ? [[subagent.parent.call_id, subagent]] : []))),
  }
}

export function subagentHtml(row: ConversationRow, to: Addresses): Html {
  const { title, message_count } = conversationOf(row)
  return html`<a class="subagent" href="${to.read(formatRef(row.ref))}"><b>Subagent</b> ${title} <span class="facts">${many(message_count, "message")}</span></a>`
}
