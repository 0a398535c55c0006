import { flag, type Infer, integer, listOf, mapOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

const input = object({ summary: optional(flag("Only the totals.")) })
export type StatsInput = Infer<typeof input>

export const stats = defineTool({
  name: "stats",
  summary: "Show how much is stored, by agent and project",
  input,
  output: object({
    total_conversations: integer("Conversations of a person with an agent; kinds counts the others."),
    total_messages: integer(),
    date_range: object({ earliest: optional(text()), latest: optional(text()) }),
    sources: mapOf(integer(), "Number of conversations by agent, including subagents and automated runs."),
    kinds: mapOf(integer(), "Number of conversations by who ran them: person, subagent, automation, dex, note."),
    projects: listOf(text(), "The 20 most active projects, most active first."),
    avg_tokens_per_conversation: integer("Estimated for the stripped format; subagents count as well."),
    text_bytes: integer("UTF-8 bytes of the stored, redacted text."),
    disk_bytes: optional(integer("Bytes of history.db and of the search index. Only for people.")),
    session_id: optional(text("The caller's conversation, if the agent names it.")),
    sync: optional(
      object({ done: integer(), total: integer() }, "How many of the transcripts that were found have been read."),
    ),
  }),
  cli: {
    group: "Keep",
    example: "dex stats",
    formOf: { command: "doctor", word: "stats", now: "dex doctor stats", example: "dex doctor stats" },
  },
  mcp: {
    name: "dex_stats",
    description: "How many past conversations are stored, from which agents and projects, since when.",
    omit: ["summary"],
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: ({ kinds }) => Object.keys(kinds).length > 0,
})
