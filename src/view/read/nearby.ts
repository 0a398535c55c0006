import type { Ref } from "../../core/ref.ts"
import { outcomesOf } from "../../render/fold.ts"
import type { HistoryReader, StoredMessage } from "../../store/history/store.ts"

/**
 * A call shows its answer if that came within so many messages, as nearly all do. One that came later stands where it was
 * given: so a part of a conversation can be shown without reading the rest.
 */
const NEAR = 30

/** In which message a call was made, and in which it was answered. */
export type MadeCall = { madeIn?: number; answeredIn?: number }

export type Nearby = {
  messages: StoredMessage[]
  outcomes: ReturnType<typeof outcomesOf>
  /** Those of `outcomes`. */
  calls: Map<string, MadeCall>
}

/** Some messages that follow each other, with what is around them. `all` has the numbers of the whole conversation. */
export async function readNearby(
  store: HistoryReader,
  ref: Ref,
  all: readonly number[],
  part: readonly number[],
): Promise<Nearby> {
  const first = all.indexOf(part[0] ?? 0)
  const near = all.slice(Math.max(0, first - NEAR), first + part.length + NEAR)
  const places = new Map(near.map((number, i) => [number, i]))
  const stored = await store.messages(ref, near)
  const outcomes = outcomesOf(stored)
  const calls = callsIn(stored)
  for (const [id, { madeIn, answeredIn }] of calls) {
    const isApart = madeIn === undefined || answeredIn === undefined
    if (!isApart && Math.abs(places.get(answeredIn)! - places.get(madeIn)!) <= NEAR) continue
    outcomes.delete(id)
    calls.delete(id)
  }
  const own = new Set(part)
  return { messages: stored.filter(({ number }) => own.has(number)), outcomes, calls }
}

function callsIn(messages: readonly StoredMessage[]): Map<string, MadeCall> {
  const calls = new Map<string, MadeCall>()
  for (const { number, parts } of messages)
    for (const part of parts) {
      if ((part.type !== "tool_call" && part.type !== "tool_result") || part.call_id === undefined) continue
      const known = calls.get(part.call_id)
      calls.set(part.call_id, { ...known, [part.type === "tool_call" ? "madeIn" : "answeredIn"]: number })
    }
  return calls
}
