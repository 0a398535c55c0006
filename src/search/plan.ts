import type { SearchIndex } from "../store/index/search-index.ts"
import type { Term } from "../store/index/terms.ts"
import type { Query } from "./query.ts"

/**
 * The index lookups for a query. FTS5 reads every message that contains any of the words twice: once to find out how rare each
 * word is, and once to score it. If that would be hundreds of thousands of messages, dex limits the work, and the answer says so.
 */
export type QueryPlan = {
  /** Empty if there is nothing to look up. */
  match: Term[]
  pairs: Term[]
  /** Words that occur nearly everywhere, and pairs of them. They add no messages, but count in the score. */
  common: { term: Term; name: "words" | "pairs"; weight: number }[]
  /** Set if only about this many of the newest messages were searched. */
  newest?: number
}

/** The number of messages up to which everything is searched. */
const MAX_EXACT = 80_000
/** The most messages that are scored beyond that: if some word is rare, and if every word is common. */
const MAX_SCORED = 200_000
const MAX_SCORED_COMMON = 25_000
/**
 * The factor for the budgets if a reader may not see what other people wrote. Their messages are read too, and their number must
 * not be measurable.
 */
const PARTIAL_VIEW_FACTOR = 1 / 3
/** The share of messages above which a word is common: it says little compared with a rarer one. */
const MIN_COMMON_SHARE = 0.1
/** The number of words, rarest first, that are looked up if all are common. */
const MAX_COMMON_WORDS = 2

export async function planQuery(index: SearchIndex, { terms, pairs, required }: Query): Promise<QueryPlan> {
  const all = terms.length > 0 ? terms : required
  const fullPlan: QueryPlan = { match: all, pairs, common: [] }
  const { messages } = await index.sizes([])
  const budgetFactor = index.leavesOut === "others" ? PARTIAL_VIEW_FACTOR : 1
  if (all.length * messages <= MAX_EXACT * budgetFactor) return fullPlan
  const { shares } = await index.sizes(all)
  const share = new Map(all.map((term, i) => [term, shares[i]!]))
  const cost = (list: Term[]) => list.reduce((sum, term) => sum + share.get(term)!, 0) * messages
  if (cost(all) <= MAX_EXACT * budgetFactor) return fullPlan
  const rarestFirst = [...all].sort((a, b) => share.get(a)! - share.get(b)!)
  const rare = rarestFirst.filter(
    (term, i) => share.get(term)! <= MIN_COMMON_SHARE && cost(rarestFirst.slice(0, i + 1)) <= MAX_SCORED * budgetFactor,
  )
  const hasRareWord = rare.some((term) => share.get(term)! > 0)
  if (rare.length === all.length) return fullPlan
  const chosen = hasRareWord
    ? rare
    : rarestFirst.filter((term) => share.get(term)! > MIN_COMMON_SHARE).slice(0, MAX_COMMON_WORDS)
  const common = all.filter((term) => !rare.includes(term))
  const rest = all.filter((term) => !chosen.includes(term))
  const [rarePairs, commonPairs] = split(pairs, (pair) => !common.some((term) => containsWord(pair, term)))
  const pairShares = await index.sizes(commonPairs)
  const plan: QueryPlan = {
    match: chosen,
    pairs: rarePairs,
    common: [
      ...rest.map((term) => ({ term, name: "words" as const, weight: rarity(share.get(term)!) })),
      ...commonPairs.map((term, i) => {
        const least = 0.5 / Math.max(1, pairShares.sample)
        return { term, name: "pairs" as const, weight: rarity(Math.max(pairShares.shares[i]!, least)) }
      }),
    ],
  }
  if (hasRareWord || cost(chosen) <= MAX_SCORED_COMMON * budgetFactor) return plan
  return { ...plan, newest: Math.floor((messages * MAX_SCORED_COMMON * budgetFactor) / cost(chosen)) }
}

/** The bm25 score of a word that occurs once in an ordinary message. */
function rarity(share: number): number {
  return Math.max(0, Math.log((1 - share) / share))
}

function split<T>(list: T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [list.filter(isFirst), list.filter((item) => !isFirst(item))]
}

/** Whether the pair contains this word. A prefix is not a word of the pair. */
function containsWord(pair: Term, { words, prefix }: Term): boolean {
  return !prefix && pair.words.split(" ").includes(words)
}
