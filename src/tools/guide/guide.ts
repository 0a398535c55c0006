import { integer, listOf, object, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { estimatedTokensField } from "../view-fields.ts"

export const guide = defineTool({
  name: "guide",
  summary: "Show how agents should use dex, with token costs",
  input: object({}),
  output: object({
    steps: listOf(
      object({
        tool: text(),
        use: text("When, and what to pass."),
        typical_tokens: integer("Typical size of its answer; an estimate."),
      }),
      "In the best order to call them.",
    ),
    rules: listOf(text()),
    estimated_tokens: estimatedTokensField,
  }),
  cli: { group: "For agents and scripts", example: "dex guide" },
  mcp: {
    name: "dex_guide",
    description: "How to use these tools well, in which order and at what cost.",
  },
  run: async (_: Dex) => (await import("./run.ts")).run(),
})
