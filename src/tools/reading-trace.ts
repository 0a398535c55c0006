import type { TraceFacts } from "../core/trace.ts"

type Read = { id: string; title: string; messages: unknown[]; truncated?: { messages_left_out: number } }

/** What the trace of a tool tells that reads conversations named by the caller: which, how much, and what was cut. */
export function readingFacts(conversations: Read[]): TraceFacts {
  const leftOut = conversations.reduce((sum, conversation) => sum + (conversation.truncated?.messages_left_out ?? 0), 0)
  return {
    inputs: {
      conversations: conversations.length,
      messages: conversations.reduce((sum, conversation) => sum + conversation.messages.length, 0),
    },
    ranking: conversations.map(({ id, title }, i) => ({
      rank: i + 1,
      ref: id,
      score_final: 0,
      terms: [],
      summary: title,
    })),
    truncation: leftOut > 0 ? { messages_left_out: leftOut } : undefined,
  }
}
