import type { HistoryReader } from "../store/history/store.ts"
import { wordsHeld } from "../store/index/snippets.ts"
import { coverage } from "./floor.ts"
import type { Query } from "./query.ts"
import type { RankedConversation } from "./rank.ts"

// What is a title worth? Most titles are made of words that stand in messages, where they count like any others. But who
// types words of a title means the conversation that is about them, not one in which a tool printed them.

/** So many of the best conversations are looked at. */
const LOOKED_AT = 60
/** A title that holds less than this of what was asked is about something else. */
const LEAST_COVERAGE = 0.8
/** What a title that holds all of it is worth, in shares of the best conversation's score. See docs/retrieval.md. */
const WORTH = 0.5

/** Conversations, best first, with what their titles are worth; the parts of a score still add up to it. */
export async function addTitles<Row extends RankedConversation>(
  store: HistoryReader,
  rows: Row[],
  { words }: Query,
  wordWeights: readonly number[],
): Promise<Row[]> {
  const best = rows[0]?.score ?? 0
  const looked = rows.slice(0, LOOKED_AT)
  const held = wordsHeld(await store.titles(looked.map(({ ref }) => ref)), words)
  const weighed = looked.map((row, i) => {
    const share = coverage(wordWeights, held[i]!)
    if (share < LEAST_COVERAGE) return row
    const value = WORTH * best * share
    return { ...row, score: row.score + value, parts: [...row.parts, { name: "title" as const, value }] }
  })
  // Equals stay in their order.
  return [...weighed, ...rows.slice(LOOKED_AT)].sort((a, b) => b.score - a.score)
}
