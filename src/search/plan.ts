import type { SearchIndex } from "../store/search-index.ts"
import type { Query } from "./query.ts"

/**
 * What is asked of the index for a query. Scoring costs time for every message that holds any of the words, so where
 * the words are so common that this would be hundreds of thousands, the work is bounded, and the answer says so.
 */
export type Plan = {
  /** An FTS5 expression; empty when there is nothing to look for. */
  match: string
  pairs: string
  /** Words that stand nearly everywhere and were left out, since others tell more. */
  dropped: string[]
  /** Only about so many of the newest messages were looked at. */
  newest?: number
}

/** Up to here everything is looked at. */
const SMALL_HISTORY = 200_000
/** Messages that may be scored. */
const BUDGET = 150_000
/** A word in more than this share of the messages tells little beside one that is not. */
const COMMON = 0.05

export function planQuery(index: SearchIndex, { terms, pairs, required }: Query): Plan {
  const all = terms.length > 0 ? terms : required
  const exact: Plan = { match: anyOf(all), pairs: anyOf(pairs), dropped: [] }
  if (all.length === 0) return exact
  if (index.sizes([]).messages <= SMALL_HISTORY) return exact
  const { messages, shares } = index.sizes(all)
  return bounded(exact, all, messages, shares)
}

function bounded(exact: Plan, terms: string[], messages: number, shares: number[]): Plan {
  const cost = (kept: boolean[]) => shares.reduce((sum, share, i) => sum + (kept[i] ? share : 0), 0) * messages
  if (cost(shares.map(() => true)) <= BUDGET) return exact
  const rare = shares.map((share) => share <= COMMON)
  const kept = rare.some((is, i) => is && shares[i]! > 0) ? rare : shares.map(() => true)
  const dropped = terms.filter((_, i) => !kept[i])
  const plan: Plan = { ...exact, match: anyOf(terms.filter((_, i) => kept[i])), dropped }
  if (cost(kept) <= BUDGET) return plan
  return { ...plan, newest: Math.floor((messages * BUDGET) / cost(kept)) }
}

function anyOf(expressions: string[]): string {
  return expressions.join(" OR ")
}
