import { decimal, flag, integer, listOf, object, optional, text, withDefault } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { projectField } from "../fields.ts"
import { maxTokensField } from "../view-fields.ts"

export const fix = defineTool({
  name: "fix",
  summary: "Find what fixed this error last time",
  input: object({
    error: text("An error's text, whole or in part, or the command that failed.", { minLength: 1 }),
    project: projectField,
    limit: withDefault(integer("How many fixes at the most.", { minimum: 1, maximum: 50 }), 5),
    max_tokens: maxTokensField,
  }),
  output: object({
    fixes: listOf(
      object({
        command: text("What failed."),
        error: text("The line of its output that is closest to what was asked."),
        solved: flag("The like of the command ended well after the edits."),
        ref: optional(text("The run that ended well.")),
        failed_ref: text("The run that failed."),
        date: text("When it ended well, or failed where it never did."),
        project: text(),
        source: text(),
        files: listOf(object({ path: text(), added: integer(), removed: integer() }), "Edited in between."),
        files_left_out: optional(integer()),
        edit: text("What was changed, as a unified diff; empty where the agent does not tell."),
        edit_lines_left_out: optional(integer()),
        likeness: decimal("To what was asked, from 0 to 1."),
      }),
      "Best first. Those that were not solved only where none was.",
    ),
    total: integer("Fixes that were found."),
    unsolved: integer("The like of it failed and edits followed, but no run that ended well."),
    estimated_tokens: integer("Of this answer; an estimate."),
    notes: listOf(text(), "What is hidden, incomplete or bounded."),
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
