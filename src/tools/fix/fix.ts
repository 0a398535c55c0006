import { decimal, flag, type Infer, integer, listOf, object, optional, text, withDefault } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { projectField } from "../fields.ts"
import { maxTokensField } from "../view-fields.ts"

const input = object({
  error: text("The error text, or part of it, or the command that failed.", { minLength: 1 }),
  project: projectField,
  limit: withDefault(integer("Show at most this many fixes.", { minimum: 1, maximum: 50 }), 5),
  max_tokens: maxTokensField,
})
export type FixInput = Infer<typeof input>

export const fix = defineTool({
  name: "fix",
  summary: "Find what fixed this error last time",
  input,
  output: object({
    fixes: listOf(
      object({
        command: text("The command that failed."),
        error: text("The line of its output that is closest to the given error."),
        solved: flag("A similar command succeeded after the edits."),
        ref: optional(text("The run that succeeded.")),
        failed_ref: text("The run that failed."),
        date: text("When the command succeeded. If it never did, when it failed."),
        project: text(),
        source: text(),
        files: listOf(
          object({ path: text(), added: integer(), removed: integer() }),
          "Files edited between the two runs.",
        ),
        files_left_out: optional(integer()),
        edit: text("The change, as a unified diff; empty if the agent does not record it."),
        edit_lines_left_out: optional(integer()),
        likeness: decimal("Similarity to the given error, from 0 to 1."),
      }),
      "Best match first. Unsolved errors are shown only if no solved one was found.",
    ),
    total: integer("Fixes that were found."),
    unsolved: integer("Similar failures after which code was edited, but no run is known to have passed."),
    estimated_tokens: integer("Estimated size of this answer."),
    notes: listOf(text(), "Anything hidden, incomplete or limited."),
  }),
  cli: {
    group: "Learn",
    common: true,
    positional: "error",
    short: { l: "limit", p: "project" },
    example: "dex fix \"Cannot find module 'zod'\"",
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.fixes.length > 0,
})
