import {
  choice,
  decimal,
  flag,
  type Infer,
  integer,
  listOf,
  object,
  optional,
  text,
  withDefault,
} from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { fromField, projectField, sourceField, toField } from "../fields.ts"

export const USAGE_GROUPS = [
  "day",
  "week",
  "month",
  "block",
  "project",
  "agent",
  "model",
  "branch",
  "conversation",
  "commit",
  "pull_request",
  "ticket",
] as const
export type UsageGroup = (typeof USAGE_GROUPS)[number]

const sumFields = {
  cost: decimal("US dollars at list price."),
  tokens: integer("All tokens: input, output, cache reads and cache writes."),
  unpriced_tokens: integer("Tokens without a known price. They are not included in the cost."),
  input: integer("Without cache reads."),
  output: integer(),
  reasoning: integer("Part of the output, if the agent reports it."),
  cache_read: integer(),
  cache_write_5m: integer("Cache writes that last five minutes."),
  cache_write_1h: integer("Cache writes that last an hour."),
  cache_write_other: integer("Cache writes of unknown duration, priced as five minutes."),
  web_searches: integer(),
  web_fetches: integer(),
  answers: integer("Number of agents' messages that used these tokens."),
  conversations: integer("Conversations with recorded usage; subagents count with the one that started them."),
  subagent_tokens: integer("Tokens that subagents used."),
  subagent_cost: decimal("Cost of subagents."),
  cost_of: object({
    input: decimal(),
    output: decimal(),
    cache_read: decimal(),
    cache_write_5m: decimal(),
    cache_write_1h: decimal(),
    web_searches: decimal(),
    recorded: decimal("Cost as the agent recorded it, if no price list has the model."),
  }),
}

const input = object({
  by: withDefault(choice(USAGE_GROUPS, "Group by this. block: five hours, like the limits of Claude's plans."), "day"),
  project: projectField,
  source: sourceField,
  model: optional(text("Only models whose name contains this.")),
  from: fromField,
  to: toField,
  subagents: optional(flag("List subagents separately from the conversations that started them.")),
  limit: withDefault(
    integer("Maximum number of rows: the newest periods, or the most expensive groups.", {
      minimum: 1,
      maximum: 10_000,
    }),
    30,
  ),
  csv: optional(flag("Print the rows as CSV, with every kind of token and of cost.")),
  line: optional(
    flag("Print one line for a status line, as of the last sync, and store the limits in the agent's JSON on stdin."),
  ),
  before: optional(
    text("With line: a status line command to run with the same input. Its output comes first.", { minLength: 1 }),
  ),
})
export type UsageInput = Infer<typeof input>

export const usage = defineTool({
  name: "usage",
  summary: "Show what your agents used, in tokens and money",
  input,
  output: object({
    by: text(),
    rows: listOf(
      object({
        key: text("The day, the week's Monday, the month, the block's start, the project's path, …"),
        title: optional(text("The title of a conversation, or the subject of a commit.")),
        subagents: optional(flag("True if this row is the usage of subagents, which is listed separately.")),
        ...sumFields,
      }),
      "Periods in order of time, everything else by cost.",
    ),
    total: object(sumFields, "Totals of all matching rows, shown or not."),
    from: optional(text("The time of the first usage.")),
    to: optional(text("The time of the last usage.")),
    days: listOf(
      object({
        day: text(),
        tokens: integer(),
        cost: decimal(),
        conversations: integer(),
        models: listOf(object({ model: text(), tokens: integer(), cost: decimal() }), "Most expensive first."),
      }),
      "Each day on which something was used.",
    ),
    models: listOf(
      object({
        model: text(),
        tokens: integer(),
        cost: decimal(),
        price_of: optional(text("The model in the price list, with its provider.")),
        from: optional(text("The package and version that the price is from, or your own file.")),
        since: optional(text("The day from which the price is valid, if the package has one.")),
      }),
      "The models used, and where their prices are from.",
    ),
    rows_left_out: integer(),
    plan: optional(text("From the setting usage.plan.")),
    limits: optional(
      listOf(
        object({
          agent: text(),
          window: text("5 h, 7 days, …"),
          used_percent: decimal(),
          resets_at: text(),
          reported_at: text(),
          forecast: optional(
            object({
              percent_from: optional(decimal("The percentage at the reset, if it goes on as so far: the least.")),
              percent_to: optional(decimal("The most.")),
              full_from: optional(text("When the limit is reached, before its reset: at the earliest.")),
              full_to: optional(text("At the latest. Absent if it may last.")),
            }),
          ),
        }),
        "The limits of your plans, as the agents last reported them. A limit that has been reset since is left out.",
      ),
    ),
    line: optional(text("With line: the status line.")),
    notes: listOf(text(), "Anything hidden, unknown or estimated."),
  }),
  cli: {
    group: "Keep",
    positional: "by",
    nested: { by: "by" }, // The positional field can also be given as a flag.
    short: { p: "project", s: "source", m: "model", l: "limit" },
    aliases: ["cost", "costs"],
    web: true,
    example: "dex usage month",
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: ({ total, line }) => total.answers > 0 || line !== undefined,
})
