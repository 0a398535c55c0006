import { formatRef } from "../core/ref.ts"
import type { ConversationRow, StoredMessage } from "../store/history/store.ts"
import { conversationOf } from "./fields.ts"

// What the views of a conversation share when they run: show, scan, read and timeline.

const LONGEST_TITLE = 200

export function headOf(row: ConversationRow) {
  const { message_count: _, estimated_tokens: __, title, ...head } = conversationOf(row)
  return { ...head, title: title.length > LONGEST_TITLE ? `${title.slice(0, LONGEST_TITLE)}…` : title }
}

/** Folders whose files are named without them, longest first. */
export function rootsOf(row: ConversationRow): string[] {
  const roots = new Set([...(row.project === undefined ? [] : [row.project]), ...row.cwds])
  return [...roots].filter((root) => root.length > 2).sort((a, b) => b.length - a.length)
}

export function messageState(message: StoredMessage): { state?: "abandoned" | "superseded" | "copied" } {
  if (message.superseded) return { state: "superseded" }
  if (message.abandoned) return { state: "abandoned" }
  return message.copied ? { state: "copied" } : {}
}

export function originsText(message: StoredMessage): string {
  return [...new Set(message.parts.map((part) => part.origin))].join(", ")
}

/** A call as it is typed. Ids come from other programs' files: whatever is in one, a shell must not act on it. */
export function commandLine(
  name: string,
  words: (string | { ref: ConversationRow["ref"] })[],
  flags: Record<string, string | number | string[] | undefined> = {},
): string {
  const typed = Object.entries(flags).flatMap(([flag, value]) =>
    value === undefined || (Array.isArray(value) && value.length === 0) ? [] : [`--${flag}`, quoted(String(value))],
  )
  return [
    "dex",
    name,
    ...words.map((word) => quoted(typeof word === "string" ? word : formatRef(word.ref))),
    ...typed,
  ].join(" ")
}

function quoted(word: string): string {
  return /^[\w./:#,@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
