import { choice, decimal, flag, integer, listOf, object, optional, text, withDefault } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { readingFacts } from "../reading-trace.ts"
import {
  conversationField,
  estimatedTokens,
  headFields,
  hiddenParts,
  hideField,
  maxTokensField,
  sessionField,
  showField,
  truncated,
} from "../view-fields.ts"

export const read = defineTool({
  name: "read",
  summary: "Read chosen messages in full",
  input: object({
    id: conversationField,
    messages: optional(text("Which: 5, 5-10 or 1,5,10-15. A ref with # names one by itself.")),
    max_tokens: maxTokensField,
    show: showField,
    hide: hideField,
    session: sessionField,
    from_char: withDefault(integer("Start the first message after this many characters.", { minimum: 0 }), 0),
  }),
  output: object({
    ...headFields,
    messages: listOf(
      object({
        index: integer(),
        role: text(),
        origin: text("Whose words: person, agent, local_tool, web, injected."),
        date: optional(text()),
        model: optional(text()),
        state: optional(choice(["abandoned", "superseded", "copied"])),
        tokens: integer("Of the whole message; an estimate."),
        parts: listOf(
          object({
            type: choice(["text", "thinking", "tool_call", "tool_result", "image", "summary"]),
            text: text(),
            origin: text(),
            tool: optional(text()),
            call_id: optional(text()),
            is_error: optional(flag()),
            patch: optional(text("The change that a tool result reports, as a unified diff.")),
            mime: optional(text()),
            bytes: optional(integer()),
          }),
        ),
        effects: optional(
          listOf(
            object({
              type: choice(["file", "command", "commit", "pull_request"]),
              path: optional(text()),
              action: optional(text()),
              added: optional(integer()),
              removed: optional(integer()),
              command: optional(text()),
              exit_status: optional(integer()),
              failed: optional(flag()),
              error: optional(text()),
              hash: optional(text()),
              subject: optional(text()),
              branch: optional(text()),
              url: optional(text()),
              call_id: optional(text()),
            }),
            "What it did, taken from its tool calls.",
          ),
        ),
        usage: optional(
          object({
            input: integer(),
            output: integer(),
            cache_read: integer(),
            cache_write: integer(),
            reasoning: optional(integer()),
            cost: optional(decimal()),
          }),
        ),
        cut: optional(
          object(
            { from: integer(), to: integer(), of: integer() },
            "Only these characters of the message are here; effects and usage are not.",
          ),
        ),
      }),
    ),
    not_found: optional(text("Numbers that no message has.")),
    hidden_parts: hiddenParts,
    truncated,
    estimated_tokens: estimatedTokens,
  }),
  cli: { group: "Find", positional: "id", rest: "messages", example: "dex read 2 1,5,10-15" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.messages.length > 0,
  trace: { command: "read", facts: (_, output) => readingFacts([output]) },
})
