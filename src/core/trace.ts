/** The record of how a retrieval reached its answer. It contains ids, scores and short summaries, never a message's text. */
export type Trace = {
  /** `T-` and 16 hexadecimal digits, such as `T-0a1b2c3d4e5f6071`. */
  trace_id: string
  /** The time at which the command began. */
  ts: string
  command: TraceCommand
  /** The arguments other than the query, with row numbers resolved and defaults left out. Redacted. */
  args: Record<string, unknown>
  query?: string
  mode?: string
  /** The project in which the command ran. It affects the answer, because a private project is hidden outside its folder. */
  project: string
  inputs: TraceInputs
  /** The ranked rows, best first. A trace has a bounded length, so there may be fewer rows than `ranking_total`. */
  ranking: TraceRow[]
  ranking_total: number
  /** Candidates that are not in the answer, possibly only the first of `skipped_total`. */
  skipped: SkippedRow[]
  skipped_total: number
  /** The limits that applied to the answer. */
  budgets: Record<string, number>
  /** Describes what was cut from the answer or from this trace. */
  truncation?: Record<string, unknown>
  /** The revision of the history when the command ran. */
  state_revision: string
  duration_ms: number
  error?: { code: string; message: string }
}

export const TRACE_COMMANDS = ["search", "timeline", "get", "scan", "read", "ask", "suggest", "reindex", "gc"] as const
export type TraceCommand = (typeof TRACE_COMMANDS)[number]

export type TraceInputs = {
  conversations?: number
  messages?: number
  index_is_current?: boolean
  candidates?: number
  /** The reasons why the answer did not use everything that is configured, such as vectors. */
  degraded?: string[]
}

/** `terms` add up to `score_final`. A row that the user named has no terms and a score of 0. */
export type TraceRow = {
  rank: number
  ref: string
  score_final: number
  score_lex?: number
  score_vec?: number
  rank_source?: string
  terms: TraceTerm[]
  /** One line of at most 80 characters. */
  summary: string
}
export type TraceTerm = { name: string; value: number }

export const SKIPPED_REASONS = ["filter", "floor", "duplicate", "folded", "budget", "not_top_k"] as const
export type SkippedReason = (typeof SKIPPED_REASONS)[number]
export type SkippedRow = { ref: string; score?: number; skipped_reason: SkippedReason }

/**
 * The facts that a tool reports about its own retrieval. Summaries and lists may have any length, because they are cut when the
 * trace is written.
 */
export type TraceFacts = Partial<
  Pick<Trace, "args" | "mode" | "inputs" | "ranking" | "skipped" | "skipped_total" | "budgets" | "truncation">
>

/** Returns true if the terms add up to the score, except for rounding. */
export function addsUp({ score_final, terms }: Pick<TraceRow, "score_final" | "terms">): boolean {
  const sum = terms.reduce((total, term) => total + term.value, 0)
  const scale = terms.reduce((largest, term) => Math.max(largest, Math.abs(term.value)), Math.abs(score_final))
  return Math.abs(sum - score_final) <= 1e-9 * scale
}

const SUMMARY_CHARS = 80
/**
 * Matches white space, control characters and invisible characters. Lists ranges, because Unicode classes take 2 ms to compile.
 */
const INVISIBLE =
  /[\0- \x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ud800-\udfff\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]+/gu

/** Shortens a text to one line without control characters. */
export function summaryOf(text: string): string {
  return clipText(text.slice(0, 1000).replace(INVISIBLE, " ").trim(), SUMMARY_CHARS)
}

/** Cuts a text to this many characters, with an ellipsis. Never cuts a character in half. */
export function clipText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  return `${text.slice(0, maxChars - 1).replace(/[\ud800-\udbff]$/, "")}…`
}
