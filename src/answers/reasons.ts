import { besideOf, type Ref } from "../core/ref.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../store/history/store.ts"
import { type WhyFacts, whyFacts } from "./why-facts.ts"

/** A conversation that wrote lines: in which messages, of its subagents too, and the one in which it made the commit. */
export type WrittenIn = { ref: Ref; edits: { id: string; number: number }[]; committed?: number }

/** Why it wrote them. Undefined where the conversation is not there. */
export async function reasonsFor(
  store: HistoryReader,
  { ref, edits, committed }: WrittenIn,
): Promise<{ row: ConversationRow; messages: StoredMessage[]; facts: WhyFacts } | undefined> {
  const row = await store.conversation(ref)
  if (!row) return undefined
  const messages = await store.messages(ref)
  const numbers = await editsIn(store, ref, messages, edits)
  const facts = whyFacts({ row, messages, edits: numbers, ...(committed !== undefined && { committed }) })
  return { row, messages, facts }
}

/** The messages that wrote the lines. For what a subagent wrote, the last one that was said before it started. */
async function editsIn(
  store: HistoryReader,
  own: Ref,
  messages: StoredMessage[],
  edits: WrittenIn["edits"],
): Promise<number[]> {
  const numbers = new Set<number>()
  for (const [id, some] of Map.groupBy(edits, ({ id }) => id)) {
    if (id === own.id) {
      for (const { number } of some) numbers.add(number)
      continue
    }
    const started = (await store.conversation(besideOf(own, id)))?.started_at
    const before = messages.findLast(({ at }) => at !== undefined && started !== undefined && at <= started)
    if (before) numbers.add(before.number)
  }
  return [...numbers]
}
