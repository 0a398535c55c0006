import { type Kind, ROLES, type Role, type SourceId, type Title } from "../../core/conversation.ts"
import { collectionOf } from "../../core/ref.ts"
import { hiddenWords } from "../../core/words.ts"
import type { ConversationRow, StoredMessage } from "../history/store.ts"

/** The words of a message, grouped by who wrote them, which determines how relevant they are to a search. */
export type IndexedText = Record<Column, string>
export type Column = (typeof TEXT_COLUMNS)[number]

/**
 * The text columns. `aside` is the agent's thinking and text that hooks inserted. `hidden` contains words that the tokenizer
 * would not see, such as the parts of camelCase names. Tool results come first: they contain two thirds of all words, and FTS5
 * needs two more bytes for every word that is not in the first column.
 */
export const TEXT_COLUMNS = ["returned", "said", "called", "aside", "hidden"] as const
export const COLUMN_NAMES = TEXT_COLUMNS.join(", ")
export const COLUMN_VALUES = TEXT_COLUMNS.map((name) => `@${name}`).join(", ")

/** The number of a conversation's card. Message numbers begin with 1. */
export const CARD_NUMBER = 0

export function fieldsOf(message: Pick<StoredMessage, "parts">): IndexedText {
  const texts: Record<Exclude<Column, "hidden">, string[]> = { returned: [], said: [], called: [], aside: [] }
  for (const part of message.parts) {
    if (part.origin === "injected" || part.type === "summary" || part.type === "thinking") texts.aside.push(part.text)
    else if (part.type === "tool_result") texts.returned.push(part.text)
    else if (part.type === "tool_call") texts.called.push(part.tool, part.text)
    else texts.said.push(part.text)
  }
  const ownText = [texts.said, texts.called, texts.aside].flat().join("\n")
  return {
    returned: texts.returned.join("\n"),
    said: texts.said.join("\n"),
    called: texts.called.join("\n"),
    aside: texts.aside.join("\n"),
    hidden: hiddenWords(ownText),
  }
}

/** The origins of titles that consist of words from messages, where a search already finds them. */
const MESSAGE_TITLE_ORIGINS = new Set<string>(["plan", "commit", "first_prompt"] satisfies Title["from"][])

/** Builds a conversation's card, an indexed entry with the title, branch and edited files. */
export function cardOf(row: ConversationRow, files: string[]): IndexedText | undefined {
  const title = row.title && !MESSAGE_TITLE_ORIGINS.has(row.title.from) ? row.title.text : ""
  const path = row.kind === "document" ? row.ref.id : ""
  const workText = [row.git_branch ?? "", path, ...files].filter((text) => text !== "").join("\n")
  if (title === "" && workText === "") return undefined
  return { returned: "", said: title, called: workText, aside: "", hidden: hiddenWords(workText) }
}

/** The sources that existing indexes store as a number. Do not add any: all others are stored by name. */
const NUMBERED_SOURCES: readonly SourceId[] = [
  "claude_code",
  "codex",
  "opencode",
  "cursor",
  "gemini_cli",
  "dex_chat",
  "docs",
]
export const INDEXED_KINDS: readonly Kind[] = ["person", "subagent", "automation", "dex", "document", "note"]

// Tags for filters. Filters are words of the index, because FTS5 intersects them far faster than SQL can check rows. A
// tag ends in a digit, so that the stemmer does not change it, and begins with letters that no query for ordinary words contains.
export const sourceTag = (source: SourceId) =>
  NUMBERED_SOURCES.includes(source)
    ? `xxsource${NUMBERED_SOURCES.indexOf(source)}`
    : `xxsource${Buffer.from(source).toString("hex")}x0`
export const KIND_TAG = "xxkind"
export const kindTag = (kind: Kind) => `${KIND_TAG}${INDEXED_KINDS.indexOf(kind)}`
export const projectTag = (id: number) => `xxproject${id}`
export const roleTag = (role: Role) => `xxrole${ROLES.indexOf(role)}`
/** The tag of a conversation's card, which has no role tag. */
export const CARD_TAG = "xxcard0"
export const collectionTag = (name: string) => `xxcollection${Buffer.from(name).toString("hex")}0`
export const toolTag = (tool: string) => `xxtool${Buffer.from(tool.toLowerCase().slice(0, 100)).toString("hex")}0`

export function tagsOf(row: Pick<ConversationRow, "ref" | "kind">, projectId: number | undefined): string {
  const tags = [sourceTag(row.ref.source), kindTag(row.kind)]
  if (projectId !== undefined) tags.push(projectTag(projectId))
  if (row.kind === "document") tags.push(collectionTag(collectionOf(row.ref.id)))
  return tags.join(" ")
}

export function messageTags(message: Pick<StoredMessage, "parts" | "role">): string {
  const tools = message.parts.flatMap((part) => ("tool" in part && part.tool ? [toolTag(part.tool)] : []))
  return [roleTag(message.role), ...new Set(tools)].join(" ")
}
