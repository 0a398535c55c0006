import { choice, decimal, flag, type Infer, integer, listOf, object, optional, text } from "../../core/schema.ts"
import { KINDS, STATUSES } from "../../core/suggestion.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { suggestionShape } from "../suggestions/suggestions.ts"

const resolution = choice(["resolved", "by_name"], "by_name: only the name is the same.")
const place = { file: text(), line: integer(), in: optional(text("The definition that contains it.")) }

const input = object({
  current_file: optional(text("The file you are working on.")),
  current_symbol: optional(text("The symbol at the cursor.")),
  cursor_position: optional(
    object({
      line: integer("The cursor's line, from 1.", { minimum: 1 }),
      column: optional(integer("The cursor's column, from 1.", { minimum: 1 })),
    }),
  ),
  recent_files: optional(listOf(text(), "Files you worked on before, oldest first.")),
  error: optional(text("What a failed command printed.")),
  all: optional(flag("With a symbol: also list every definition, caller and callee.")),
  session_id: optional(text("Session id. Default: the caller's.")),
  project_id: optional(text("Project folder. Default: the caller's.")),
})
export type SuggestInput = Infer<typeof input>

export const suggest = defineTool({
  name: "suggest",
  summary: "Show what is known about a file, a symbol or an error",
  input,
  output: object({
    id: text("Pass it to suggestion_feedback."),
    session_id: optional(text()),
    project_id: text(),
    status: choice(STATUSES, "Its status."),
    suggestions: listOf(
      object({
        kind: choice(KINDS, "What it is."),
        title: text(),
        summary: text(),
        reason: text("Why it is suggested."),
        relevance: optional(decimal("How likely it is to be used, from 0 to 1. Absent if never measured.")),
        ref: optional(text("The ref to pass to get.")),
        file: optional(text("Relative to the project.")),
        symbol: optional(text()),
        estimated_tokens: integer("Estimated size of this item."),
      }),
      "In a fixed order; at most five, and 500 tokens.",
    ),
    code: optional(
      object(
        {
          definitions: listOf(object({ ...place, kind: text() })),
          callers: listOf(object({ ...place, kind: choice(["call", "reference"]), resolution })),
          callees: listOf(
            object({ ...place, name: text(), resolution }),
            "Where they are defined, in the order of the calls.",
          ),
        },
        "With all.",
      ),
    ),
    waiting: optional(listOf(suggestionShape, "Suggestions from subscriptions that have not been shown yet.")),
    notes: listOf(text(), "Anything that is hidden or not known yet."),
  }),
  cli: {
    group: "Learn",
    nested: {
      file: "current_file",
      symbol: "current_symbol",
      line: "cursor_position.line",
      column: "cursor_position.column",
      recent: "recent_files",
      session: "session_id",
      project: "project_id",
    },
    example: "dex suggest --file src/auth/token.ts",
  },
  mcp: {
    name: "context_suggest",
    description: "Known fixes, decisions and related files for a file you are about to edit, or a command that failed.",
    omit: ["all"],
  },
  trace: {
    command: "suggest",
    // The trace contains an item's kind instead of its title, because a title may quote a message. Items without a ref are left
    // out, because forgetting a conversation could not delete them from the trace.
    facts: (_, { suggestions }) => ({
      inputs: { candidates: suggestions.length },
      ranking: suggestions
        .filter(({ ref }) => ref !== undefined)
        .map(({ kind, ref, relevance }, i) => ({
          rank: i + 1,
          ref: ref!,
          score_final: relevance ?? 0,
          terms: relevance === undefined ? [] : [{ name: "relevance", value: relevance }],
          summary: kind,
        })),
    }),
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) =>
    output.suggestions.length > 0 || (output.code?.definitions.length ?? 0) > 0 || (output.waiting?.length ?? 0) > 0,
})
