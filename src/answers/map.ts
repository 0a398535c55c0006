import { flag, object, optional, text } from "../core/schema.ts"
import { defineTool } from "../core/tool.ts"
import type { Dex } from "../tools/context.ts"
import { costFields, filterFields, mapOutput } from "./map-fields.ts"

export const map = defineTool({
  name: "map",
  summary: "Run one question over many conversations (needs a model)",
  input: object({
    task: optional(text("What to collect from the conversations.")),
    recipe: optional(text("A task that is kept: rules, preferences, evaluation, digest, one of your own, or a file.")),
    topic: optional(text("What the recipe is about, where it asks for that.")),
    ...filterFields,
    schema: optional(text("A JSON Schema file for the result: an object with lists of items.")),
    ...costFields,
    resume: optional(flag("Go on with the last run; the same command does that too.")),
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
