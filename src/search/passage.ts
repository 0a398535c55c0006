import type { Part } from "../core/conversation.ts"
import { messageText } from "../core/format.ts"
import { proseOf } from "../core/prose.ts"
import type { Ref } from "../core/ref.ts"
import type { HistoryReader, StoredMessage } from "../store/history/store.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import { matchTexts } from "../store/index/snippets.ts"
import { coverage } from "./floor.ts"
import type { Query } from "./query.ts"

/** The passage that shows why a conversation was found. */
export type ShownPassage = { number: number; message: StoredMessage; snippet: string }

export type PassageQuery = { query: Query; weights: readonly number[] }
/** The other matching messages, best first, and the share of the question that the best message's complete text contains. */
export type OtherMatches = { ref: Ref; numbers: readonly number[]; bestCoverage: number }

/** The maximum number of matching messages to read. */
const MAX_MATCHES = 12
/** Prose is worth showing only if its coverage is at least this share of the best message's coverage. */
const MIN_COVERAGE_SHARE = 0.5
/** The maximum number of messages to search for prose if no matching message has any. The index rules some of them out. */
const MAX_MESSAGES = 400

/**
 * Finds the passage of prose that contains most of the question, in the best message if its prose contains enough, otherwise in
 * other messages of the conversation. Returns undefined if there is only tool output, JSON or code.
 */
export async function findPassage(
  store: HistoryReader,
  index: Pick<SearchIndex, "unspoken"> | undefined,
  best: StoredMessage,
  matches: OtherMatches,
  passageQuery: PassageQuery,
): Promise<ShownPassage | undefined> {
  const bestPassage = bestOf([best], passageQuery)
  if (
    (bestPassage && bestPassage.coverage >= matches.bestCoverage * MIN_COVERAGE_SHARE) ||
    matches.numbers.length === 0
  )
    return bestPassage
  const words = passageQuery.query.words.map((word) => ({ words: word }))
  const messagesAmong = async (numbers: number[]) => {
    const unspoken = await index?.unspoken(matches.ref, numbers, words)
    const remaining = numbers.filter((number) => !unspoken?.has(number))
    return remaining.length === 0 ? [] : store.messages(matches.ref, remaining)
  }
  const others = await messagesAmong(matches.numbers.slice(0, MAX_MATCHES))
  const passage =
    others.length === 0 ? bestPassage : bestOf([best, ...orderByNumbers(others, matches.numbers)], passageQuery)
  if (passage) return passage
  const allNumbers = (await store.versions(matches.ref)).map(({ number }) => number).slice(0, MAX_MESSAGES)
  return bestOf(await messagesAmong(allNumbers), passageQuery)
}

/**
 * Returns the passage that contains most of the query. If two contain equally much, prefers what was said to thinking and
 * summaries, and then the first passage.
 */
function bestOf(
  messages: readonly StoredMessage[],
  { query, weights }: PassageQuery,
): (ShownPassage & { coverage: number }) | undefined {
  const beginnings = query.words.map((word) => word.slice(0, STEM_CHARS))
  const candidates = messages.flatMap((message) =>
    [isSpoken, isAside].flatMap((isWanted, place) => {
      const text = proseIn(message, (part) => isWanted(part) && hasOneOf(part.text, beginnings))
      return text === "" ? [] : [{ message, text, place }]
    }),
  )
  if (candidates.length === 0) return undefined
  const textMatches = matchTexts(
    candidates.map(({ text }) => text),
    [...query.terms, ...query.required],
    query.words,
    query.required,
  )
  const hasPhrases = containPhrases(
    candidates.map(({ text }) => text),
    query,
  )
  const passages = candidates.flatMap(({ message, place }, i) => {
    const { snippet, contains } = textMatches[i]!
    if (!contains.includes(true) || !hasPhrases[i]) return []
    return [{ number: message.number, message, snippet, coverage: coverage(weights, contains), place }]
  })
  return passages.sort((a, b) => b.coverage - a.coverage || a.place - b.place)[0]
}

/** Returns for each text whether it contains all quoted phrases. A passage without them would not show what was found. */
function containPhrases(texts: string[], { required }: Query): boolean[] {
  if (required.length === 0) return texts.map(() => true)
  const phrases = required.map(({ words }) => words)
  return matchTexts(texts, required, phrases, required).map(({ contains }) => contains.every(Boolean))
}

/** The number of first letters that all forms of a word share. A text without them need not be searched. */
const STEM_CHARS = 3

function hasOneOf(text: string, beginnings: readonly string[]): boolean {
  const lower = text.toLowerCase()
  return beginnings.some((letters) => lower.includes(letters))
}

const isSpoken = (part: Part) => part.type === "text" && part.origin !== "injected"
const isAside = (part: Part) => part.type === "thinking" || part.type === "summary"

function proseIn(message: StoredMessage, isWanted: (part: Part) => boolean): string {
  const parts = message.parts.filter(isWanted).map((part) => ({ ...part, text: proseOf(part.text) }))
  return messageText({ parts: parts.filter(({ text }) => text !== "") }, "full")
}

function orderByNumbers(messages: StoredMessage[], numbers: readonly number[]): StoredMessage[] {
  return messages.toSorted((a, b) => numbers.indexOf(a.number) - numbers.indexOf(b.number))
}
