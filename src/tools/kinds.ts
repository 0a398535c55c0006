import { LISTED_KINDS } from "../core/conversation.ts"
import { grouped } from "../core/format.ts"
import { many } from "../render/words.ts"

/** The number of conversations of each kind. */
export type KindCounts = Readonly<Record<string, number>>

/**
 * The number of conversations that a person had with an agent. Whenever dex counts "conversations" without further words, it
 * means these.
 */
export function countPersonConversations(counts: KindCounts): number {
  return LISTED_KINDS.reduce((sum, kind) => sum + (counts[kind] ?? 0), 0)
}

const OTHER_KINDS: Record<string, string> = { subagent: "by subagents", automation: "automated", dex: "dex's own" }

/** "8 automated, 121 by subagents, 2 notes": everything except documents and a person's conversations with agents. */
export function describeOtherKinds(counts: KindCounts): string {
  return Object.entries(counts)
    .filter(([kind, count]) => kind !== "person" && kind !== "document" && count > 0)
    .map(([kind, count]) => (kind === "note" ? many(count, "note") : `${grouped(count)} ${OTHER_KINDS[kind] ?? kind}`))
    .join(", ")
}

/** The noun for these rows; "result" if they are of several kinds. */
export function nounForRows(rows: readonly { kind: string }[]): "conversation" | "document" | "note" | "result" {
  const nouns = new Set(rows.map(({ kind }) => (kind === "document" || kind === "note" ? kind : "conversation")))
  const [noun = "conversation"] = nouns
  return nouns.size > 1 ? "result" : noun
}

/** "12 messages", or "12 sections" for a document. */
export function sizeOfRow({ kind, message_count }: { kind: string; message_count: number }): string {
  return many(message_count, kind === "document" ? "section" : "message")
}

/**
 * Describes the number of matches next to the number of rows shown. A conversation and its subagents share a row, so the total
 * number of rows is unknown if there are subagents: "3 conversations shown; found in 12 conversations (and 4 by subagents)".
 */
export function describeMatches(
  kinds: KindCounts,
  shownCount: number,
  noun: string,
  isAtLeast = false,
): string | undefined {
  const { person, document = 0, ...others } = kinds
  const atLeastText = isAtLeast ? "more than " : ""
  const mainKind = noun === "conversation" ? "person" : noun
  const isOneNoun = Object.keys(kinds).every((kind) => kind === mainKind)
  if (isOneNoun || (noun === "result" && others.subagent === undefined)) {
    const total = Object.values(kinds).reduce((sum, count) => sum + count, 0)
    if (total < shownCount) return undefined
    return total === shownCount && !isAtLeast
      ? `${many(total, noun)} found`
      : `${shownCount} of ${atLeastText}${many(total, noun)} shown`
  }
  const conversations = describeConversations({ ...(person !== undefined && { person }), ...others })
  const documents = document > 0 ? ` and ${many(document, "document")}` : ""
  return `${many(shownCount, noun)} shown; found in ${atLeastText}${conversations}${documents}`
}

/**
 * "251 conversations (and 121 by subagents)": the conversations that a listing shows, then those of other kinds that it leaves
 * out.
 */
export function describeConversations(counts: KindCounts): string {
  const personCount = countPersonConversations(counts)
  const others = describeOtherKinds(counts)
  if (personCount === 0 && counts.note !== undefined && Object.keys(counts).length === 1) return others
  return `${many(personCount, "conversation")}${others === "" ? "" : ` (and ${others})`}`
}
