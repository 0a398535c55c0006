import { integer, list, map, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

export const sources = defineTool({
  name: "sources",
  summary: "Which agents were found where, and what could not be read",
  input: object({}),
  output: object({
    sources: list(
      object({
        source: text(),
        looked_in: list(text()),
        found: integer("Conversations on disk now."),
        kept: integer("Conversations in the history."),
        messages: integer(),
        archived: integer("Kept although the agent's own file is gone."),
        latest: optional(text()),
        skipped: map(integer(), "Records that could not be read, by reason."),
        unknown: map(integer(), "Record types that dex does not know, by type. They are kept."),
        redactions: map(integer(), "Secrets taken out, by rule."),
        unreadable: list(object({ path: text(), reason: text() })),
      }),
    ),
  }),
  cli: { example: "dex sources" },
  run: async (dex: Dex) => (await import("./run.ts")).run(dex),
})
