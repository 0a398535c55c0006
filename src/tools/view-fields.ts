import { integer, listOf, object, optional, text } from "../core/schema.ts"

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
