/** The record of how a retrieval got to its answer: ids, scores and short summaries, never a message's text. */
export type Trace = {
  /** `T-` and 16 hexadecimal digits. */
  trace_id: string
  /** When the command began. */
  ts: string
  command: TraceCommand
  /** What was asked for beyond the query, with row numbers resolved and defaults left out. Redacted. */
  args: Record<string, unknown>
  query?: string
  mode?: string
  /** The project in which it was asked: what is private answers differently outside. */
  project: string
  inputs: TraceInputs
  /** Best first. A line has a bounded length, so these may be the first of `ranking_total`. */
  ranking: TraceRow[]
  ranking_total: number
  /** Candidates that are not in the answer; these may be the first of `skipped_total`. */
  skipped: SkippedRow[]
  skipped_total: number
  /** The limits that applied. */
  budgets: Record<string, number>
  /** What was cut, of the answer or of this trace. */
  truncation?: Record<string, unknown>
  /** How far the history's feed of changes had come. */
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
  /** Why it was less than what is set up. */
  degraded?: string[]
}

/** `terms` add up to `score_final`. A row that was asked for by name has neither: no terms, and a score of 0. */
export type TraceRow = {
  rank: number
  ref: string
  score_final: number
  score_lex?: number
  score_vec?: number
  rank_source?: string
  terms: TraceTerm[]
  /** At most 80 characters on one line. */
  summary: string
}
export type TraceTerm = { name: string; value: number }

export const SKIPPED_REASONS = ["filter", "floor", "duplicate", "folded", "budget", "not_top_k"] as const
export type SkippedReason = (typeof SKIPPED_REASONS)[number]
export type SkippedRow = { ref: string; score?: number; skipped_reason: SkippedReason }

/** What a tool knows of its own retrieval. Summaries may be of any length, and lists too: they are cut when written. */
export type TraceFacts = Partial<
  Pick<Trace, "args" | "mode" | "inputs" | "ranking" | "skipped" | "skipped_total" | "budgets" | "truncation">
>

/** True when the terms explain the score: they add up to it, but for what floating point rounds. */
export function addsUp({ score_final, terms }: Pick<TraceRow, "score_final" | "terms">): boolean {
  const sum = terms.reduce((total, term) => total + term.value, 0)
  const scale = terms.reduce((most, term) => Math.max(most, Math.abs(term.value)), Math.abs(score_final))
  return Math.abs(sum - score_final) <= 1e-9 * scale
}

const SUMMARY_CHARS = 80
/** White space, and all that steers or hides. As ranges: classes of Unicode take 2 ms to compile. */
const UNSHOWN =
  /[\0- \x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ud800-\udfff\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]+/gu

/** On one line, without control characters, short. */
export function summaryOf(text: string): string {
  return clipText(text.slice(0, 1000).replace(UNSHOWN, " ").trim(), SUMMARY_CHARS)
}

/** At most this many characters, with an ellipsis where something was cut; no half of a character is left. */
export function clipText(text: string, most: number): string {
  if (text.length <= most) return text
  return `${text.slice(0, most - 1).replace(/[\ud800-\udbff]$/, "")}…`
}
