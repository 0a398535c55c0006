import { PERSONS_KINDS } from "../core/conversation.ts"
import { grouped } from "../core/format.ts"
import { many } from "../render/words.ts"

/** How many, of each kind of conversation. */
export type KindCounts = Readonly<Record<string, number>>

/**
 * How many conversations there are: those that a person had with an agent, whatever else is kept. Every number that dex calls
 * conversations is this one, or says what else it counts.
 */
export function conversationsAmong(counts: KindCounts): number {
  return PERSONS_KINDS.reduce((sum, kind) => sum + (counts[kind] ?? 0), 0)
}

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

/**
 * What a search counted, next to how many rows it shows. Conversations and their subagents share rows, so with subagents among them the
 * number of all rows is not known: "3 conversations shown; found in 12 conversations (and 4 by subagents)".
 */
export function sayFound(kinds: KindCounts, shown: number, noun: string, isAtLeast = false): string | undefined {
  const { person, document = 0, ...others } = kinds
  const more = isAtLeast ? "more than " : ""
  const own = noun === "conversation" ? "person" : noun
  const isOneNoun = Object.keys(kinds).every((kind) => kind === own)
  if (isOneNoun || (noun === "result" && others.subagent === undefined)) {
    const all = Object.values(kinds).reduce((sum, count) => sum + count, 0)
    if (all < shown) return undefined
    return all === shown && !isAtLeast ? `${many(all, noun)} found` : `${shown} of ${more}${many(all, noun)} shown`
  }
  const said = sayConversations({ ...(person !== undefined && { person }), ...others })
  const documents = document > 0 ? ` and ${many(document, "document")}` : ""
  return `${many(shown, noun)} shown; found in ${more}${said}${documents}`
}

/** "251 conversations (and 121 by subagents)": the number that a listing shows, and what it leaves out. */
export function sayConversations(counts: KindCounts): string {
  const own = conversationsAmong(counts)
  const others = otherKinds(counts)
  if (own === 0 && counts.note !== undefined && Object.keys(counts).length === 1) return others
  return `${many(own, "conversation")}${others === "" ? "" : ` (and ${others})`}`
}
