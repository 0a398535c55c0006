import { ROLES } from "../../core/conversation.ts"
import {
  choice,
  decimal,
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
import { changedFields } from "../changed-later.ts"
import type { Dex } from "../context.ts"
import {
  archivedField,
  conversationFields,
  fromField,
  projectField,
  sourceField,
  tagField,
  toField,
} from "../fields.ts"
import { runHereOrOnHub, TEAM_FLAG, whereField } from "../team.ts"
import { maxTokensField } from "../view-fields.ts"

const input = object({
  query: optional(text('Words, "a phrase", -without; filters such as file:auth.ts narrow it.', { minLength: 1 })),
  project: projectField,
  source: sourceField,
  from: fromField,
  to: toField,
  file: optional(text("Only conversations that touched this file.")),
  archived: archivedField,
  tool: optional(text("Only messages with this tool: Bash.")),
  role: optional(choice(ROLES, "Only messages of this role.")),
  model: optional(text("Only models whose name contains this.")),
  tag: tagField,
  session: optional(text("all, current, or a ref.")),
  in: withDefault(choice(["history", "docs", "all"], "Conversations, documents, or both."), "all"),
  collections: optional(listOf(text(), "Only in these collections.")),
  no_global: optional(flag("Leave out global documents.")),
  by: withDefault(choice(["conversation", "message"], "Group by conversation or message."), "conversation"),
  pack: optional(
    integer("Return the best passages as one text of at most this many tokens.", { minimum: 200, maximum: 20_000 }),
  ),
  regex: optional(text("A regular expression to search for in the text itself.", { minLength: 1 })),
  fixed: optional(text("A text to search for exactly as it is written.", { minLength: 1 })),
  whole_words: optional(flag("With --regex or --fixed: only matches that are whole words.")),
  context: optional(integer("With --regex or --fixed: lines to show around a match.", { minimum: 0, maximum: 50 })),
  count: optional(flag("With --regex or --fixed: only count the matches.")),
  explain: withDefault(flag("Show how each score is made up."), false),
  limit: withDefault(integer("Maximum number.", { minimum: 1, maximum: 100 }), 10),
  offset: withDefault(integer("Skip this many.", { minimum: 0 }), 0),
  max_tokens: maxTokensField,
  where: whereField,
})
export type SearchToolInput = Infer<typeof input>

export const search = defineTool({
  name: "search",
  summary: "Find past conversations by what was said in them",
  input,
  output: object({
    results: listOf(
      object({
        ...conversationFields,
        parent: optional(
          text("The conversation whose subagent matched, if one did. Title and date are those of the conversation."),
        ),
        snippet: text("Up to 300 characters around the match, fewer if there are many rows."),
        message_index: integer("The best message; get it with expand."),
        role: optional(text("Who wrote that message.")),
        origin: optional(text("Whose words these are: person, agent, local_tool, web, injected.")),
        lines: optional(listOf(text(), "With context: the line of the match, and those around it.")),
        ...changedFields,
        more_matches: integer("More messages of this conversation and its subagents among the best matches."),
        rank_source: optional(
          choice(["lexical", "vector", "both"], "How the row was found, in hybrid mode or with explain."),
        ),
        score_lex: optional(decimal("Score by words.")),
        score_vec: optional(decimal("Cosine similarity of the nearest message.")),
        score_final: decimal("The score that decides the rank."),
        score_parts: optional(
          listOf(object({ name: text(), value: decimal() }), "With explain: these add up to score_final."),
        ),
      }),
    ),
    pack: optional(
      object(
        {
          text: text("The passages, each below its ref."),
          passages: listOf(object({ ref: text(), title: text(), date: text(), tokens: integer() })),
          estimated_tokens: integer("Estimated size of the text."),
        },
        "With pack, instead of results.",
      ),
    ),
    total: integer("Matching messages, or matching conversations if the query has no words."),
    total_is_at_least: optional(flag("The count stopped at 10,000.")),
    conversations: optional(integer("Matching conversations, if the query is a single word or phrase.")),
    kinds: optional(mapOf(integer(), "Matching conversations by kind, including subagents, notes and documents.")),
    matched: choice(["all", "some"], "some: no result contains all the words."),
    replaced: optional(
      listOf(
        object({ typed: text(), by: listOf(text()) }),
        "Words that no message contains, and what was searched for instead.",
      ),
    ),
    mode: choice(
      ["lexical", "hybrid", "scan", "list", "pattern"],
      "How the search ran: by words; by words and meaning; without an index, by reading the history; without words, by filters; by a pattern.",
    ),
    reranked: optional(flag("A model reordered the best results.")),
    degraded: optional(listOf(text(), "Why the search used less than what is configured.")),
    notes: listOf(text(), "Anything hidden, incomplete or degraded."),
  }),
  cli: {
    group: "Find",
    choosing: TEAM_FLAG,
    common: true,
    positional: "query",
    short: {
      l: "limit",
      s: "source",
      f: "file",
      m: "model",
      p: "project",
      c: "collections",
      e: "regex",
      F: "fixed",
      w: "whole_words",
      C: "context",
    },
    aliases: ["find"],
    example: 'dex search "refresh token race" --from 30d',
  },
  mcp: {
    name: "dex_search",
    description:
      "Search what was said and done in past conversations with any coding agent. Use it when something may have been solved, decided or tried before.",
    omit: ["explain", "no_global", "model", "archived", "tag", "regex", "fixed", "whole_words", "context", "count"],
  },
  run: runHereOrOnHub("search", async (dex: Dex, input) => (await import("./run.ts")).run(dex, input)),
  found: (output) =>
    output.results.length > 0 ||
    (output.mode === "pattern" && output.total > 0) ||
    (output.pack?.passages.length ?? 0) > 0,
  trace: { command: "search" },
})
