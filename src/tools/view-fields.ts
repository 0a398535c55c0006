import { choice, flag, integer, listOf, object, optional, text } from "../core/schema.ts"

// Fields that the views of a conversation share: show, scan, read and timeline.

export const showField = optional(
  listOf(
    text(),
    "Only these parts, in full: text, thinking, tool_call, tool_result, image, summary, injected, tool:Bash, tool:Bash:result.",
  ),
)
export const hideField = optional(listOf(text(), "Hide these parts, named as for show. Overrides show."))
export const maxTokensField = optional(integer("Token budget.", { minimum: 1 }))
export const conversationField = optional(
  text("A ref, a unique prefix of an id, a row number of the last listing, or current."),
)
export const sessionField = optional(text("current or a ref. Replaces the id; if both are given, they must match."))

export const headFields = {
  id: text("The ref."),
  title: text(),
  project: text(),
  source: text(),
  date: text("When the conversation ended."),
  kind: text("person, subagent, automation, dex or note."),
}
export const hiddenPartsField = optional(integer("Parts left out by show and hide."))
export const estimatedTokensField = integer("Estimated size of this answer.")
export const truncatedField = optional(
  object({
    messages_left_out: integer(),
    next_message_index: integer(),
    continue_with: text("The call that continues."),
  }),
)

// Fields of briefs: handover and summaries.

export const messageRefField = text("The message that it comes from.")
export const cutField = optional(flag("The text is longer; read_more has the call that shows all of it."))
export const briefQuote = object({
  ref: messageRefField,
  kind: text(),
  question: optional(text()),
  text: text("The quoted text."),
  cut: cutField,
})
export const summaryFields = {
  goal: listOf(briefQuote, "The task, and the requests that changed it, oldest first."),
  state: listOf(
    briefQuote,
    "The state of the work: last_words, summary (of a compaction) or done (in the agent's own list).",
  ),
  decisions: listOf(
    briefQuote,
    "By kind: plan (approved), answer, refusal (of a tool) or words (phrased as a decision).",
  ),
  files: listOf(
    object({
      ref: messageRefField,
      kind: choice(["edited", "read"]),
      path: text(),
      added: integer(),
      removed: integer(),
    }),
    "Edited files, newest first; files that were read, if none was edited.",
  ),
}
