import type { SkippedReason, Trace, TraceRow } from "../../core/trace.ts"

export type RankedRef = { ref: string; rank: number; score_final: number }
export type Replay = {
  /** True if the rows, their scores, the number of messages read and the error are the same. */
  same: boolean
  state_revision: string
  duration_ms: number
  came: RankedRef[]
  went: (RankedRef & { skipped_reason?: SkippedReason })[]
  moved: {
    ref: string
    rank_before: number
    rank_now: number
    score_before: number
    score_now: number
    terms: { name: string; change: number }[]
  }[]
  unchanged: number
  /** The counts of conversations, messages and candidates that changed. */
  counts: { name: string; before: number; now: number }[]
  error?: { code: string; message: string }
}

/** The differences between two traces of the same question. Compares only as many rows as the trace `before` contains. */
export function changesBetween(before: Trace, now: Trace): Replay {
  const ranking = now.ranking.slice(
    0,
    before.ranking.length === before.ranking_total ? undefined : before.ranking.length,
  )
  const nowByRef = new Map(ranking.map((row) => [row.ref, row]))
  const refsBefore = new Set(before.ranking.map((row) => row.ref))
  const skippedReasons = new Map(now.skipped.map((row) => [row.ref, row.skipped_reason]))
  const came = ranking.filter((row) => !refsBefore.has(row.ref)).map(toRankedRef)
  const went = before.ranking
    .filter((row) => !nowByRef.has(row.ref))
    .map((row) => ({ ...toRankedRef(row), skipped_reason: skippedReasons.get(row.ref) }))
  const commonRows = before.ranking.flatMap((row) => {
    const rowNow = nowByRef.get(row.ref)
    return rowNow ? [[row, rowNow] as const] : []
  })
  const moved = commonRows
    .filter(([row, again]) => row.rank !== again.rank || !isNear(row.score_final, again.score_final))
    .map(([row, again]) => ({
      ref: row.ref,
      rank_before: row.rank,
      rank_now: again.rank,
      score_before: row.score_final,
      score_now: again.score_final,
      terms: termChanges(row, again),
    }))
  const counts = countChanges(before, now)
  const messageCounts = counts.filter(({ name }) => name === "messages")
  return {
    same:
      came.length + went.length + moved.length + messageCounts.length === 0 && before.error?.code === now.error?.code,
    state_revision: now.state_revision,
    duration_ms: now.duration_ms,
    came,
    went,
    moved,
    unchanged: commonRows.length - moved.length,
    counts,
    error: now.error,
  }
}

function toRankedRef({ ref, rank, score_final }: TraceRow): RankedRef {
  return { ref, rank, score_final }
}

function termChanges(before: TraceRow, now: TraceRow): { name: string; change: number }[] {
  const names = [...new Set([...before.terms, ...now.terms].map((term) => term.name))]
  const sum = (row: TraceRow, name: string) =>
    row.terms.reduce((total, term) => (term.name === name ? total + term.value : total), 0)
  return names
    .filter((name) => !isNear(sum(before, name), sum(now, name)))
    .map((name) => ({ name, change: sum(now, name) - sum(before, name) }))
}

function countChanges(before: Trace, now: Trace): Replay["counts"] {
  const names = ["conversations", "messages", "candidates"] as const
  return names.flatMap((name) => {
    const [then, again] = [before.inputs[name], now.inputs[name]]
    return then === undefined || again === undefined || then === again ? [] : [{ name, before: then, now: again }]
  })
}

function isNear(a: number, b: number): boolean {
  return Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b))
}
