import {
  decimal,
  flag,
  type Infer,
  integer,
  listOf,
  mapOf,
  object,
  optional,
  text,
  withDefault,
} from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

const figures = object({
  n: integer("Number of questions."),
  hit_at_1: decimal("Share of questions whose conversation came first."),
  hit_at_5: decimal("Share of questions whose conversation was among the first five."),
  mrr: decimal("Mean of 1 / rank of the conversation; 0 if it was not among the first ten."),
  silent: decimal("Share of questions without hits, although the answer was there."),
})

const input = object({
  mine: withDefault(flag("Search for your own commits. Nothing leaves this machine."), false),
  limit: withDefault(
    integer("Search for at most this many commits, newest first.", { minimum: 10, maximum: 2000 }),
    300,
  ),
})
export type EvalInput = Infer<typeof input>

export const evaluate = defineTool({
  name: "eval",
  summary: "Measure how well search finds your own past work",
  input,
  output: object({
    asked: object({
      commits: integer("Commits that conversations of this history made."),
      questions: integer("Commits that can be searched for."),
      left_out: mapOf(integer(), "Commits that are not searched for, by reason."),
    }),
    searched: optional(
      object({
        conversations: integer(),
        messages: integer(),
        of_conversations: integer("All conversations. In a very large history, only the newest are searched."),
        of_messages: integer(),
      }),
    ),
    figures: optional(figures),
    hit_at_5_interval: optional(object({ low: decimal(), high: decimal() }, "95 % confidence interval of hit_at_5.")),
    silent_without_answer: optional(
      decimal("Share of questions that find nothing if the conversations with the answer are left out."),
    ),
    duration_ms: integer(),
    notes: listOf(text(), "The limits of these figures, and what to do next."),
  }),
  cli: { group: "For agents and scripts", example: "dex eval --mine" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.figures !== undefined,
})
