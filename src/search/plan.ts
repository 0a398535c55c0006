import type { SearchIndex } from "../store/index/search-index.ts"
import type { Term } from "../store/index/terms.ts"
import type { Query } from "./query.ts"

/**
 * The index lookups for a query. FTS5 reads each matching message twice: once to find out how rare each word is, and once to
 * score the message. If hundreds of thousands of messages match, dex limits the work, and the answer says so.
 */
export type QueryPlan = {
  /** Empty if there is nothing to look up. */
  match: Term[]
  pairs: Term[]
  /**
   * Terms that are not looked up because they are too common, and pairs that contain one. They find no messages, but count in the
   * score of messages that other terms find.
   */
  common: { term: Term; name: "words" | "pairs"; weight: number }[]
  /** Set if only about this many of the newest messages were searched. */
  newest?: number
}

/** If a lookup reads no more than this many messages, it is not limited. */
const MAX_EXACT = 80_000
/**
 * The maximum number of messages that a limited lookup scores: the first limit applies if some word is rare, the second if every
 * word is common.
 */
const MAX_SCORED = 200_000
const MAX_SCORED_COMMON = 25_000
/**
 * The factor for these limits if a reader may not see what other people wrote. The index reads those messages too, and nobody
 * must be able to measure how many there are.
 */
const PARTIAL_VIEW_FACTOR = 1 / 2
/** A word in more than this share of the messages is common: it says little compared with a rarer one. */
const MIN_COMMON_SHARE = 0.1
/** The number of words, rarest first, that are looked up if all are common. */
const MAX_COMMON_WORDS = 2

export async function planQuery(index: SearchIndex, { terms, pairs, required }: Query): Promise<QueryPlan> {
  const lookupTerms = terms.length > 0 ? terms : required
  const fullPlan: QueryPlan = { match: lookupTerms, pairs, common: [] }
  if (index.isFastForCommonWords) return fullPlan
  const { messages } = await index.sizes([])
  const budgetFactor = index.leavesOut === "others" ? PARTIAL_VIEW_FACTOR : 1
  if (lookupTerms.length * messages <= MAX_EXACT * budgetFactor) return fullPlan
  const { shares } = await index.sizes(lookupTerms)
  const share = new Map(lookupTerms.map((term, i) => [term, shares[i]!]))
  const cost = (list: Term[]) => list.reduce((sum, term) => sum + share.get(term)!, 0) * messages
  if (cost(lookupTerms) <= MAX_EXACT * budgetFactor) return fullPlan
  const rarestFirst = [...lookupTerms].sort((a, b) => share.get(a)! - share.get(b)!)
  const rare = rarestFirst.filter(
    (term, i) => share.get(term)! <= MIN_COMMON_SHARE && cost(rarestFirst.slice(0, i + 1)) <= MAX_SCORED * budgetFactor,
  )
  if (rare.length === lookupTerms.length) return fullPlan
  // A word that is not in the sample may be a mistake, or the one word that matters.
  const hasRareWord =
    rare.some((term) => share.get(term)! > 0) || (rare.length > 0 && (await index.count({ match: rare })).total > 0)
  const chosen = hasRareWord ? rare : rarestFirst.filter((term) => share.get(term)! > 0).slice(0, MAX_COMMON_WORDS)
  const common = lookupTerms.filter((term) => !rare.includes(term))
  const otherTerms = lookupTerms.filter((term) => !chosen.includes(term))
  const [rarePairs, commonPairs] = partition(pairs, (pair) => !common.some((term) => containsWord(pair, term)))
  const pairShares = await index.sizes(commonPairs)
  const minShare = 0.5 / Math.max(1, pairShares.sample)
  const weightOf = (termShare: number) => rarity(Math.max(termShare, minShare))
  const plan: QueryPlan = {
    match: chosen,
    pairs: rarePairs,
    common: [
      ...otherTerms.map((term) => ({ term, name: "words" as const, weight: weightOf(share.get(term)!) })),
      ...commonPairs.map((term, i) => ({ term, name: "pairs" as const, weight: weightOf(pairShares.shares[i]!) })),
    ],
  }
  if (hasRareWord || cost(chosen) <= MAX_SCORED_COMMON * budgetFactor) return plan
  return { ...plan, newest: Math.floor((messages * MAX_SCORED_COMMON * budgetFactor) / cost(chosen)) }
}

/** The bm25 score of a word that occurs once in an ordinary message. */
function rarity(share: number): number {
  return Math.max(0, Math.log((1 - share) / share))
}

function partition<T>(list: T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [list.filter(isFirst), list.filter((item) => !isFirst(item))]
}

/** Returns true if the pair contains this word. A prefix is not a word of the pair. */
function containsWord(pair: Term, { words, prefix }: Term): boolean {
  return !prefix && pair.words.split(" ").includes(words)
}
