import { createHash } from "node:crypto"
import { besideOf, formatRef, type Ref } from "../core/ref.ts"
import type { HistoryReader } from "../store/history/store.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import type { CommitQuestion } from "./commit-questions.ts"
import { parseQuery, type Query } from "./query.ts"
import type { RankWeights } from "./rank.ts"
import { searchHistory } from "./search.ts"

/** Where questions are asked: a masked history, its index, and the project that asks. */
export type Searched = { store: HistoryReader; index: SearchIndex; inside: string }

/** One question's answer: at which place its conversation came (1 is the best), and whether anything came at all. */
export type QuestionRank = { rank?: number; silent: boolean }

export type Figures = { n: number; hit_at_1: number; hit_at_5: number; mrr: number; silent: number }

/** What a default search shows. */
const SHOWN = 10

export async function askQuestion(
  { store, index, inside }: Searched,
  question: CommitQuestion,
  weights: RankWeights,
  excludedConversations: Ref[] = [],
): Promise<QuestionRank> {
  const query = queryOf(question)
  const input = { query, inside, weights, excludedConversations, by: "conversation" as const, limit: SHOWN, offset: 0 }
  const { hits } = await searchHistory(store, index, input)
  const rank = goldRank(
    question,
    hits.map(({ row }) => row.ref),
  )
  return { silent: hits.length === 0, ...(rank !== undefined && { rank }) }
}

/** The place of the first of a question's conversations. */
export function goldRank({ gold }: CommitQuestion, refs: Ref[]): number | undefined {
  const names = new Set(gold.map(formatRef))
  const at = refs.findIndex((ref) => names.has(formatRef(ref)))
  return at < 0 ? undefined : at + 1
}

/** A subject's words: what looks like a phrase, a filter or an exclusion in it was not meant as one. */
export function queryOf({ subject }: CommitQuestion): Query {
  return parseQuery(subject.replaceAll('"', " ").replace(/(^|\s)-+(?=\S)/g, "$1"), () => false)
}

/** What also holds the words of a conversation: its parent, and the subagents and forks of both. */
export async function relativesOf(store: HistoryReader, gold: Ref[]): Promise<Ref[]> {
  const parents: Ref[] = []
  for (const ref of gold) {
    const parent = (await store.conversation(ref))?.parent
    if (parent) parents.push(besideOf(ref, parent.id))
  }
  return store.family([...gold, ...parents])
}

export function figuresOf(answers: QuestionRank[]): Figures {
  const share = (holds: (answer: QuestionRank) => boolean) => meanOf(answers.map((answer) => Number(holds(answer))))
  return {
    n: answers.length,
    hit_at_1: share(({ rank }) => rank === 1),
    hit_at_5: share(({ rank }) => rank !== undefined && rank <= 5),
    mrr: meanOf(answers.map(({ rank }) => (rank === undefined ? 0 : 1 / rank))),
    silent: share(({ silent }) => silent),
  }
}

export function meanOf(values: number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
}

/** Where a share of n questions may lie in truth, 95 times of 100 (Wilson's interval). */
export function intervalOf(share: number, n: number): { low: number; high: number } {
  if (n === 0) return { low: 0, high: 1 }
  const z = 1.96
  const middle = share + (z * z) / (2 * n)
  const reach = z * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n))
  const whole = 1 + (z * z) / n
  return { low: Math.max(0, (middle - reach) / whole), high: Math.min(1, (middle + reach) / whole) }
}

/** Weights are fitted on one half of the questions only, so that the other can say what they are worth. */
export function isFittedOn({ hash }: CommitQuestion): boolean {
  return createHash("sha256").update(hash).digest()[0]! % 2 === 0
}
