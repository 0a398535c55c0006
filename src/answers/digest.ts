import { choice, flag, integer, listOf, object, optional, text } from "../core/schema.ts"
import { defineTool } from "../core/tool.ts"
import type { Dex } from "../tools/context.ts"
import { decisionShape } from "../tools/decisions/decisions.ts"
import { fromField, projectField, toField } from "../tools/fields.ts"
import { PERIODS } from "./digest/period.ts"
import { costFields, mapOutput } from "./map.ts"

export const digest = defineTool({
  name: "digest",
  summary: "Report what was done, decided and left open",
  input: object({
    period: optional(choice(PERIODS, "The day so far (the default), the day before, or the last seven days.")),
    from: fromField,
    to: toField,
    project: projectField,
    all: optional(flag("Show everything, not only what fits on a screen.")),
    facts: optional(flag("Show only the facts; do not use a model.")),
    ...costFields,
  }),
  output: object({
    period: text("today, yesterday, week or dates."),
    from: text(),
    to: text(),
    projects: listOf(
      object({
        project: text(),
        conversations: listOf(
          object({ id: text(), title: text(), source: text(), messages: integer("In the period.") }),
        ),
        other_conversations: integer("Subagents and automated runs; their work is included in the counts."),
        decisions: listOf(decisionShape, "Newest first."),
        decisions_total: integer(),
        commits: listOf(object({ ref: text(), hash: text(), subject: text() })),
        files: listOf(
          object({ path: text(), added: integer(), removed: integer() }),
          "The most changed files first. Files of a worktree count as the checkout's.",
        ),
        files_total: integer(),
        plan_files: integer("Plans that agents wrote for themselves, which are not among the files."),
        failed_commands: listOf(
          object({ ref: text("The last time."), command: text(), error: optional(text()), times: integer() }),
          "Test runs, builds and linters that failed and did not pass afterwards, newest first.",
        ),
        failed_commands_total: integer(),
      }),
    ),
    mapped: optional(mapOutput),
    notes: listOf(text()),
  }),
  cli: { group: "Learn", common: true, short: { p: "project", o: "output" }, example: "dex digest --period week" },
  run: async (dex: Dex, input) => (await import("./digest.run.ts")).run(dex, input),
  found: (output) => output.projects.length > 0,
})
