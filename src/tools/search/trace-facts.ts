import { formatRef, type Ref } from "../../core/ref.ts"
import type { TraceFacts } from "../../core/trace.ts"
import type { SearchOutcome } from "../../search/search.ts"

const MOST_SKIPPED = 40

/** What a search's trace tells. */
export function searchFacts(outcome: SearchOutcome, offset: number, conversation: Ref | undefined): TraceFacts {
  return {
    ...(conversation && { args: { session: formatRef(conversation) } }),
    mode: outcome.mode,
    inputs: {
      candidates: outcome.candidates,
      index_is_current: outcome.index_is_current,
      ...(outcome.degraded.length > 0 && { degraded: outcome.degraded }),
      ...(outcome.scanned && { conversations: outcome.scanned.of }),
    },
    ranking: outcome.hits.map((hit, i) => ({
      rank: offset + i + 1,
      ref: formatRef({ ...hit.row.ref, number: hit.number }),
      score_final: hit.score,
      ...hit.evidence,
      terms: hit.parts,
      summary: (hit.parent ?? hit.row).title?.text ?? "",
    })),
    skipped: outcome.skipped.slice(0, MOST_SKIPPED).map(({ ref, number, score, reason }) => ({
      ref: formatRef({ ...ref, number }),
      score,
      skipped_reason: reason,
    })),
    skipped_total: outcome.skipped.length,
    ...(outcome.total_is_at_least && { truncation: { candidates_counted_to: outcome.total } }),
  }
}

/** What the trace of a search without words tells. */
export function browseFacts(rows: readonly { id: string; title: string }[], offset: number): TraceFacts {
  return {
    mode: "list",
    ranking: rows.map(({ id, title }, i) => ({
      rank: offset + i + 1,
      ref: id,
      score_final: 0,
      terms: [],
      summary: title,
    })),
  }
}
