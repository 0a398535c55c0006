import type { Gathered, Pair } from "./gather.ts"
import { termsOfWord, wordsOf } from "./terms.ts"

/** Texts as numbers of words; the most common word is 0. */
export type Corpus = {
  words: string[]
  counts: Float64Array
  passages: Int32Array[]
  pairs: { short: Int32Array; long: Int32Array }[]
}

/** A longer text teaches nothing more than its beginning. */
const MOST_TERMS = 400
/** For the longer side of a pair. */
const MOST_OF_PAIR = 64

/** Leaves out words beyond the `size` most common, or seen fewer than `least` times. */
export function toCorpus(gathered: Gathered[], size: number, least: number): Corpus {
  const places = new Map<string, number>()
  const known = new Map<string, number[]>()
  const seen: number[] = []
  const placesOf = (word: string) => {
    const before = known.get(word)
    if (before) return before
    const now = termsOfWord(word).map((term) => places.get(term) ?? places.set(term, places.size).size - 1)
    known.set(word, now)
    return now
  }
  const numbered = (text: string, most: number, count: boolean) => {
    const terms: number[] = []
    for (const word of wordsOf(text.slice(0, most * 12)))
      for (const place of placesOf(word)) {
        seen[place] = (seen[place] ?? 0) + Number(count)
        terms.push(place)
      }
    return Int32Array.from(terms.slice(0, most))
  }
  const passages = gathered.flatMap((one) => one.passages.map((text) => numbered(text, MOST_TERMS, true)))
  const pairs = gathered.flatMap((one) =>
    one.pairs.map(({ short, long }: Pair) => ({
      short: numbered(short, MOST_OF_PAIR, false),
      long: numbered(long, MOST_OF_PAIR, false),
    })),
  )
  const names = [...places.keys()]
  const kept = names.map((_, place) => place).filter((place) => seen[place]! >= least)
  kept.sort((a, b) => seen[b]! - seen[a]! || a - b)
  kept.length = Math.min(kept.length, size)
  const renumbered = new Int32Array(names.length).fill(-1)
  for (const [to, from] of kept.entries()) renumbered[from] = to
  const keep = (terms: Int32Array) => terms.map((term) => renumbered[term]!).filter((term) => term >= 0)
  return {
    words: kept.map((place) => names[place]!),
    counts: Float64Array.from(kept, (place) => seen[place]!),
    passages: passages.map(keep),
    pairs: pairs
      .map(({ short, long }) => ({ short: keep(short), long: keep(long) }))
      .filter(({ short, long }) => short.length > 0 && long.length > 1),
  }
}
