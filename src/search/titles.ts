import type { HistoryReader } from "../store/history/store.ts"
import { containedWords } from "../store/index/snippets.ts"
import { coverage } from "./floor.ts"
import type { Query } from "./query.ts"
import type { RankedConversation } from "./rank.ts"

// Scores titles. Most titles consist of words that also occur in messages, where they count like any others. But people who type
// words of a title mean the conversation about them, not one in which a tool printed them.

/** The number of best conversations to consider. */
const MAX_TITLED = 60
/** The share of the query that a title must contain; with less, it is about something else. */
const MIN_COVERAGE = 0.8
/** The score of a title that contains the complete query, relative to the best conversation's score. See docs/retrieval.md. */
const WORTH = 0.5

/** Adds the scores of titles and reorders the rows. The parts of a score still add up to it. */
export async function addTitleScores<Row extends RankedConversation>(
  store: HistoryReader,
  rows: Row[],
  { words }: Query,
  wordWeights: readonly number[],
): Promise<Row[]> {
  const best = rows[0]?.score ?? 0
  const top = rows.slice(0, MAX_TITLED)
  const contained = containedWords(await store.titles(top.map(({ ref }) => ref)), words)
  const weighed = top.map((row, i) => {
    const share = coverage(wordWeights, contained[i]!)
    if (share < MIN_COVERAGE) return row
    const value = WORTH * best * share
    return { ...row, score: row.score + value, parts: [...row.parts, { name: "title" as const, value }] }
  })
  // Sorting is stable, so equal rows keep their order.
  return [...weighed, ...rows.slice(MAX_TITLED)].sort((a, b) => b.score - a.score)
}
