import { choice, integer, listOf, object, optional, text, withDefault } from "../../core/schema.ts"
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
import { LEAVABLE } from "./leave-out.ts"

export const scan = defineTool({
  name: "scan",
  summary: "Outline a conversation, one line per message",
  input: object({
    id: conversationField,
    tokens_per_msg: withDefault(
      integer("About how many tokens of each message to show.", { minimum: 5, maximum: 10_000 }),
      50,
    ),
    max_tokens: maxTokensField,
    show: showField,
    hide: hideField,
    session: sessionField,
    offset: withDefault(integer("Skip this many messages.", { minimum: 0 }), 0),
  }),
  output: object({
    ...headFields,
    message_count: integer("Of the whole conversation."),
    lines: listOf(text(), "number, tab, [role] time ~tokens when read | what it says; … where a text was cut."),
    tokens_per_msg: integer("As asked for, or as max_tokens allowed, rounded down."),
    hidden_parts: hiddenParts,
    left_out: optional(
      listOf(
        object({
          kind: choice(LEAVABLE, "Tools' results, thoughts and injected text, calls without words, what failed."),
          messages: integer(),
        }),
        "Messages left out among the lines, so that the words of the others can be read within max_tokens.",
      ),
    ),
    truncated,
    estimated_tokens: estimatedTokens,
  }),
  cli: { group: "Find", positional: "id", example: "dex scan 2 --max-tokens 4000" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.lines.length > 0,
  trace: { command: "scan", facts: (_, output) => readingFacts([{ ...output, messages: output.lines }]) },
})
