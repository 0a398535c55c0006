import type { SearchIndex } from "../store/index/search-index.ts"
import type { Query } from "./query.ts"

// "Nothing found" beats ten weak hits. How much of a question a message holds is the share of its words that stand
// there, each word weighing as much as it is rare.

/** Below this, even the best message is about something else. Fitted on the tune half; see docs/retrieval.md. */
const FLOOR = 0.27
/**
 * No message repeats a quarter of a bug report of fifty words, so a longer question needs only a share of what this many of
 * its rarest words weigh. The longest question that the floor was fitted on has 14.
 */
const MOST_WEIGHED = 14
/** Of one or two words, one is worth showing. */
const LEAST_WORDS = 3

/** How much each of the query's words tells. */
export async function wordWeights(index: SearchIndex, { words }: Query): Promise<number[]> {
  const { sample, shares } = await index.sizes(words.map((word) => ({ words: word })))
  const least = 0.5 / Math.max(1, sample)
  return shares.map((share) => Math.max(0.05, Math.log((1 - share + least) / (share + least))))
}

export function coverage(weights: readonly number[], holds: readonly boolean[]): number {
  return shareHeld(weights, holds, sum(weights))
}

/** What is compared with the floor: the coverage, except that a long question is measured by its rarest words only. */
export function coverageOfRarest(weights: readonly number[], holds: readonly boolean[]): number {
  const rarest = weights.toSorted((a, b) => b - a).slice(0, MOST_WEIGHED)
  return Math.min(1, shareHeld(weights, holds, sum(rarest)))
}

function shareHeld(weights: readonly number[], holds: readonly boolean[], total: number): number {
  return total === 0 ? 1 : sum(weights.filter((_, i) => holds[i])) / total
}

function sum(weights: readonly number[]): number {
  return weights.reduce((total, weight) => total + weight, 0)
}

export function isBelowFloor({ words, required }: Query, best: number): boolean {
  return words.length >= LEAST_WORDS && required.length === 0 && best < FLOOR
}
