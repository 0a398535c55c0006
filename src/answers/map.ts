import { flag, object, optional, text } from "../core/schema.ts"
import { defineTool } from "../core/tool.ts"
import type { Dex } from "../tools/context.ts"
import { costFields, filterFields, formatField, mapOutput } from "./map-fields.ts"

export const map = defineTool({
  name: "map",
  summary: "Run one question over many conversations (needs a model)",
  input: object({
    task: optional(text("What to collect from the conversations.")),
    recipe: optional(text("A saved task: rules, preferences, evaluation, digest, one of your own, or a file.")),
    topic: optional(text("The recipe's topic, if it needs one.")),
    ...filterFields,
    format: formatField,
    schema: optional(text("A JSON Schema file for the result: an object with lists of items.")),
    ...costFields,
    resume: optional(flag("Continue the last run; running the same command again does that too.")),
  }),
  output: mapOutput,
  cli: {
    group: "Learn",
    positional: "task",
    short: { l: "limit", s: "source", p: "project", a: "all", o: "output" },
    example: 'dex map "decisions on the database, and why" --project api --dry-run',
  },
  run: async (dex: Dex, input) => (await import("./map.run.ts")).run(dex, input),
  found: (output) => output.conversations > 0,
})
