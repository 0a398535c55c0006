import type { SearchIndex } from "../store/index/search-index.ts"
import type { Query } from "./query.ts"

// "Nothing found" beats ten weak hits. How much of a question a message holds is the share of its words that stand
// there, each word weighing as much as it is rare.

/** Below this, even the best message is about something else. Fitted on the tune half; see docs/retrieval.md. */
const FLOOR = 0.27
/** Of one or two words, one is worth showing. */
const LEAST_WORDS = 3

/** How much each of the query's words tells. */
export async function wordWeights(index: SearchIndex, { words }: Query): Promise<number[]> {
  const { sample, shares } = await index.sizes(words.map((word) => ({ words: word })))
  const least = 0.5 / Math.max(1, sample)
  return shares.map((share) => Math.max(0.05, Math.log((1 - share + least) / (share + least))))
}

export function coverage(weights: readonly number[], holds: readonly boolean[]): number {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  return total === 0 ? 1 : weights.reduce((sum, weight, i) => sum + (holds[i] ? weight : 0), 0) / total
}

export function isBelowFloor({ words, required }: Query, best: number): boolean {
  return words.length >= LEAST_WORDS && required.length === 0 && best < FLOOR
}
