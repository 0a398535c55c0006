import type { SearchIndex } from "../store/index/search-index.ts"
import type { Query } from "./query.ts"

// Rejects weak results: "nothing found" is better than ten weak hits. A message's coverage is the share of the query's words that
// it contains, weighted by how rare each word is.

/**
 * The minimum coverage of the best message; with less, the message is about something else. Fitted on one half of the evaluation
 * set; see docs/retrieval.md.
 */
const FLOOR = 0.27
/**
 * A long question is measured by only this many of its rarest words, because no message repeats even a quarter of a fifty-word
 * bug report. The longest question that the floor was fitted on has 14 words.
 */
const MAX_WEIGHED_WORDS = 14
/** The floor applies to queries of at least this many words. For a query of one or two words, every hit is worth showing. */
const MIN_WORDS = 3

/** The weight of each word of the query. Rare words have larger weights. */
export async function wordWeights(index: SearchIndex, { words }: Query): Promise<number[]> {
  const { sample, shares } = await index.sizes(words.map((word) => ({ words: word })))
  const smoothing = 0.5 / Math.max(1, sample)
  return shares.map((share) => Math.max(0.05, Math.log((1 - share + smoothing) / (share + smoothing))))
}

export function coverage(weights: readonly number[], contained: readonly boolean[]): number {
  return shareOfWeight(weights, contained, sum(weights))
}

/** Returns the value to compare with the floor: the coverage, measured only by the rarest words if the question is long. */
export function coverageOfRarest(weights: readonly number[], contained: readonly boolean[]): number {
  const rarest = weights.toSorted((a, b) => b - a).slice(0, MAX_WEIGHED_WORDS)
  return Math.min(1, shareOfWeight(weights, contained, sum(rarest)))
}

function shareOfWeight(weights: readonly number[], contained: readonly boolean[], total: number): number {
  return total === 0 ? 1 : sum(weights.filter((_, i) => contained[i])) / total
}

function sum(weights: readonly number[]): number {
  return weights.reduce((total, weight) => total + weight, 0)
}

export function isBelowFloor({ words, required }: Query, bestCoverage: number): boolean {
  return words.length >= MIN_WORDS && required.length === 0 && bestCoverage < FLOOR
}
