import {
  choice,
  decimal,
  flag,
  type Infer,
  integer,
  listOf,
  mapOf,
  object,
  optional,
  type Schema,
  text,
} from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import { SKIPPED_REASONS, TRACE_COMMANDS } from "../../core/trace.ts"
import type { Dex } from "../context.ts"

/** An object whose fields depend on the command. */
const fields = (description: string): Schema<Record<string, unknown>> => ({
  type: "object",
  additionalProperties: true,
  description,
})
const terms = listOf(object({ name: text(), value: decimal() }), "These add up to score_final.")
const rankedRefFields = { ref: text(), rank: integer(), score_final: decimal() }

const traceShape = object({
  trace_id: text(),
  ts: text("When the command began."),
  command: choice(TRACE_COMMANDS),
  args: fields("The input without the query; defaults are left out."),
  query: optional(text("Redacted.")),
  mode: optional(text()),
  project: text("The caller's project."),
  inputs: object({
    conversations: optional(integer()),
    messages: optional(integer()),
    index_is_current: optional(flag()),
    candidates: optional(integer()),
  }),
  ranking: listOf(
    object({
      rank: integer(),
      ref: text(),
      score_final: decimal(),
      score_lex: optional(decimal()),
      score_vec: optional(decimal()),
      rank_source: optional(text()),
      terms,
      summary: text("At most 80 characters."),
    }),
    "The answer, best first.",
  ),
  ranking_total: integer("Rows in the answer; a trace contains only the first ones."),
  skipped: listOf(
    object({ ref: text(), score: optional(decimal()), skipped_reason: choice(SKIPPED_REASONS) }),
    "Candidates that are not in the answer.",
  ),
  skipped_total: integer(),
  budgets: mapOf(decimal()),
  truncation: optional(fields("What was cut.")),
  state_revision: text("The revision of the history."),
  duration_ms: decimal(),
  error: optional(object({ code: text(), message: text() })),
})

const input = object({
  id: optional(text("A trace's id, or the start of it. Default: the newest.")),
  replay: optional(flag("Run it again and show what changed.")),
})
export type TraceInput = Infer<typeof input>

export const trace = defineTool({
  name: "trace",
  summary: "Explain an earlier answer: scores, and what was left out",
  input,
  output: object({
    trace: traceShape,
    adds_up: flag("The terms of every row add up to its score."),
    replay: optional(
      object({
        same: flag(),
        state_revision: text(),
        duration_ms: decimal(),
        came: listOf(object(rankedRefFields), "Rows that are in the answer now, but were not in the traced one."),
        went: listOf(
          object({
            ...rankedRefFields,
            skipped_reason: optional(choice(SKIPPED_REASONS, "Why it is not in the answer now.")),
          }),
          "Rows that were in the traced answer, but are not in it now.",
        ),
        moved: listOf(
          object({
            ref: text(),
            rank_before: integer(),
            rank_now: integer(),
            score_before: decimal(),
            score_now: decimal(),
            terms: listOf(object({ name: text(), change: decimal() }), "What changed the score."),
          }),
          "Rows that are in both answers, with a different rank or score.",
        ),
        unchanged: integer(),
        counts: listOf(
          object({ name: text(), before: integer(), now: integer() }),
          "Counts that changed: messages read, candidates.",
        ),
        error: optional(object({ code: text(), message: text() })),
      }),
    ),
    notes: listOf(text(), "Anything hidden or cut."),
  }),
  cli: { group: "Find", positional: "id", example: "dex trace T-3f9a1c2b --replay" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
})
