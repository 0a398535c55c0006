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
import type { Dex } from "../context.ts"
import { collectionShape } from "../docs/collections.ts"
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
import { estimatedTokensField, maxTokensField } from "../view-fields.ts"

const input = object({
  project: projectField,
  source: sourceField,
  from: fromField,
  to: toField,
  file: optional(text("Only conversations that touched this file.")),
  starred: optional(flag("Only conversations with a star.")),
  tag: tagField,
  archived: archivedField,
  all: optional(flag("Include subagents and automated runs.")),
  in: withDefault(choice(["history", "docs"], "Conversations or documents."), "history"),
  collections: optional(listOf(text(), "List their documents.")),
  session: optional(text("current, or a ref: only that conversation and its subagents.")),
  limit: withDefault(integer("Maximum number.", { minimum: 1, maximum: 1000 }), 20),
  offset: withDefault(integer("Skip this many.", { minimum: 0 }), 0),
  max_tokens: maxTokensField,
  where: whereField,
})
export type ListInput = Infer<typeof input>

export const list = defineTool({
  name: "list",
  summary: "List conversations, newest first",
  input,
  renamed: { collection: "collections" },
  output: object({
    conversations: listOf(
      object({
        ...conversationFields,
        lines_added: integer("Lines that its edits added, if the agent recorded them."),
        lines_removed: integer(),
        files: integer("Files it edited."),
        commits: integer("Commits it made."),
      }),
    ),
    collections: optional(listOf(collectionShape, "With --in docs, if no collection is named.")),
    total: integer(),
    kinds: optional(mapOf(integer(), "With all: the total, by who ran the conversations.")),
    left_out: mapOf(integer(), "Matching conversations of other kinds, which --all shows."),
    next_offset: optional(integer("Pass it as offset to continue.")),
    continue_with: optional(text("The call that continues, if max_tokens cut the list.")),
    note: optional(text()),
    estimated_tokens: estimatedTokensField,
  }),
  cli: {
    group: "Find",
    choosing: TEAM_FLAG,
    common: true,
    short: { l: "limit", s: "source", p: "project", f: "file", a: "all" },
    aliases: ["ls", "index"],
    example: "dex list --project api --from 7d",
  },
  mcp: {
    name: "dex_list",
    description:
      "Browse past conversations by project, agent and date, newest first. Use it when you know when or where, not what.",
    omit: ["session", "where", "archived", "starred", "tag"],
  },
  run: runHereOrOnHub("list", async (dex: Dex, input) => (await import("./run.ts")).run(dex, input)),
  found: (output) => output.conversations.length > 0 || (output.collections?.length ?? 0) > 0,
})
