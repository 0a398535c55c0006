import { formatRef, parseCompleteRef } from "../core/ref.ts"
import { choice, integer, listOf, object, optional, text } from "../core/schema.ts"
import type { ConversationRow } from "../store/history/store.ts"
import type { TeamQueryKind } from "../tools/hub/team-question.ts"
import { type EditedFiles, ownHistory, type PassageRow, type SentPassage, type SentPassages } from "./passage-source.ts"
import { reasonsFor, type WhyFacts } from "./why-facts.ts"

// The queries that a laptop's `ask` and `why` send to a team's history. The hub searches and reads; the laptop's own model writes
// the answer. Both sides import this file.

/** Documents are not shared with a team. */
const CONVERSATIONS_ONLY = { among: "history" } as const
const MAX_FOUND = 100

const findInput = object({
  query: text("The question.", { minLength: 1 }),
  by: choice(["conversation", "message"]),
  from: optional(text()),
  to: optional(text()),
  limit: integer("", { minimum: 1, maximum: MAX_FOUND }),
  offset: integer("", { minimum: 0 }),
})
const readInput = object({ id: text("A ref.") })
const editedInput = object({ ids: listOf(text("A ref.")) })

const passagesQuery: TeamQueryKind<typeof findInput, SentPassages> = {
  name: "passages",
  input: findInput,
  run: async (dex, search) => {
    const { found, ...rest } = await ownHistory(dex, CONVERSATIONS_ONLY).find(search)
    return { found: found.map(({ row, ...one }) => ({ ...one, ...withId(row) })), ...rest }
  },
}

const passageQuery: TeamQueryKind<typeof readInput, SentPassage> = {
  name: "passage",
  input: readInput,
  run: async (dex, { id }) => {
    const { row, messages } = await ownHistory(dex, CONVERSATIONS_ONLY).read(id)
    return { ...withId(row), messages }
  },
}

const editedFilesQuery: TeamQueryKind<typeof editedInput, EditedFiles> = {
  name: "edited_files",
  input: editedInput,
  run: async (dex, { ids }) => {
    const refs = ids.slice(0, MAX_FOUND).flatMap((id) => parseCompleteRef(id) ?? [])
    const files = await ownHistory(dex, CONVERSATIONS_ONLY).editedBy(refs)
    return { edited: refs.map((ref, i) => ({ id: formatRef(ref), files: files[i]! })) }
  },
}

export type ReasonsRow = Pick<ConversationRow, "ref" | "title" | "started_at" | "ended_at">
export type SentReasons = { found?: { id: string; row: ReasonsRow; facts: WhyFacts } }

const reasonsInput = object({
  id: text("The ref of the conversation."),
  edits: listOf(object({ id: text(), number: integer() }), "The messages in which it wrote the lines."),
  committed: optional(integer("The message in which it made the commit.")),
})

const reasonsQuery: TeamQueryKind<typeof reasonsInput, SentReasons> = {
  name: "reasons",
  input: reasonsInput,
  run: async (dex, { id, ...written }) => {
    const ref = parseCompleteRef(id)
    const reasonsFound = ref && (await reasonsFor(await dex.store(), { ref, ...written }))
    if (!reasonsFound) return {}
    const { ref: own, title, started_at, ended_at } = reasonsFound.row
    return { found: { id: formatRef(own), row: { ref: own, title, started_at, ended_at }, facts: reasonsFound.facts } }
  },
}

export const queriesForAnswers = [
  passagesQuery,
  passageQuery,
  editedFilesQuery,
  reasonsQuery,
] as readonly TeamQueryKind[]

function withId({ ref, kind, title, ended_at }: PassageRow): { id: string; row: PassageRow } {
  return { id: formatRef(ref), row: { ref, kind, title, ended_at } }
}
