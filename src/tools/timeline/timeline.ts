import { flag, integer, listOf, object, optional, text, withDefault } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { readingFacts } from "../reading-trace.ts"
import { alsoOnTeam, TEAM_FLAG, whereField } from "../team.ts"
import { estimatedTokens, headFields, hiddenParts, hideField, maxTokensField, showField } from "../view-fields.ts"

export const timeline = defineTool({
  name: "timeline",
  summary: "Show what was said just before and after a message",
  input: object({
    id: optional(
      text("The message: claude_code:1f3c#12, or a row number of the last search. Without #, the last one."),
    ),
    before: withDefault(integer("Messages before it.", { minimum: 0, maximum: 1000 }), 10),
    after: withDefault(integer("Messages after it.", { minimum: 0, maximum: 1000 }), 10),
    session: optional(
      text("all: every conversation of its project then; current or a ref: that one. Default: its own."),
    ),
    max_tokens: maxTokensField,
    show: showField,
    hide: hideField,
    where: whereField,
  }),
  output: object({
    ...headFields,
    message_index: integer("The message in the middle; its line begins with >."),
    lines: listOf(text(), "In time order: number or ref, tab, [role] time ~tokens when read | what it says."),
    others: optional(listOf(object({ id: text(), title: text() }), "The other conversations that lines are from.")),
    has_more_before: flag(),
    has_more_after: flag(),
    hidden_parts: hiddenParts,
    truncated: optional(
      object({
        messages_left_out: integer(),
        continue_before: optional(text("The call for what is missing before the first line.")),
        continue_with: optional(text("The call for what is missing after the last line.")),
      }),
    ),
    estimated_tokens: estimatedTokens,
  }),
  cli: { group: "Find", choosing: TEAM_FLAG, positional: "id", example: "dex timeline 2 --before 5 --after 20" },
  mcp: {
    name: "dex_timeline",
    description: "What was said and done around one message, one line each. Use it after a search, before dex_get.",
    omit: ["show", "hide", "where"],
  },
  run: alsoOnTeam("timeline", async (dex: Dex, input) => (await import("./run.ts")).run(dex, input)),
  found: (output) => output.lines.length > 0,
  trace: { command: "timeline", facts: (_, output) => readingFacts([{ ...output, messages: output.lines }]) },
})
