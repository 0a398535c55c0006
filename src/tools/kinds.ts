import { grouped } from "../core/format.ts"
import { many } from "../render/words.ts"

/** How many, of each kind of conversation. */
export type KindCounts = Readonly<Record<string, number>>

const OTHERS: Record<string, string> = { subagent: "by subagents", automation: "automated", dex: "dex's own" }

/** "8 automated, 121 by subagents, 2 notes": what is not a conversation that a person had with an agent. */
export function otherKinds(counts: KindCounts): string {
  return Object.entries(counts)
    .filter(([kind, count]) => kind !== "person" && kind !== "document" && count > 0)
    .map(([kind, count]) => (kind === "note" ? many(count, "note") : `${grouped(count)} ${OTHERS[kind] ?? kind}`))
    .join(", ")
}

/** What these are: conversations, documents or notes; results if they are of several sorts. */
export function nounOf(rows: readonly { kind: string }[]): "conversation" | "document" | "note" | "result" {
  const nouns = new Set(rows.map(({ kind }) => (kind === "document" || kind === "note" ? kind : "conversation")))
  const [noun = "conversation"] = nouns
  return nouns.size > 1 ? "result" : noun
}

/** "12 messages"; a document has sections. */
export function countedIn({ kind, message_count }: { kind: string; message_count: number }): string {
  return many(message_count, kind === "document" ? "section" : "message")
}

/** "251 conversations (and 121 by subagents)": the number that a listing shows, and what it leaves out. */
export function sayConversations(counts: KindCounts): string {
  const own = counts.person ?? 0
  const others = otherKinds(counts)
  if (own === 0 && counts.note !== undefined && Object.keys(counts).length === 1) return others
  return `${many(own, "conversation")}${others === "" ? "" : ` (and ${others})`}`
}
