import { sourceIds } from "../agents/registry.ts"
import { isoDate, parseDate } from "../core/dates.ts"
import { formatRef } from "../core/ref.ts"
import { flag, type Infer, integer, listOf, mapOf, object, optional, text } from "../core/schema.ts"
import type { ConversationRow } from "../store/history/store.ts"

// Input and output fields that several tools share, so that an option means the same in all of them.

export const projectField = optional(text("A part of a project's folder or remote."))
/** How many sources the description of `sourceField` names. */
const NAMED_SOURCES = 2
/** Not a choice from a list, because users can add agents of their own. The text is checked before the tool runs. */
export const sourceField = optional(text(`Only from this agent: ${sourceIds.slice(0, NAMED_SOURCES).join(", ")}, ….`))
export const fromField = optional(text("Start date: 2026-11-03, 7d, yesterday."))
export const archivedField = optional(flag("Only what the agents have deleted and dex still has."))
export const tagField = optional(text("Only conversations with this tag, as dex note gives it."))
export const toField = optional(text("End date."))

export const unknownTablesField = optional(
  listOf(
    object({ path: text(), tables: mapOf(integer(), "Number of rows by table, up to 10,000.") }),
    "Databases with unknown tables, which dex does not read.",
  ),
)

export const conversationFields = {
  id: text("The ref: pass it to get."),
  title: text(),
  project: text(),
  source: text(),
  date: text("When the conversation ended."),
  kind: text("person, subagent, automation, dex or note."),
  message_count: integer(),
  estimated_tokens: integer("Estimated tokens of the stripped format."),
  imported_from: optional(text("The person from whose history it was imported.")),
  tags: optional(listOf(text(), "The tags that the user gave it; starred is a star.")),
  superseded: optional(flag("No longer in the agent's file; dex has a copy.")),
}
const conversationShape = object(conversationFields)

export function conversationOf(row: ConversationRow): Infer<typeof conversationShape> {
  return {
    id: formatRef(row.ref),
    title: row.title?.text ?? "(no title)",
    project: row.project ?? "",
    source: row.ref.source,
    date: row.ended_at === undefined ? "" : isoDate(row.ended_at),
    kind: row.kind,
    message_count: row.message_count,
    estimated_tokens: row.estimated_tokens,
    tags: row.tags,
    superseded: row.superseded || undefined,
    imported_from: row.imported_from,
  }
}

export function dateRange(input: { from?: string; to?: string }, now: number): { from?: number; to?: number } {
  return {
    from: input.from === undefined ? undefined : parseDate(input.from, "from", now),
    to: input.to === undefined ? undefined : parseDate(input.to, "to", now),
  }
}
