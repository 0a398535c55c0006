import { choice, flag, integer, listOf, object, optional, text, withDefault } from "../core/schema.ts"
import { defineTool } from "../core/tool.ts"
import type { Dex } from "../tools/context.ts"
import { projectField } from "../tools/fields.ts"
import { costFields, mapOutput } from "./map-fields.ts"

export const digest = defineTool({
  name: "digest",
  summary: "Report what was done, decided and left open",
  input: object({
    period: withDefault(choice(["today", "week"], "The day so far, or the last seven days."), "today"),
    project: projectField,
    facts: optional(flag("Show only the facts; do not use a model.")),
    ...costFields,
  }),
  output: object({
    period: text(),
    from: text(),
    to: text(),
    projects: listOf(
      object({
        project: text(),
        conversations: listOf(
          object({ id: text(), title: text(), source: text(), messages: integer("In the period.") }),
        ),
        other_conversations: integer("Subagents and automated runs, whose work is counted below as well."),
        commits: listOf(object({ ref: text(), hash: text(), subject: text() })),
        files: listOf(object({ path: text(), added: integer(), removed: integer() }), "The most changed first."),
        files_total: integer(),
        failed_commands: listOf(
          object({ ref: text("The last time."), command: text(), error: optional(text()), times: integer() }),
          "Commands that failed and did not succeed afterwards, newest first.",
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
