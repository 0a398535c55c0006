import { choice, flag, integer, list, map, number, object, optional, type Schema, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import { SKIPPED_REASONS, TRACE_COMMANDS } from "../../core/trace.ts"
import type { Dex } from "../context.ts"

/** An object whose fields depend on the command. */
const fields = (description: string): Schema<Record<string, unknown>> => ({
  type: "object",
  additionalProperties: true,
  description,
})
const terms = list(object({ name: text(), value: number() }), "They add up to score_final.")
const place = { ref: text(), rank: integer(), score_final: number() }

const traceShape = object({
  trace_id: text(),
  ts: text("When the command began."),
  command: choice(TRACE_COMMANDS),
  args: fields("What was asked for beyond the query; defaults are left out."),
  query: optional(text("Redacted.")),
  mode: optional(text()),
  project: text("Where it was asked."),
  inputs: object({
    conversations: optional(integer()),
    messages: optional(integer()),
    index_is_current: optional(flag()),
    candidates: optional(integer()),
  }),
  ranking: list(
    object({
      rank: integer(),
      ref: text(),
      score_final: number(),
      score_lex: optional(number()),
      score_vec: optional(number()),
      rank_source: optional(text()),
      terms,
      summary: text("At most 80 characters."),
    }),
    "The answer, best first.",
  ),
  ranking_total: integer("Rows in the answer; a trace keeps the first that fit."),
  skipped: list(
    object({ ref: text(), score: optional(number()), skipped_reason: choice(SKIPPED_REASONS) }),
    "Candidates that are not in the answer.",
  ),
  skipped_total: integer(),
  budgets: map(number()),
  truncation: optional(fields("What was cut.")),
  state_revision: text("How far the history had come."),
  duration_ms: number(),
  error: optional(object({ code: text(), message: text() })),
})

export const trace = defineTool({
  name: "trace",
  summary: "Why a retrieval answered as it did: every score taken apart, and what was left out",
  input: object({
    id: optional(text("A trace's id or the beginning of it; the newest if left out.")),
    replay: optional(flag("Run it again, and show what changed.")),
  }),
  output: object({
    trace: traceShape,
    adds_up: flag("The terms of every row add up to its score."),
    replay: optional(
      object({
        same: flag(),
        state_revision: text(),
        duration_ms: number(),
        came: list(object(place), "In the answer now, not then."),
        went: list(
          object({ ...place, skipped_reason: optional(choice(SKIPPED_REASONS, "Why it is not in the answer now.")) }),
          "In the answer then, not now.",
        ),
        moved: list(
          object({
            ref: text(),
            rank_before: integer(),
            rank_now: integer(),
            score_before: number(),
            score_now: number(),
            terms: list(object({ name: text(), change: number() }), "What changed the score."),
          }),
          "In both, with another rank or score.",
        ),
        unchanged: integer(),
        counts: list(
          object({ name: text(), before: integer(), now: integer() }),
          "What was counted otherwise: messages read, candidates.",
        ),
        error: optional(object({ code: text(), message: text() })),
      }),
    ),
    notes: list(text(), "What is hidden or cut."),
  }),
  cli: { positional: "id", example: "dex trace T-3f9a1c2b --replay" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
})
