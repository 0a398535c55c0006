import { messageText } from "../core/format.ts"
import { editDistance } from "../core/nearest.ts"
import { isStopword } from "../core/words.ts"
import type { HistoryReader } from "../store/history/store.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import type { WrittenWord } from "../store/index/vocabulary.ts"
import { parseQuery, type Query } from "./query.ts"
import { RANK_WEIGHTS } from "./rank.ts"

/** A typed word that occurs in few or no messages, and the words that dex searched for instead, likeliest first. */
export type ReplacedWord = { typed: string; by: string[]; why: "typo" | "prefix" }

/**
 * Matches the words that dex corrects. It does not correct words with digits, such as hashes, or shorter words, which resemble
 * too many others.
 */
const CORRECTABLE_WORD = /^\p{Ll}{4,64}$/u
/** Matches a last word that may be unfinished. It needs at least three letters. */
const UNFINISHED_WORD = /^\p{Ll}{3,64}$/u
/** The minimum number of letters of a word that may contain two mistakes. Shorter words may contain one. */
const MIN_LENGTH_FOR_TWO_MISTAKES = 8
const MAX_CORRECTIONS = 3
/** The maximum number of words that are tried as completions. */
const MAX_ENDINGS = 8
/** The maximum number of messages that are read to check whether a word occurs outside hidden projects. */
const MAX_TEXTS = 60

/** The index from which replacements are taken, and the limits that apply. */
export type Vocabulary = {
  store: HistoryReader
  index: SearchIndex
  /** Projects whose words are never suggested unless they also occur elsewhere. */
  hidden: string[]
  /** A word that occurs in at most this many messages may be the beginning of a longer word. */
  maxMessages: number
}

/** Corrects words that do not occur, and completes the last word if it is rare. Returns undefined if nothing was replaced. */
export async function correctWords(
  vocabulary: Vocabulary,
  query: Query,
): Promise<{ query: Query; replaced: ReplacedWord[] } | undefined> {
  const replaced: ReplacedWord[] = []
  for (const { word, messages } of await rareWords(vocabulary, query)) {
    const isLast = word === query.words.at(-1)
    const endings = isLast
      ? await firstOccurring(vocabulary, await completionsOf(vocabulary.index, word), MAX_ENDINGS)
      : []
    if (endings.length > 0) replaced.push({ typed: word, by: endings, why: "prefix" })
    if (endings.length > 0 || messages > 0 || !CORRECTABLE_WORD.test(word)) continue
    const by = await firstOccurring(vocabulary, await wordsLike(vocabulary.index, word), MAX_CORRECTIONS)
    if (by.length > 0) replaced.push({ typed: word, by, why: "typo" })
  }
  if (replaced.length === 0) return undefined
  return { query: replaced.reduce(replaceWord, query), replaced }
}

/** Returns the correctable words that occur in at most `maxMessages` messages. */
async function rareWords(
  { index, maxMessages }: Vocabulary,
  { words }: Query,
): Promise<{ word: string; messages: number }[]> {
  const typed = words.filter(
    (word) => (word === words.at(-1) ? UNFINISHED_WORD : CORRECTABLE_WORD).test(word) && !isStopword(word),
  )
  const { shares, sample } = await index.sizes(typed.map((words) => ({ words })))
  const rare = typed.filter((_, i) => shares[i]! * sample <= maxMessages)
  const totals = await Promise.all(rare.map((words) => index.count({ match: [{ words }] })))
  return rare.map((word, i) => ({ word, messages: totals[i]!.total })).filter(({ messages }) => messages <= maxMessages)
}

/** Words that begin with the given letters, most common first. */
export async function completionsOf(index: SearchIndex, word: string): Promise<string[]> {
  const words = await index.words(word)
  return (index.leavesOut ? await visibleWords(index, words) : words)
    .map((one) => one.word)
    .filter((one) => one !== word)
}

/** The maximum number of words offered to a reader who may not see everything. They are taken in alphabetical order. */
const MAX_VISIBLE_WORDS = 200

/**
 * Returns the words that the reader can find, most common first. Counts only messages that the reader may see. Other words do not
 * use up the limit, because that would reveal how many there are.
 */
async function visibleWords<W extends WrittenWord>(index: SearchIndex, words: W[]): Promise<W[]> {
  const sortedWords = words.toSorted((a, b) => (a.word < b.word ? -1 : 1))
  const visible: W[] = []
  for (let at = 0; at < sortedWords.length && visible.length < MAX_VISIBLE_WORDS; at += MAX_VISIBLE_WORDS) {
    const batch = sortedWords.slice(at, at + MAX_VISIBLE_WORDS)
    const totals = await Promise.all(batch.map(({ word }) => index.count({ match: [{ words: word }] })))
    visible.push(...batch.map((one, i) => ({ ...one, spread: totals[i]!.total })).filter(({ spread }) => spread > 0))
  }
  return visible.slice(0, MAX_VISIBLE_WORDS).sort((a, b) => b.spread - a.spread)
}

/** Words that the typed word may be a misspelling of, likeliest first. */
async function wordsLike(index: SearchIndex, word: string): Promise<string[]> {
  const maxMistakes = word.length >= MIN_LENGTH_FOR_TWO_MISTAKES ? 2 : 1
  const letters = lettersOf(word)
  const similarWords = (await index.wordsOfLength(word.length - maxMistakes, word.length + maxMistakes)).flatMap(
    (one) => {
      if (bitsIn(letters ^ lettersOf(one.word)) > 2 * maxMistakes) return []
      const distance = editDistance(word, one.word, maxMistakes)
      return distance > maxMistakes ? [] : [{ ...one, distance }]
    },
  )
  const visibleSimilar = index.leavesOut ? await visibleWords(index, similarWords) : similarWords
  return visibleSimilar.sort((a, b) => compareLikelihood(word, a, b)).map((one) => one.word)
}

type SimilarWord = WrittenWord & { distance: number }

/**
 * Compares candidates: fewer mistakes first, then common words. A word with the typed first letter counts as twice as common,
 * because few people mistype the first letter.
 */
function compareLikelihood(typed: string, a: SimilarWord, b: SimilarWord): number {
  return a.distance - b.distance || weightOf(typed, b) - weightOf(typed, a) || (a.word < b.word ? -1 : 1)
}

function weightOf(typed: string, { word, spread }: SimilarWord): number {
  return spread * (word[0] === typed[0] ? 2 : 1)
}

/** A bit mask of a word's letters. Words whose letters differ by more than the allowed mistakes can explain are not compared. */
function lettersOf(word: string): number {
  let letters = 0
  for (let i = 0; i < word.length; i++) letters |= 1 << (word.charCodeAt(i) & 31)
  return letters
}

function bitsIn(number: number): number {
  let bits = 0
  for (let left = number; left !== 0; left &= left - 1) bits++
  return bits
}

/** Returns the first words that occur outside hidden projects. */
async function firstOccurring(vocabulary: Vocabulary, words: string[], limit: number): Promise<string[]> {
  const occurring: string[] = []
  // If the reader may not see everything, words that only hidden messages contain must not use up this limit.
  const candidates = vocabulary.index.leavesOut ? words : words.slice(0, 2 * limit)
  for (const word of candidates) {
    if (occurring.length === limit) break
    if (await occurs(vocabulary, word)) occurring.push(word)
  }
  return occurring
}

async function occurs({ store, index, hidden }: Vocabulary, word: string): Promise<boolean> {
  const match = [{ words: word }]
  if (hidden.length === 0 && !index.isPart) return (await index.count({ match })).total > 0
  // The index contains only the stem, so the word itself is looked up in the texts.
  const query = { match, weights: RANK_WEIGHTS.columns, limit: MAX_TEXTS, excludedProjects: hidden }
  for (const { ref, number } of await index.find(query)) {
    const [message] = number > 0 ? await store.messages(ref, [number]) : []
    if (message && messageText(message, "full").toLowerCase().includes(word)) return true
  }
  return false
}

/** Replaces the typed word in the query. If the word is only unfinished, the query also keeps searching for it. */
function replaceWord(query: Query, { typed, by, why }: ReplacedWord): Query {
  const replacements = (why === "typo" ? by.slice(0, 1) : [...by, typed]).map((word) => parseQuery(word))
  const isTyped = (words: string) => words === typed
  const first = replacements[0]!
  return {
    ...query,
    terms: [...query.terms.filter(({ words }) => !isTyped(words)), ...replacements.flatMap(({ terms }) => terms)],
    pairs: query.pairs.map((pair) => ({ ...pair, words: replaceInText(pair.words, typed, by[0]!) })),
    words: query.words.map((word) => (isTyped(word) ? first.words[0]! : word)),
    text: replaceInText(query.text, typed, by[0]!),
  }
}

function replaceInText(text: string, typed: string, correction: string): string {
  return text.replaceAll(/\p{L}+/gu, (word) => (word.toLowerCase() === typed ? correction : word))
}
