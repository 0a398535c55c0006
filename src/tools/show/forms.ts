import {
  choice,
  decimal,
  flag,
  type Infer,
  integer,
  listOf,
  object,
  optional,
  text,
  withDefault,
} from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { runHereOrOnHub, TEAM_FLAG, whereField } from "../team.ts"
import {
  conversationField,
  estimatedTokensField,
  headFields,
  hiddenPartsField,
  hideField,
  maxTokensField,
  sessionField,
  showField,
  truncatedField,
} from "../view-fields.ts"
import { readingFacts } from "./show.ts"

// The forms of `dex show`. Each is a tool of its own, with the name that MCP, hubs and traces use.

/** The kinds of messages that a scan may omit, the least informative first. It never omits words of people and agents. */
export const OMITTABLE_KINDS = ["results", "asides", "calls", "failures"] as const
export type OmittableKind = (typeof OMITTABLE_KINDS)[number]

const scanInput = object({
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
})
export type ScanInput = Infer<typeof scanInput>

export const scan = defineTool({
  name: "scan",
  summary: "Outline a conversation, one line per message",
  input: scanInput,
  output: object({
    ...headFields,
    message_count: integer("Number of messages in the complete conversation."),
    lines: listOf(text(), "number, tab, [role] time ~tokens to read it | its text; … marks a cut."),
    tokens_per_msg: integer("As requested, or as max_tokens allowed, rounded down."),
    hidden_parts: hiddenPartsField,
    left_out: optional(
      listOf(
        object({
          kind: choice(OMITTABLE_KINDS, "Tool results; thoughts and injected text; calls without words; failures."),
          messages: integer(),
        }),
        "Messages left out between the lines, so that the others fit into max_tokens.",
      ),
    ),
    truncated: truncatedField,
    estimated_tokens: estimatedTokensField,
  }),
  cli: {
    group: "Find",
    positional: "id",
    example: "dex scan 2 --max-tokens 4000",
    formOf: {
      command: "show",
      option: "lines",
      paged: true,
      now: "dex show REF --lines",
      example: "dex show 2 --lines --max-tokens 4000",
    },
  },
  run: async (dex: Dex, input) => (await import("./run-scan.ts")).run(dex, input),
  found: (output) => output.lines.length > 0,
  trace: { command: "scan", facts: (_, output) => readingFacts([{ ...output, messages: output.lines }]) },
})

const readInput = object({
  id: conversationField,
  messages: optional(text("Message numbers: 5, 5-10 or 1,5,10-15. Not needed if the ref has one after #.")),
  max_tokens: maxTokensField,
  show: showField,
  hide: hideField,
  session: sessionField,
  from_char: withDefault(integer("Start the first message after this many characters.", { minimum: 0 }), 0),
})
export type ReadInput = Infer<typeof readInput>

export const read = defineTool({
  name: "read",
  summary: "Read chosen messages in full",
  input: readInput,
  output: object({
    ...headFields,
    messages: listOf(
      object({
        index: integer(),
        role: text(),
        origin: text("Whose words these are: person, agent, local_tool, web, injected."),
        date: optional(text()),
        model: optional(text()),
        state: optional(choice(["abandoned", "superseded", "copied"])),
        tokens: integer("Estimated size of the complete message."),
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
            "What the message did, according to its tool calls.",
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
            "Only these characters of the message are included, without effects and usage.",
          ),
        ),
      }),
    ),
    not_found: optional(text("Numbers that no message has.")),
    hidden_parts: hiddenPartsField,
    truncated: truncatedField,
    estimated_tokens: estimatedTokensField,
  }),
  cli: {
    group: "Find",
    positional: "id",
    rest: "messages",
    example: "dex read 2 1,5,10-15",
    formOf: {
      command: "show",
      option: "messages",
      paged: true,
      now: "dex show REF --messages 5-10",
      example: "dex show 2 --messages 1,5,10-15",
    },
  },
  run: async (dex: Dex, input) => (await import("./run-read.ts")).run(dex, input),
  found: (output) => output.messages.length > 0,
  trace: { command: "read", facts: (_, output) => readingFacts([output]) },
})

const timelineInput = object({
  id: optional(text("The message: claude_code:1f3c#12, or a row number. Without #12, the last message.")),
  before: withDefault(integer("Messages before it.", { minimum: 0, maximum: 1000 }), 10),
  after: withDefault(integer("Messages after it.", { minimum: 0, maximum: 1000 }), 10),
  session: optional(text("all: its project's conversations; current or a ref: only that one. Default: its own.")),
  max_tokens: maxTokensField,
  show: showField,
  hide: hideField,
  where: whereField,
})
export type TimelineInput = Infer<typeof timelineInput>

export const timeline = defineTool({
  name: "timeline",
  summary: "Show what was said just before and after a message",
  input: timelineInput,
  output: object({
    ...headFields,
    message_index: integer("The message in the middle; its line begins with >."),
    lines: listOf(text(), "In time order: number or ref, tab, [role] time ~tokens to read it | its text."),
    others: optional(
      listOf(object({ id: text(), title: text() }), "The other conversations that the lines come from."),
    ),
    has_more_before: flag(),
    has_more_after: flag(),
    hidden_parts: hiddenPartsField,
    truncated: optional(
      object({
        messages_left_out: integer(),
        continue_before: optional(text("The call that continues before the first line.")),
        continue_with: optional(text("The call that continues after the last line.")),
      }),
    ),
    estimated_tokens: estimatedTokensField,
  }),
  cli: {
    group: "Find",
    choosing: TEAM_FLAG,
    positional: "id",
    example: "dex timeline 2 --before 5 --after 20",
    formOf: {
      command: "show",
      option: "timeline",
      paged: true,
      now: "dex show REF --timeline",
      example: "dex show 2 --timeline --before 5 --after 20",
    },
  },
  mcp: {
    name: "dex_timeline",
    description: "What was said and done around one message, one line each. Use it after a search, before dex_get.",
    omit: ["show", "hide", "where"],
  },
  run: runHereOrOnHub("timeline", async (dex: Dex, input) => (await import("./run-timeline.ts")).run(dex, input)),
  found: (output) => output.lines.length > 0,
  trace: { command: "timeline", facts: (_, output) => readingFacts([{ ...output, messages: output.lines }]) },
})
