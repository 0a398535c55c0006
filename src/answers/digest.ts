import { choice, flag, integer, listOf, object, optional, text } from "../core/schema.ts"
import { defineTool } from "../core/tool.ts"
import type { Dex } from "../tools/context.ts"
import { decisionFields } from "../tools/decisions/decisions.ts"
import { fromField, projectField, toField } from "../tools/fields.ts"
import { costFields, mapOutput } from "./map.ts"

export const PERIODS = ["today", "yesterday", "week"] as const
const topicField = integer("Its place in topics, from 0.")

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
        project: text("The folder in which most of it happened."),
        repository: optional(text("Its remote, or the repository of its pull requests: github.com/ann/api.")),
        folders: optional(listOf(text(), "Its folders, if there are several.")),
        topics: listOf(
          object({
            title: text(),
            ref: text("The conversation with the most messages."),
            branch: optional(text()),
            pull_requests: listOf(text()),
            conversations: integer(),
          }),
          "What was worked on: a branch, or a conversation. Those with pull requests and the most commits first.",
        ),
        conversations: listOf(
          object({
            id: text(),
            title: text(),
            source: text(),
            messages: integer("In the period."),
            topic: optional(topicField),
          }),
        ),
        other_conversations: integer(
          "Number of subagents and automated runs. Their work is included in the other counts.",
        ),
        decisions: listOf(object({ ...decisionFields, topic: optional(topicField) }), "Newest first."),
        decisions_total: integer(),
        commits: listOf(object({ ref: text(), hash: text(), subject: text(), topic: topicField }), "Oldest first."),
        files: listOf(
          object({ path: text(), added: integer(), removed: integer() }),
          "Files with the most changes first. Files in a worktree count as files of the main checkout.",
        ),
        files_total: integer(),
        plan_files: integer("Number of plans that agents wrote for themselves. They are not listed in files."),
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
