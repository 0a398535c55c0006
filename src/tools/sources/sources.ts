import { choice, flag, integer, listOf, mapOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { unknownTablesField } from "../fields.ts"

export const sources = defineTool({
  name: "sources",
  summary: "Show where agents were found, and what was not read",
  input: object({}),
  output: object({
    sources: listOf(
      object({
        source: text(),
        name: text("The agent's common name."),
        basis: optional(
          choice(
            ["recorded", "sample", "description"],
            "How dex's reader was tested: with sessions recorded from the program itself, with other people's samples, or only against a description of the format.",
          ),
        ),
        is_there: flag("A folder in which the agent keeps its sessions exists."),
        looked_in: listOf(text()),
        found: integer("Transcripts on disk now."),
        kept: integer("Conversations in the history, of every kind."),
        kinds: mapOf(integer(), "Conversations in the history, by who ran them."),
        messages: integer(),
        archived: integer("Conversations whose files the agent has deleted."),
        latest: optional(text()),
        skipped: mapOf(integer(), "Records that could not be read, by reason."),
        unknown: mapOf(integer(), "Records of unknown types, by type. dex stores them."),
        redactions: mapOf(integer(), "Secrets removed, by rule."),
        unreadable: listOf(object({ path: text(), reason: text() })),
        unknown_tables: unknownTablesField,
      }),
    ),
    unread: listOf(
      object({
        name: text("The program's common name."),
        path: text(),
        files: integer("Number of its files in that folder, up to 10,000."),
        why: optional(text("Why dex cannot read the files.")),
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
