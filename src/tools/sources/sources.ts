import { choice, flag, integer, listOf, mapOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

export const sources = defineTool({
  name: "sources",
  summary: "Show where agents were found, and what was not read",
  input: object({}),
  output: object({
    sources: listOf(
      object({
        source: text(),
        name: text("The agent's usual name."),
        basis: optional(
          choice(
            ["recorded", "sample", "description"],
            "What dex's reader was tested with: sessions of the program itself, other people's samples, or only a description.",
          ),
        ),
        is_there: flag("One of the places where it keeps sessions exists."),
        looked_in: listOf(text()),
        found: integer("Transcripts on disk now."),
        kept: integer("Conversations in the history, of every kind."),
        kinds: mapOf(integer(), "Those, by who ran them."),
        messages: integer(),
        archived: integer("Kept although the agent deleted its file."),
        latest: optional(text()),
        skipped: mapOf(integer(), "Records that could not be read, by reason."),
        unknown: mapOf(integer(), "Record types that dex does not know, by type. They are kept."),
        redactions: mapOf(integer(), "Secrets removed, by rule."),
        unreadable: listOf(object({ path: text(), reason: text() })),
        unknown_tables: optional(
          listOf(
            object({ path: text(), tables: mapOf(integer(), "Rows, by table; 10,000 if there are more.") }),
            "Databases with tables that dex does not know, and so does not read.",
          ),
        ),
      }),
    ),
    unread: listOf(
      object({
        name: text("The program's usual name."),
        path: text(),
        files: integer("How many files it has there; 10,000 if there are more."),
        why: optional(text("Why only the program itself can read it.")),
      }),
    ),
  }),
  cli: {
    group: "Keep",
    example: "dex sources",
    formOf: { command: "doctor", word: "sources", now: "dex doctor sources", example: "dex doctor sources" },
  },
  run: async (dex: Dex) => (await import("./run.ts")).run(dex),
})
