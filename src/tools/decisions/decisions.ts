import { flag, type Infer, integer, listOf, object, optional, text, withDefault } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import { changedFields } from "../changed-later.ts"
import type { Dex } from "../context.ts"
import { projectField } from "../fields.ts"
import { maxTokensField } from "../view-fields.ts"

export const decisionFields = {
  quote: text("As it was written."),
  kind: text("said, answer, plan, adr, breaking, revert or note."),
  by: text(
    "Whose words these are: person, agent, document or commit. An approved plan and a chosen answer are the agent's.",
  ),
  date: text(),
  ref: text("The message that states the decision, or git:<hash>."),
  project: text(),
  files: listOf(text(), "Files named with the decision, or edited after it and before the person's next message."),
  files_left_out: optional(integer()),
  superseded_by: optional(
    object({ quote: text(), date: text(), ref: text() }, "A later decision on the same subject that reverses it."),
  ),
  ...changedFields,
}
const decisionShape = object(decisionFields)
export type ListedDecision = Infer<typeof decisionShape>

const input = object({
  words: withDefault(listOf(text(), "Only decisions that contain all of these words."), []),
  file: optional(text("Only decisions about this file: its path, or the end of it.")),
  symbol: optional(text("Only decisions that name this function, type or setting.")),
  project: projectField,
  all: withDefault(flag("Include all projects, not only this one."), false),
  limit: withDefault(integer("Show at most this many.", { minimum: 1, maximum: 200 }), 20),
  offset: withDefault(integer("Skip this many of the newest decisions.", { minimum: 0 }), 0),
  max_tokens: maxTokensField,
})
export type DecisionsInput = Infer<typeof input>

export const decisions = defineTool({
  name: "decisions",
  summary: "List what was decided in this project, by whom and why",
  input,
  output: object({
    decisions: listOf(decisionShape, "Newest first."),
    total: integer(),
    estimated_tokens: integer("Estimated size of this answer."),
    notes: listOf(text(), "Anything hidden, incomplete or limited."),
  }),
  cli: {
    group: "Learn",
    positional: "words",
    short: { l: "limit", p: "project" },
    example: "dex decisions --file src/auth.ts",
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.decisions.length > 0,
})
