import { choice, flag, integer, list, object, optional, text, withDefault } from "../core/schema.ts"
import { defineTool } from "../core/tool.ts"
import type { Dex } from "./context.ts"
import { conversationFields, fromField, projectField, sourceField, toField } from "./fields.ts"

export const search = defineTool({
  name: "search",
  summary: "Find past conversations by what was said in them",
  input: object({
    query: text('Words, or "a phrase".', { minLength: 1 }),
    project: projectField,
    source: sourceField,
    from: fromField,
    to: toField,
    file: optional(text("Only conversations that touched a file whose path contains this.")),
    model: optional(text("Only conversations with a model whose name contains this.")),
    session: optional(text("all, current, or one conversation's ref.")),
    limit: withDefault(integer("How many conversations at the most.", { minimum: 1, maximum: 100 }), 10),
    offset: withDefault(integer("Skip this many.", { minimum: 0 }), 0),
  }),
  output: object({
    results: list(
      object({
        ...conversationFields,
        snippet: text("About 300 characters around the match."),
        message_index: integer("The best message; get it with expand."),
        more_matches: integer("Further matching messages of this conversation among the best."),
      }),
    ),
    total: integer("Messages that match."),
    total_is_at_least: optional(flag("The count stopped at 10,000.")),
    matched: choice(["all", "some"], "some: no message holds all the words."),
    mode: choice(["index", "scan"], "scan: there was no index, so the history itself was read."),
    notes: list(text(), "What is hidden, incomplete or degraded."),
  }),
  cli: {
    positional: "query",
    short: { l: "limit", s: "source", f: "file", m: "model", p: "project" },
    example: 'dex search "refresh token race" --from 30d',
  },
  mcp: {
    name: "dex_search",
    description:
      "Search everything that was said and done in past conversations with any coding agent on this machine. Use it when something may have been solved, decided or tried before.",
  },
  run: async (dex: Dex, input) => (await import("./search.run.ts")).run(dex, input),
  found: (output) => output.results.length > 0,
})
