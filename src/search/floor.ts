import type { SearchIndex } from "../store/index/search-index.ts"
import type { Query } from "./query.ts"

// "Nothing found" is better than ten weak hits. A message's coverage is the share of the query's words that it contains,
// weighted by how rare each word is.

/** Below this, even the best message is about something else. Fitted on the tune half; see docs/retrieval.md. */
const FLOOR = 0.27
/**
 * No message repeats a quarter of a bug report of fifty words, so a longer question is measured by this many of its rarest
 * words only. The longest question that the floor was fitted on has 14.
 */
const MOST_WEIGHED = 14
/** For a query of one or two words, every hit is worth showing. */
const LEAST_WORDS = 3

/** The weight of each of the query's words: a rare word weighs more. */
export async function wordWeights(index: SearchIndex, { words }: Query): Promise<number[]> {
  const { sample, shares } = await index.sizes(words.map((word) => ({ words: word })))
  const least = 0.5 / Math.max(1, sample)
  return shares.map((share) => Math.max(0.05, Math.log((1 - share + least) / (share + least))))
}

export function coverage(weights: readonly number[], holds: readonly boolean[]): number {
  return shareOfWeight(weights, holds, sum(weights))
}

/** The value that is compared with the floor: the coverage, but a long question is measured by its rarest words only. */
export function coverageOfRarest(weights: readonly number[], holds: readonly boolean[]): number {
  const rarest = weights.toSorted((a, b) => b - a).slice(0, MOST_WEIGHED)
  return Math.min(1, shareOfWeight(weights, holds, sum(rarest)))
}

function shareOfWeight(weights: readonly number[], holds: readonly boolean[], total: number): number {
  return total === 0 ? 1 : sum(weights.filter((_, i) => holds[i])) / total
}

function sum(weights: readonly number[]): number {
  return weights.reduce((total, weight) => total + weight, 0)
}

export function isBelowFloor({ words, required }: Query, best: number): boolean {
  return words.length >= LEAST_WORDS && required.length === 0 && best < FLOOR
}
