import { type Kind, SOURCES, type SourceId } from "../core/conversation.ts"
import type { ConversationRow, StoredMessage } from "./store.ts"

/** The words of a message by how likely they are to be what somebody looks for. */
export type Fields = { said: string; called: string; returned: string }

export function fieldsOf(message: Pick<StoredMessage, "parts">): Fields {
  const said: string[] = []
  const called: string[] = []
  const returned: string[] = []
  for (const part of message.parts) {
    if (part.type === "tool_result" || part.origin === "injected") returned.push(part.text)
    else if (part.type === "tool_call") called.push(part.tool, part.text)
    else said.push(part.text)
  }
  return { said: said.join("\n"), called: called.join("\n"), returned: returned.join("\n") }
}

const KINDS: readonly Kind[] = ["person", "subagent", "automation", "dex"]

// Filters are words of the index: FTS5 intersects them far faster than SQL can check rows. A tag ends in a digit, so
// that the stemmer leaves it alone, and begins so that no query for ordinary words can mean it.
export const sourceTag = (source: SourceId) => `xxsource${SOURCES.indexOf(source)}`
export const kindTag = (kind: Kind) => `xxkind${KINDS.indexOf(kind)}`
export const projectTag = (id: number) => `xxproject${id}`

export function tagsOf(row: Pick<ConversationRow, "ref" | "kind">, projectId: number | undefined): string {
  const tags = [sourceTag(row.ref.source), kindTag(row.kind)]
  if (projectId !== undefined) tags.push(projectTag(projectId))
  return tags.join(" ")
}
