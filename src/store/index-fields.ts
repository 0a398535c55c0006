import { type Kind, ROLES, type Role, SOURCES, type SourceId } from "../core/conversation.ts"
import { hiddenWords } from "../core/words.ts"
import type { ConversationRow, StoredMessage } from "./store.ts"

/** The words of a message by who wrote them, which says how likely they are to be what somebody looks for. */
export type Fields = Record<Column, string>
export type Column = (typeof COLUMNS)[number]

/** `hidden`: what the tokenizer would not see, such as the parts of camelCase names. */
export const COLUMNS = ["asked", "answered", "thought", "edited", "called", "returned", "injected", "hidden"] as const

export function fieldsOf(message: Pick<StoredMessage, "parts" | "role">): Fields {
  const texts: Record<Exclude<Column, "hidden">, string[]> = {
    asked: [],
    answered: [],
    thought: [],
    edited: [],
    called: [],
    returned: [],
    injected: [],
  }
  for (const part of message.parts) {
    if (part.origin === "injected" || part.type === "summary") texts.injected.push(part.text)
    else if (part.type === "tool_result") texts.returned.push(part.text)
    else if (part.type === "tool_call") texts[EDITS.test(part.tool) ? "edited" : "called"].push(part.tool, part.text)
    else if (part.type === "thinking") texts.thought.push(part.text)
    else texts[message.role === "user" ? "asked" : "answered"].push(part.text)
  }
  const written = [texts.asked, texts.answered, texts.thought, texts.edited, texts.called].flat().join("\n")
  const joined = Object.fromEntries(Object.entries(texts).map(([name, list]) => [name, list.join("\n")]))
  return { ...(joined as Omit<Fields, "hidden">), hidden: hiddenWords(written) }
}

const EDITS = /^(?:edit|multiedit|write|notebookedit|apply_patch|patch|replace|write_file|edit_file|search_replace)$/i

/** What a conversation is about, as far as its head and its deeds tell: an entry of its own beside its messages. */
export function cardOf(row: ConversationRow, files: string[]): Fields | undefined {
  // A title that repeats the first prompt is found in the prompt itself.
  const title = row.title && row.title.from !== "first_prompt" ? row.title.text : ""
  const deeds = [row.git_branch ?? "", ...files].filter((text) => text !== "").join("\n")
  if (title === "" && deeds === "") return undefined
  const empty = { answered: "", thought: "", edited: "", returned: "", injected: "" }
  return { ...empty, asked: title, called: deeds, hidden: hiddenWords(deeds) }
}

const KINDS: readonly Kind[] = ["person", "subagent", "automation", "dex"]

// Filters are words of the index: FTS5 intersects them far faster than SQL can check rows. A tag ends in a digit, so
// that the stemmer leaves it alone, and begins so that no query for ordinary words can mean it.
export const sourceTag = (source: SourceId) => `xxsource${SOURCES.indexOf(source)}`
export const kindTag = (kind: Kind) => `xxkind${KINDS.indexOf(kind)}`
export const projectTag = (id: number) => `xxproject${id}`
export const roleTag = (role: Role) => `xxrole${ROLES.indexOf(role)}`
export const toolTag = (tool: string) => `xxtool${Buffer.from(tool.toLowerCase().slice(0, 100)).toString("hex")}0`

export function tagsOf(row: Pick<ConversationRow, "ref" | "kind">, projectId: number | undefined): string {
  const tags = [sourceTag(row.ref.source), kindTag(row.kind)]
  if (projectId !== undefined) tags.push(projectTag(projectId))
  return tags.join(" ")
}

export function messageTags(message: Pick<StoredMessage, "parts" | "role">): string {
  const tools = message.parts.flatMap((part) => ("tool" in part && part.tool ? [toolTag(part.tool)] : []))
  return [roleTag(message.role), ...new Set(tools)].join(" ")
}
