import type { SearchIndex } from "../store/index/search-index.ts"
import type { Term } from "../store/index/terms.ts"
import type { Query } from "./query.ts"

/**
 * What is asked of the index for a query. FTS5 reads every message that holds any of the words, twice: to learn how
 * rare each word is, and to score. Where that would be hundreds of thousands, the work is bounded, and the answer says so.
 */
export type Plan = {
  /** Empty when there is nothing to look for. */
  match: Term[]
  pairs: Term[]
  /** Words that stand nearly everywhere, and pairs of them: they bring no message into the list, but count in it. */
  common: { term: Term; name: "words" | "pairs"; weight: number }[]
  /** Only about so many of the newest messages were looked at. */
  newest?: number
}

/** Up to here everything is looked at as it is. */
const EXACT = 80_000
/** Beyond it: messages that may be scored where some word is telling, and where every word is common. */
const BUDGET = 200_000
const COMMON_BUDGET = 25_000
/** Of whoever may see a part of an index, every message of the others is read too, and how many those are must not show. */
const PART = 1 / 3
/** A word in more than this share of the messages tells little beside one that is not. */
const COMMON = 0.1
/** Of common words only, so many are looked for: the rarest of them. */
const MOST_COMMON = 2

export async function planQuery(index: SearchIndex, { terms, pairs, required }: Query): Promise<Plan> {
  const all = terms.length > 0 ? terms : required
  const exact: Plan = { match: all, pairs, common: [] }
  const { messages } = await index.sizes([])
  const room = index.leavesOut ? PART : 1
  if (all.length * messages <= EXACT * room) return exact
  const { shares } = await index.sizes(all)
  const share = new Map(all.map((term, i) => [term, shares[i]!]))
  const cost = (kept: Term[]) => kept.reduce((sum, term) => sum + share.get(term)!, 0) * messages
  if (cost(all) <= EXACT * room) return exact
  const rarestFirst = [...all].sort((a, b) => share.get(a)! - share.get(b)!)
  const telling = rarestFirst.filter(
    (term, i) => share.get(term)! <= COMMON && cost(rarestFirst.slice(0, i + 1)) <= BUDGET * room,
  )
  const isTold = telling.some((term) => share.get(term)! > 0)
  if (telling.length === all.length) return exact
  const kept = isTold ? telling : rarestFirst.filter((term) => share.get(term)! > COMMON).slice(0, MOST_COMMON)
  const common = all.filter((term) => !telling.includes(term))
  const rest = all.filter((term) => !kept.includes(term))
  const [rarePairs, commonPairs] = split(pairs, (pair) => !common.some((term) => holdsWord(pair, term)))
  const pairShares = await index.sizes(commonPairs)
  const plan: Plan = {
    match: kept,
    pairs: rarePairs,
    common: [
      ...rest.map((term) => ({ term, name: "words" as const, weight: rarity(share.get(term)!) })),
      ...commonPairs.map((term, i) => {
        const least = 0.5 / Math.max(1, pairShares.sample)
        return { term, name: "pairs" as const, weight: rarity(Math.max(pairShares.shares[i]!, least)) }
      }),
    ],
  }
  if (isTold || cost(kept) <= COMMON_BUDGET * room) return plan
  return { ...plan, newest: Math.floor((messages * COMMON_BUDGET * room) / cost(kept)) }
}

/** What bm25 gives a word that stands once in an ordinary message. */
function rarity(share: number): number {
  return Math.max(0, Math.log((1 - share) / share))
}

function split<T>(list: T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [list.filter(isFirst), list.filter((item) => !isFirst(item))]
}

/** A word that only begins so is another one. */
function holdsWord(pair: Term, { words, prefix }: Term): boolean {
  return !prefix && pair.words.split(" ").includes(words)
}
