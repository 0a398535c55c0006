import { editDistance } from "../core/edit-distance.ts"
import { messageText } from "../core/format.ts"
import { isStopword } from "../core/words.ts"
import type { HistoryReader } from "../store/history/store.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import type { Term } from "../store/index/terms.ts"
import { indexWords } from "../store/index/tokenizer.ts"
import type { IndexWord } from "../store/index/vocabulary.ts"
import { parseQuery, type Query } from "./query.ts"
import { RANK_WEIGHTS } from "./rank.ts"

/** A word that no message contains, or hardly any, and what was looked for in its place, the likeliest first. */
export type Replaced = { typed: string; by: string[]; why: "typo" | "prefix" }

/** Words as people mistype them. Names of one's own, numbers and hashes are not guessed at. */
const TYPED = /^\p{Ll}{4,40}$/u
/** Shorter words have too many neighbours. */
const LEAST_LETTERS = 4
/** From here on two mistakes in one word are believed. */
const TWO_MISTAKES_FROM = 8
/** A word may go on for so many letters beyond its stem. */
const LONGEST_ENDING = 9
/** For each stem some text is read, to see the words behind it. */
const MOST_STEMS = 24
const LIKELIEST = 5
const MANY_TEXTS = 60
const FEW_TEXTS = 3
/** Of a stem that stands in more messages than this, the newest are enough. */
const MANY = 5_000
/** A word in fewer messages may be a mistake itself. */
const ORDINARY = 20
const OFFERED = 3
/** Of words that go on as one begins, so many are looked for. */
const MOST_ENDINGS = 8
/** Beyond this, only words that begin with the same letter are looked through. */
const ALL_LETTERS_UP_TO = 200_000

/** What a guess is made from. */
export type Vocabulary = {
  store: HistoryReader
  index: SearchIndex
  /** Words that occur only in these projects are never offered. */
  hidden: string[]
  /** A word in no more messages than this may be the beginning of a longer one. */
  few: number
  /** When to stop looking. */
  until: number
}

/** What was meant, where some of the words occur nowhere. Undefined where all do, or nothing is like them. */
export async function forgive(
  vocabulary: Vocabulary,
  query: Query,
): Promise<{ query: Query; replaced: Replaced[] } | undefined> {
  const replaced: Replaced[] = []
  for (const { word, messages } of await rareWords(vocabulary, query)) {
    const isLast = word === query.words.at(-1)
    const meant = isLast ? await begun(vocabulary, word) : undefined
    const found = meant ?? (messages === 0 ? await misspelt(vocabulary, word) : undefined)
    if (found) replaced.push(found)
  }
  if (replaced.length === 0) return undefined
  return { query: replaced.reduce(withReplaced, query), replaced }
}

/** Those that stand in a few messages at the most. */
async function rareWords({ index, few }: Vocabulary, { words }: Query): Promise<IndexWordCount[]> {
  const typed = words.filter((word) => TYPED.test(word) && !isStopword(word))
  const { shares, sample } = await index.sizes(typed.map((words) => ({ words })))
  const rare = typed.filter((_, i) => shares[i]! * sample <= few)
  const totals = await Promise.all(rare.map((words) => index.count({ match: [{ words }] })))
  return rare.map((word, i) => ({ word, messages: totals[i]!.total })).filter(({ messages }) => messages <= few)
}

type IndexWordCount = { word: string; messages: number }

/** A word that is still being typed: others begin so, or its stem is shorter than what stands there already. */
async function begun(vocabulary: Vocabulary, word: string): Promise<Replaced | undefined> {
  const [own] = indexWords([word]) // what is found already
  const stems = [...(await vocabulary.index.words(word)), ...(await stemsWithin(vocabulary.index, word))].filter(
    ({ stem }) => stem !== own,
  )
  const words = await wordsBehind(vocabulary, commonest(stems), (one) => one.startsWith(word) && one !== word)
  const by = words.map((one) => one.word).slice(0, MOST_ENDINGS)
  return by.length > 0 ? { typed: word, by, why: "prefix" } : undefined
}

async function stemsWithin(index: SearchIndex, word: string): Promise<IndexWord[]> {
  const stems = await index.words(word.slice(0, LEAST_LETTERS))
  return stems.filter(({ stem }) => word.startsWith(stem.replace(/i$/, "")) && stem.length >= LEAST_LETTERS)
}

async function misspelt(vocabulary: Vocabulary, word: string): Promise<Replaced | undefined> {
  const { index } = vocabulary
  const most = word.length >= TWO_MISTAKES_FROM ? 2 : 1
  const near = async (stems: IndexWord[]) => {
    const words = await wordsBehind(vocabulary, likely(word, stems), (one) => editDistance(word, one, most) <= most)
    return words.map((one) => ({ ...one, at: editDistance(word, one.word, most) }))
  }
  const found = await near(await index.words(word[0]!))
  const isSure = found.some(({ at, messages }) => at === 1 && messages >= ORDINARY)
  // Few mistype the first letter, and looking through all words takes long.
  if (!isSure && (await index.sizes([])).messages <= ALL_LETTERS_UP_TO)
    found.push(...(await near((await index.words("")).filter(({ stem }) => stem[0] !== word[0]))))
  const best = found.toSorted((a, b) => a.at - b.at || b.messages - a.messages)
  const by = [...new Set(best.map((one) => one.word))].slice(0, OFFERED)
  return by.length > 0 ? { typed: word, by, why: "typo" } : undefined
}

function commonest(stems: IndexWord[]): IndexWord[] {
  return stems.toSorted((a, b) => b.messages - a.messages).slice(0, MOST_STEMS)
}

/** Stems of words that may be this one: their letters stand at its beginning, with a mistake at the most. */
function likely(word: string, stems: IndexWord[]): IndexWord[] {
  const near = stems.flatMap(({ stem, messages }) => {
    if (stem.length < 3 || word.length - stem.length > LONGEST_ENDING || stem.length - word.length > 2) return []
    if (!/^\p{L}+$/u.test(stem)) return []
    const root = stem.replace(/i$/, "")
    const at = Math.min(...[-1, 0, 1].map((more) => editDistance(word.slice(0, root.length + more), root, 1)))
    return at > 1 ? [] : [{ stem, messages, at }]
  })
  // Of those that fit, the longest say most.
  return near
    .sort((a, b) => b.stem.length - b.at - (a.stem.length - a.at) || b.messages - a.messages)
    .slice(0, MOST_STEMS)
}

/** The words that people wrote, of these stems, in the order of the stems. The index itself has stems only. */
async function wordsBehind(
  { store, index, hidden, until }: Vocabulary,
  stems: IndexWord[],
  isMeant: (word: string) => boolean,
): Promise<IndexWordCount[]> {
  const found = new Map<string, number>()
  for (const [i, { stem, messages }] of stems.entries()) {
    if (Date.now() > until) break
    const hits = await index.find({
      match: [stemTerm(stem)],
      weights: RANK_WEIGHTS.columns,
      limit: i < LIKELIEST ? MANY_TEXTS : FEW_TEXTS,
      ...(hidden.length > 0 && { excludedProjects: hidden }),
      ...(messages > MANY && { newest: MANY }),
    })
    for (const { ref, number } of hits) {
      const [message] = number > 0 ? await store.messages(ref, [number]) : []
      const text = message ? messageText(message, "full") : ""
      for (const word of new Set(text.toLowerCase().match(/\p{L}+/gu) ?? []))
        if (word.startsWith(stem.slice(0, -1)) && isMeant(word))
          found.set(word, Math.max(messages, found.get(word) ?? 0))
    }
  }
  return [...found].map(([word, messages]) => ({ word, messages })).sort((a, b) => b.messages - a.messages)
}

/** What finds a stem. Some stems have a stem of their own, which is how their words begin. */
function stemTerm(stem: string): Term {
  return indexWords([stem])[0] === stem ? { words: stem } : { words: stem, prefix: true }
}

/** The same query with other words in place of one. */
function withReplaced(query: Query, { typed, by, why }: Replaced): Query {
  const others = (why === "typo" ? by.slice(0, 1) : [...by, typed]).map((word) => parseQuery(word))
  const isTyped = (words: string) => words === typed
  const first = others[0]!
  return {
    ...query,
    terms: [...query.terms.filter(({ words }) => !isTyped(words)), ...others.flatMap(({ terms }) => terms)],
    pairs: query.pairs.map((pair) => ({ ...pair, words: wordByWord(pair.words, typed, by[0]!) })),
    words: query.words.map((word) => (isTyped(word) ? first.words[0]! : word)),
    text: wordByWord(query.text, typed, by[0]!),
  }
}

function wordByWord(text: string, typed: string, meant: string): string {
  return text.replaceAll(/\p{L}+/gu, (word) => (word.toLowerCase() === typed ? meant : word))
}
