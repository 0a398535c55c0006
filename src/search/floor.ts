import type { SearchIndex } from "../store/index/search-index.ts"
import type { Query } from "./query.ts"

// Rejects weak results: "nothing found" is better than ten weak hits. A message's coverage is the share of the query's words that
// it contains, weighted by how rare each word is.

/**
 * The least coverage that the best message must have; with less, it is about something else. Fitted on the tune half; see
 * docs/retrieval.md.
 */
const FLOOR = 0.27
/**
 * The number of rarest words that are used to measure a long question: no message repeats a quarter of a bug report of fifty
 * words. The longest question that the floor was fitted on has 14 words.
 */
const MAX_WEIGHED_WORDS = 14
/** The fewest words for which the floor applies. For a query of one or two words, every hit is worth showing. */
const MIN_WORDS = 3

/** The weight of each word of the query. Rare words have larger weights. */
export async function wordWeights(index: SearchIndex, { words }: Query): Promise<number[]> {
  const { sample, shares } = await index.sizes(words.map((word) => ({ words: word })))
  const least = 0.5 / Math.max(1, sample)
  return shares.map((share) => Math.max(0.05, Math.log((1 - share + least) / (share + least))))
}

export function coverage(weights: readonly number[], contained: readonly boolean[]): number {
  return shareOfWeight(weights, contained, sum(weights))
}

/** The value that is compared with the floor: the coverage, measured only by the rarest words if the question is long. */
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
