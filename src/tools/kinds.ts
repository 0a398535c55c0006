import { grouped } from "../core/format.ts"

/** How many, of each kind of conversation. */
export type KindCounts = Readonly<Record<string, number>>

const OTHERS: Record<string, string> = { subagent: "by subagents", automation: "automated", dex: "dex's own" }

/** "8 automated, 121 by subagents": the kinds of conversations that nobody had with an agent. */
export function otherKinds(counts: KindCounts): string {
  return Object.entries(counts)
    .filter(([kind, count]) => kind !== "person" && kind !== "document" && count > 0)
    .map(([kind, count]) => `${grouped(count)} ${OTHERS[kind] ?? kind}`)
    .join(", ")
}

/** "251 conversations (and 121 by subagents)": the number that a listing shows, and what it leaves out. */
export function sayConversations(counts: KindCounts): string {
  const own = counts.person ?? 0
  const others = otherKinds(counts)
  return `${grouped(own)} ${own === 1 ? "conversation" : "conversations"}${others === "" ? "" : ` (and ${others})`}`
}
