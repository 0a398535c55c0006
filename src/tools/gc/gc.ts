import { integer, listOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

export const gc = defineTool({
  name: "gc",
  summary: "Free disk space that the search index no longer uses",
  input: object({}),
  output: object({
    dropped: listOf(object({ embedder: text(), vectors: integer() }), "Vectors of models that are no longer in use."),
    compacted: integer("Number of deleted vectors whose space was freed."),
    bytes_before: integer("Size of the index on disk, including files left by other versions of dex."),
    bytes_after: integer(),
    duration_ms: integer(),
    pinned: optional(
      listOf(text(), "Databases whose old pages another program still reads; they still contain what was deleted."),
    ),
    note: optional(text("Space that was not freed, and why.")),
  }),
  cli: {
    group: "Keep",
    example: "dex gc",
    formOf: { command: "doctor", word: "gc", now: "dex doctor gc", example: "dex doctor gc" },
  },
  run: async (dex: Dex) => (await import("./run.ts")).run(dex),
  trace: { command: "gc" },
})
