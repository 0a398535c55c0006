import { flag, integer, list, map, object, optional, text } from "../core/schema.ts"
import { defineTool } from "../core/tool.ts"
import type { Dex } from "./context.ts"

export const stats = defineTool({
  name: "stats",
  summary: "How much is kept, from which agents and projects",
  input: object({ summary: optional(flag("Only the totals.")) }),
  output: object({
    total_conversations: integer(),
    total_messages: integer(),
    date_range: object({ earliest: optional(text()), latest: optional(text()) }),
    sources: map(integer(), "Conversations by agent."),
    kinds: map(integer(), "Conversations by who ran them."),
    projects: list(text(), "The 20 most active, most active first."),
    avg_tokens_per_conversation: integer("In the stripped format; an estimate."),
    text_bytes: integer("UTF-8 bytes of the redacted text that is kept."),
    disk_bytes: integer("Bytes of history.db and index.db."),
    session_id: optional(text("The conversation this was asked from, where the agent tells.")),
    sync: optional(
      object({ done: integer(), total: integer() }, "Conversations read of those found, while not all are."),
    ),
  }),
  cli: { example: "dex stats" },
  mcp: {
    name: "dex_stats",
    description:
      "What past conversations are kept: how many, from which coding agents and projects, since when. Use it first to see what there is.",
  },
  run: async (dex: Dex, input) => (await import("./stats.run.ts")).run(dex, input),
  found: (output) => output.total_conversations > 0,
})
