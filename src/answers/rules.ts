import { choice, object, optional } from "../core/schema.ts"
import { defineTool } from "../core/tool.ts"
import type { Dex } from "../tools/context.ts"
import { costFields, filterFields, formatField, mapOutput } from "./map-fields.ts"

export const rules = defineTool({
  name: "rules",
  summary: "Draft AGENTS.md rules from past requests (needs a model)",
  input: object({
    ...filterFields,
    format: formatField,
    for: optional(
      choice(
        ["agents", "claude", "cursor"],
        "Format of the --output file: agents, claude or cursor (adds front matter).",
      ),
    ),
    ...costFields,
  }),
  output: mapOutput,
  cli: {
    group: "Learn",
    short: { l: "limit", s: "source", p: "project", a: "all", o: "output" },
    example: "dex rules --project api --output rules.md",
  },
  run: async (dex: Dex, input) => (await import("./rules.run.ts")).run(dex, input),
  found: (output) => output.conversations > 0,
})
