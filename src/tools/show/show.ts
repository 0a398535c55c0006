import { FORMATS } from "../../core/format.ts"
import {
  choice,
  flag,
  type Infer,
  integer,
  listOf,
  mapOf,
  object,
  optional,
  text,
  withDefault,
} from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { TraceFacts } from "../../core/trace.ts"
import type { Dex } from "../context.ts"
import { runHereOrOnHub, TEAM_FLAG, whereField } from "../team.ts"
import {
  estimatedTokensField,
  hiddenPartsField,
  hideField,
  maxTokensField,
  sessionField,
  showField,
  summaryFields,
  truncatedField,
} from "../view-fields.ts"

const showInput = object({
  ids: listOf(text(), "Refs, unique prefixes of ids, row numbers, or current. claude_code:1f3c#12: around message 12."),
  format: withDefault(
    choice(
      FORMATS,
      "full: everything; stripped: without tool outputs and injected text; user_only: a person's words; outline: one line per message.",
    ),
    "stripped",
  ),
  expand: optional(
    object({
      message_index: optional(integer("Show the messages around this one.", { minimum: 1 })),
      before: withDefault(integer("Messages before it.", { minimum: 0 }), 2),
      after: withDefault(integer("Messages after it.", { minimum: 0 }), 2),
    }),
  ),
  summary: optional(flag("Show only the goal, the state, the decisions and the files.")),
  max_tokens: maxTokensField,
  show: showField,
  hide: hideField,
  session: sessionField,
  where: whereField,
})
export type ShowInput = Infer<typeof showInput>

export const show = defineTool({
  name: "show",
  summary: "Read conversations, completely or around one message",
  input: showInput,
  output: object({
    conversations: listOf(
      object({
        id: text(),
        title: text(),
        project: text(),
        source: text(),
        date: text(),
        kind: text(),
        parent: optional(text("The conversation that started this subagent.")),
        fork_of: optional(text()),
        archived: optional(flag("The agent deleted its file; this is the only copy.")),
        imported_from: optional(text("The person from whose history it was imported.")),
        messages: listOf(
          object({
            index: integer(),
            role: text(),
            origin: text("Whose words: person, agent, local_tool, web, injected."),
            date: optional(text()),
            content: text(),
            tokens: integer(),
            state: optional(
              choice(
                ["abandoned", "superseded", "copied"],
                "abandoned: on a branch that the person left; superseded: no longer in the agent's file; copied: from the conversation this is a fork of.",
              ),
            ),
            cut: optional(
              object(
                { characters_left_out: integer(), continue_with: text() },
                "Set if this message alone exceeds the budget.",
              ),
            ),
          }),
        ),
        summary: optional(
          object({
            words: optional(
              object(
                { text: text(), sources: listOf(object({ n: integer(), ref: text() })) },
                "Written by a model, if one is set up.",
              ),
            ),
            ...summaryFields,
            left_out: mapOf(integer(), "Items of each kind that did not fit."),
            note: optional(text()),
          }),
        ),
        files: listOf(text(), "Files that the conversation edited or read, edited ones first; at most 50."),
        total_tokens: integer("Estimated size of the messages shown."),
        has_more_before: optional(flag()),
        has_more_after: optional(flag()),
        hidden_parts: hiddenPartsField,
        truncated: truncatedField,
      }),
    ),
    left_out: optional(object({ conversations: integer(), continue_with: text() }, "Conversations that did not fit.")),
    estimated_tokens: estimatedTokensField,
  }),
  cli: {
    group: "Find",
    choosing: TEAM_FLAG,
    common: true,
    positional: "ids",
    nested: { expand: "expand.message_index", before: "expand.before", after: "expand.after" },
    aliases: ["open", "get"],
    paged: true,
    example: "dex show 2 --format outline",
  },
  mcp: {
    name: "dex_get",
    description:
      "Read past conversations by id. Start with outline, or expand around what a search found; full only if exact output matters.",
    omit: ["hide", "session", "where", "summary"],
  },
  run: runHereOrOnHub("show", async (dex: Dex, input) => (await import("./run-show.ts")).run(dex, input)),
  found: (output) => output.conversations.length > 0,
  trace: { command: "get", facts: (_, output) => readingFacts(output.conversations) },
})

type ReadConversation = { id: string; title: string; messages: unknown[]; truncated?: { messages_left_out: number } }

/** The trace facts of a tool that reads named conversations: which ones it read, how much of them, and what was cut. */
export function readingFacts(conversations: ReadConversation[]): TraceFacts {
  const leftOut = conversations.reduce((sum, conversation) => sum + (conversation.truncated?.messages_left_out ?? 0), 0)
  return {
    inputs: {
      conversations: conversations.length,
      messages: conversations.reduce((sum, conversation) => sum + conversation.messages.length, 0),
    },
    ranking: conversations.map(({ id, title }, i) => ({
      rank: i + 1,
      ref: id,
      score_final: 0,
      terms: [],
      summary: title,
    })),
    truncation: leftOut > 0 ? { messages_left_out: leftOut } : undefined,
  }
}
