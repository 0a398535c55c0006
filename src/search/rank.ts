import { formatRef, type Ref } from "../core/ref.ts"
import type { HistoryReader } from "../store/history/store.ts"
import { CARD_NUMBER, type Column } from "../store/index/fields.ts"
import type { IndexFilter, IndexHit } from "../store/index/query.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import { containedWords } from "../store/index/snippets.ts"
import { coverage } from "./floor.ts"
import { planQuery, type QueryPlan } from "./plan.ts"
import { phrasesOf, type Query } from "./query.ts"

/** A message that matched. The parts add up to its score. */
export type RankedMessage = IndexHit & { parts: ScorePart[] }
export type ScorePart = {
  name: "words" | "common" | "pairs" | "neighbours" | "others" | "title" | "vector" | "rerank"
  value: number
}

/** A conversation ranked by its messages. `best` is shown; `others` also matched, best first. */
export type RankedConversation = {
  ref: Ref
  score: number
  parts: ScorePart[]
  best: RankedMessage
  others: RankedMessage[]
}

export type Ranking = { messages: RankedMessage[]; conversations: RankedConversation[]; plan: QueryPlan }

/** The maximum number of messages to rank. More would change nothing near the top. */
const MAX_CANDIDATES = 300
/** The maximum number of ranked messages that are looked up for each common word. */
const MAX_LOOKED_UP = 100

const COLUMN_WEIGHTS: Record<Column, number> = { returned: 0.5, said: 2, called: 1.1, aside: 0.85, hidden: 0.5 }
/** The ranking's parameters. Fitted on one half of each evaluation set; see docs/retrieval.md. */
export const RANK_WEIGHTS = {
  /** The weight of a word, by the kind of text that contains it. */
  columns: COLUMN_WEIGHTS,
  /** The score of two adjacent words of the query, as a share of the score of one word. */
  pairs: 0.3,
  /** The share of a hit's score that a neighbouring message receives. */
  neighbours: 0.2,
  /**
   * A conversation's score is the sum of its best messages' scores. Each further message counts this share of the one before.
   */
  decay: 0.5,
  /** The number of best messages that count towards a conversation's score. */
  counted: 8,
}

export async function rank(index: SearchIndex, query: Query, filters: Omit<IndexFilter, "match">): Promise<Ranking> {
  const plan = await planQuery(index, query)
  if (plan.match.length === 0) return { messages: [], conversations: [], plan }
  const scope = {
    ...filters,
    ...phrasesOf(query),
    newest: plan.newest,
    weights: RANK_WEIGHTS.columns,
    limit: MAX_CANDIDATES,
  }
  const hits = new Map<string, RankedMessage>()
  // At once, because a remote index answers both with one request.
  const [words, pairs] = await Promise.all([
    index.find({ ...scope, match: plan.match }),
    plan.pairs.length > 0 ? index.find({ ...scope, match: plan.pairs }) : [],
  ])
  addHits(hits, "words", 1, words)
  addHits(hits, "pairs", RANK_WEIGHTS.pairs, pairs)
  await addCommon(index, hits, plan)
  addNeighbours(hits)
  const messages = [...hits.values()].sort(compareByScore)
  return { messages, conversations: groupByConversation(messages), plan }
}

export function messageRefText({ ref, number }: { ref: Ref; number: number }): string {
  return formatRef({ ...ref, number })
}

function addHits(hits: Map<string, RankedMessage>, name: ScorePart["name"], weight: number, found: IndexHit[]): void {
  for (const hit of found) {
    const existing = hits.get(messageRefText(hit))
    // A message that is not in the list yet has no score for its words, so a pair alone would misrank it.
    if (!existing && name !== "words") continue
    const value = weight * hit.score
    if (existing) addPart(existing, name, value)
    else hits.set(messageRefText(hit), { ...hit, score: value, parts: [{ name, value }] })
  }
}

function addPart(message: RankedMessage, name: ScorePart["name"], value: number): void {
  message.parts.push({ name, value })
  message.score += value
}

/** Adds the scores of common words, which added no messages of their own. */
async function addCommon(index: SearchIndex, hits: Map<string, RankedMessage>, { common }: QueryPlan): Promise<void> {
  const best = [...hits.values()].sort(compareByScore).slice(0, MAX_LOOKED_UP)
  const docs = best.map((hit) => hit.doc)
  for (const { term, name, weight } of common) {
    const containing = await index.containing(term, docs)
    const value = weight * (name === "pairs" ? RANK_WEIGHTS.pairs : 1)
    for (const hit of best) if (containing.has(hit.doc)) addPart(hit, "common", value)
  }
}

function addNeighbours(hits: Map<string, RankedMessage>): void {
  const bonuses: [RankedMessage, number][] = []
  for (const hit of hits.values()) {
    if (hit.number === CARD_NUMBER) continue
    const neighbours = [hit.number - 1, hit.number + 1].filter((number) => number > CARD_NUMBER)
    const value = neighbours.reduce(
      (sum, number) => sum + (hits.get(messageRefText({ ref: hit.ref, number }))?.score ?? 0),
      0,
    )
    if (value > 0) bonuses.push([hit, RANK_WEIGHTS.neighbours * value])
  }
  for (const [hit, value] of bonuses) addPart(hit, "neighbours", value)
}

/** Sorts by score, then newest first, then by ref, so that every run returns the same order. */
export function compareByScore(a: Candidate, b: Candidate): number {
  return (
    b.score - a.score ||
    (b.at ?? 0) - (a.at ?? 0) ||
    compareTexts(formatRef(a.ref), formatRef(b.ref)) ||
    a.number - b.number
  )
}
type Candidate = { ref: Ref; number: number; at?: number; score: number }

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

export function groupByConversation(messages: RankedMessage[]): RankedConversation[] {
  const { decay, counted } = RANK_WEIGHTS
  const groups = Map.groupBy(messages, (message) => formatRef(message.ref))
  const conversations = [...groups.values()].map((group): RankedConversation => {
    const first = group[0]!
    const further = group.slice(1, counted).reduce((sum, message, i) => sum + message.score * decay ** (i + 1), 0)
    const parts: ScorePart[] = [...first.parts, ...(further > 0 ? [{ name: "others" as const, value: further }] : [])]
    // A message is more informative than the conversation's card.
    const best = first.number === CARD_NUMBER ? (group[1] ?? first) : first
    const others = group.filter((message) => message.number !== CARD_NUMBER && message !== best)
    return { ref: first.ref, score: first.score + further, parts, best, others }
  })
  return conversations.sort((a, b) => compareByScore({ ...a.best, score: a.score }, { ...b.best, score: b.score }))
}

// Titles. People who type words of a title usually mean the conversation with that title, not one in which a tool printed
// the same words.

/** The number of best conversations to consider. */
const MAX_TITLED = 60
/** The minimum share of the query that a title must contain; with less, the title is about something else. */
const MIN_COVERAGE = 0.8
/** The score of a title that contains the complete query, relative to the best conversation's score. See docs/retrieval.md. */
const MAX_TITLE_SCORE = 0.5

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
    const value = MAX_TITLE_SCORE * best * share
    return { ...row, score: row.score + value, parts: [...row.parts, { name: "title" as const, value }] }
  })
  // Sorting is stable, so equal rows keep their order.
  return [...weighed, ...rows.slice(MAX_TITLED)].sort((a, b) => b.score - a.score)
}
