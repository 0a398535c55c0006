import type { Trace } from "../../src/core/trace.ts"

/** An ordinary trace. */
export function traceOf(more: Partial<Trace> = {}): Trace {
  const ranking = more.ranking ?? [rowOf("claude_code:aaaa#1")]
  const skipped = more.skipped ?? []
  return {
    trace_id: "T-0123456789abcdef",
    ts: "2026-11-14T22:48:01.000Z",
    command: "search",
    args: {},
    query: "refresh token race",
    project: "/code/api",
    inputs: { candidates: 3 },
    ranking,
    ranking_total: ranking.length,
    skipped,
    skipped_total: skipped.length,
    budgets: { limit: 10 },
    state_revision: "11111111-2222-4333-8444-555555555555@7",
    duration_ms: 12.5,
    ...more,
  }
}

export function rowOf(ref: string, summary = "Refresh token race"): Trace["ranking"][number] {
  return { rank: 1, ref, score_final: 3, terms: [{ name: "bm25", value: 3 }], summary }
}

/** `T-` and 16 digits that contain a writer and a number. */
export function idOf(writer: number, n: number): string {
  return `T-${writer.toString(16).padStart(6, "0")}${n.toString(16).padStart(10, "0")}`
}
