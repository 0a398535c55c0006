import type { Kind } from "../core/conversation.ts"
import { isDexError } from "../core/error.ts"
import { messageText } from "../core/format.ts"
import { formatRef, type Ref } from "../core/ref.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../store/history/store.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import { matchTexts, type TextMatch } from "../store/index/snippets.ts"
import type { Term } from "../store/index/terms.ts"
import { coverage, coverageOfRarest, isBelowFloor, wordWeights } from "./floor.ts"
import { createRowFolding } from "./fold.ts"
import type { RankEvidence } from "./fuse.ts"
import type { VectorSearch } from "./hybrid.ts"
import { findPassage, type ShownPassage } from "./passage.ts"
import { planQuery, type QueryPlan } from "./plan.ts"
import { isOneTerm, phrasesOf, type Query } from "./query.ts"
import {
  addTitleScores,
  type RankedConversation,
  type RankedMessage,
  type Ranking,
  rank,
  type ScorePart,
} from "./rank.ts"
import type { RerankOptions } from "./rerank.ts"
import { canMatch, type Filters, indexWithout, type Scope, scopeOf, withoutHidden } from "./scope.ts"

export type SearchInput = Filters & {
  query: Query
  /** One row per conversation, ranked by its best messages, or one row per message. */
  by: "conversation" | "message"
  /** If set, the search also uses vectors. */
  meaning?: VectorSearch
  /** If set, a model reorders the best rows. */
  rerank?: RerankOptions
  limit: number
  offset: number
  /**
   * True for output that people read: each row shows a passage that a person or an agent wrote, if there is one, otherwise the
   * best message. A conversation and its subagents share a row.
   */
  prose?: boolean
}

export type SearchHit = {
  /** The conversation that contains the best message. */
  row: ConversationRow
  /** Set for a subagent that is shown in the row of the conversation that started it. */
  parent?: ConversationRow
  /** The number of the shown message. `message` is undefined if the conversation has no messages. */
  number: number
  message?: StoredMessage
  score: number
  /** The parts of the score, which add up to it. */
  parts: ScorePart[]
  evidence: RankEvidence
  snippet: string
  /** The number of other good messages in this conversation and in those that share its row. */
  more: number
}

export type SkippedHit = { ref: Ref; number: number; score: number; reason: SkipReason }
export type SkipReason = "filter" | "floor" | "duplicate" | "folded" | "not_top_k"

export type SearchOutcome = {
  hits: SearchHit[]
  /** Candidates that are not among the hits, best first, with the reason for each. */
  skipped: SkippedHit[]
  candidates: number
  /** The number of matching messages. */
  total: number
  total_is_at_least: boolean
  /** The number of conversations by kind, if the query is one word or phrase. */
  kinds?: Partial<Record<Kind, number>>
  /** `some` if none of the best messages contains all the words. */
  matched: "all" | "some"
  /**
   * How the search was done. `hybrid`: by words and by vectors. `scan`: without an index, by reading the history, newest first,
   * until the time was up.
   */
  mode: "lexical" | "hybrid" | "scan"
  /** True if a model reordered the best rows. */
  reranked: boolean
  /** The reasons why the search did not use everything that is configured. Empty if it did. */
  degraded: string[]
  /** False while the index lacks some of the history. */
  index_is_current: boolean
  /** True if the index is damaged, so that the history was read instead. */
  index_is_damaged: boolean
  /** Set for a scan: how many conversations were read, and how many exist. */
  scanned?: { conversations: number; of: number }
  hidden_private: number
  /** The share of the query, or of a long query's rarest words, that the best message contains, from 0 to 1. */
  coverage?: number
  /** How the work was limited if the words are very common. */
  plan?: QueryPlan
}

const NO_RESULTS: SearchOutcome = {
  hits: [],
  skipped: [],
  candidates: 0,
  total: 0,
  total_is_at_least: false,
  matched: "all",
  mode: "lexical",
  reranked: false,
  degraded: [],
  index_is_current: true,
  index_is_damaged: false,
  hidden_private: 0,
}

export async function searchHistory(
  store: HistoryReader,
  index: SearchIndex | undefined,
  input: SearchInput,
): Promise<SearchOutcome> {
  const { query } = input
  if (query.terms.length === 0) return NO_RESULTS
  const scope = await scopeOf(store, input)
  if (scope === undefined) return NO_RESULTS
  if (!index) return canMatch(scope.filters) ? withoutIndex(store, scope, input, false) : NO_RESULTS
  try {
    const hidden_private = await countHidden(index, query, scope)
    if (!canMatch(scope.filters)) return { ...NO_RESULTS, hidden_private }
    const visible = await indexWithout(store, index, scope.filters.excludedProjects)
    return { ...(await withIndex(withoutHidden(store, scope.filters), visible, scope, input)), hidden_private }
  } catch (error) {
    if (!isDexError(error) || error.code !== "index_damaged") throw error
    return withoutIndex(store, scope, input, true)
  }
}

async function withoutIndex(
  store: HistoryReader,
  scope: Scope,
  input: SearchInput,
  isDamaged: boolean,
): Promise<SearchOutcome> {
  const { scanHistory } = await import("./scan.ts")
  const scanned = await scanHistory(store, input.query, input, scope.filters)
  const degraded =
    input.meaning || input.rerank ? ["Search by meaning and reranking need the index. `dex sync` builds it."] : []
  return { ...NO_RESULTS, ...scanned, degraded, index_is_current: false, index_is_damaged: isDamaged }
}

async function withIndex(
  store: HistoryReader,
  index: SearchIndex,
  scope: Scope,
  input: SearchInput,
): Promise<SearchOutcome> {
  const { query } = input
  await index.countAhead?.(termsOf(query))
  const lexical = await rank(index, query, scope.filters)
  const { plan } = lexical
  const weights = await wordWeights(index, query)
  const { hybrid, rows, reranked, degraded } = await allRows(store, index, lexical, scope, input, weights)
  const shown = await presentRows(store, index, rows, input, scope, weights, hybrid?.isNear === true)
  const counted = shown.isTooWeak
    ? { total: 0, total_is_at_least: false }
    : await countMatches(index, input, scope, plan)
  return {
    ...NO_RESULTS,
    ...counted,
    hits: shown.hits,
    skipped: shown.skipped,
    candidates: rows.length,
    matched: shown.matched,
    coverage: shown.coverage,
    index_is_current: !(await index.isBehind(store)),
    plan,
    mode: hybrid?.fused ? "hybrid" : "lexical",
    reranked,
    degraded,
  }
}

/** All terms whose frequency a search needs. */
function termsOf({ terms, pairs, required, words }: Query): Term[] {
  return [...terms, ...pairs, ...required, ...words.map((word) => ({ words: word }))]
}

type Row = RankedConversation & Partial<RankEvidence>

/** The rows found by words, improved by vectors and a reranker if these are configured. */
async function allRows(
  store: HistoryReader,
  index: SearchIndex,
  lexical: Ranking,
  scope: Scope,
  input: SearchInput,
  wordWeights: readonly number[],
) {
  const { query, meaning, rerank } = input
  const hybrid =
    meaning &&
    (await (
      await import("./hybrid.ts")
    ).addVectorResults(index, lexical, { ...scope.filters, ...phrasesOf(query) }, meaning, () =>
      coverageOfBest(store, index, lexical, query),
    ))
  const { messages, conversations } = hybrid?.fused ?? lexical
  const rows: Row[] =
    input.by === "message"
      ? messages.filter((hit) => hit.number > 0).map(rowOf)
      : await addTitleScores(store, conversations, query, wordWeights)
  const degraded = [...(hybrid?.degraded ?? [])]
  if (!rerank) return { hybrid, rows, reranked: false, degraded }
  const reranking = await (await import("./rerank.ts")).rerankTop(store, rows, rerank)
  if (reranking.degraded !== undefined) degraded.push(reranking.degraded)
  return { hybrid, rows: reranking.rows, reranked: reranking.reranked, degraded }
}

/** The number of best rows that are read to compute the coverage. */
const MAX_ROWS_FOR_COVERAGE = 10

/** The share of the query that the best conversations contain, from 0 to 1. */
export async function coverageOfBest(
  store: HistoryReader,
  index: SearchIndex,
  { conversations }: Pick<Ranking, "conversations">,
  query: Query,
): Promise<number> {
  const { textMatches } = await readRows(store, conversations.slice(0, 2 * MAX_ROWS_FOR_COVERAGE), {
    query,
    limit: MAX_ROWS_FOR_COVERAGE,
    offset: 0,
    by: "conversation",
  })
  const weights = await wordWeights(index, query)
  return textMatches.reduce((most, { contains }) => Math.max(most, coverage(weights, contains)), 0)
}

function rowOf(message: RankedMessage & Partial<RankEvidence>): Row {
  const { ref, score, parts, number: _, at: __, ...evidence } = message
  return { ref, score, parts, best: message, others: [], ...evidence }
}

async function countMatches(index: SearchIndex, { query, by }: SearchInput, { filters }: Scope, plan: QueryPlan) {
  const filter = { ...filters, ...phrasesOf(query), match: plan.match }
  return by === "message" || !isOneTerm(query) ? index.count(filter) : index.countConversations(filter)
}

async function countHidden(index: SearchIndex, query: Query, { hidden }: Scope): Promise<number> {
  if (!hidden) return 0
  const { match } = await planQuery(index, query)
  return (await index.count({ ...hidden, ...phrasesOf(query), match })).total
}

/**
 * Reads the best rows and their snippets. If even the best contain too little of the query, keeps only rows that vectors found,
 * or none if no message is near.
 */
async function presentRows(
  store: HistoryReader,
  index: SearchIndex,
  rows: Row[],
  input: SearchInput,
  { filters }: Scope,
  weights: readonly number[],
  isNear: boolean,
) {
  const findSharedRow = input.prose ? createRowFolding(store, filters) : undefined
  const shown = await readRows(store, rows, input, findSharedRow)
  const { textMatches, read, skipped } = shown
  const bestCoverageOf = (matches: TextMatch[]) =>
    matches.reduce((most, { contains }) => Math.max(most, coverageOfRarest(weights, contains)), 0)
  let bestCoverage = bestCoverageOf(textMatches)
  // A shared row shows only its best message, but all of its messages count in deciding whether anything was found.
  if (isBelowFloor(input.query, bestCoverage))
    bestCoverage = Math.max(bestCoverage, bestCoverageOf(await shown.matchFoldedRows()))
  const matched = textMatches.some(({ contains }) => contains.every(Boolean)) ? ("all" as const) : ("some" as const)
  const common = { isTooWeak: false, matched, coverage: bestCoverage }
  if (read.length === 0 || !isBelowFloor(input.query, bestCoverage))
    return { ...common, hits: await hitsOf(store, index, shown, input, weights), skipped }
  const nearRows = isNear ? rows.filter((row) => row.rank_source !== "lexical") : []
  const weakHits = rows
    .filter((row) => !nearRows.includes(row))
    .map((row) => ({ ...toSkipped(row), reason: "floor" as const }))
  if (nearRows.length === 0)
    return { ...common, hits: [], skipped: weakHits, isTooWeak: true, matched: "some" as const }
  const near = await readRows(store, nearRows, input, findSharedRow)
  return {
    ...common,
    hits: await hitsOf(store, index, near, input, weights),
    skipped: [...near.skipped, ...weakHits],
    matched: "some" as const,
  }
}

type ReadRow = NonNullable<Awaited<ReturnType<typeof readBest>>>
type ReadRows = Awaited<ReturnType<typeof readRows>>

/** Returns the hits. With `prose`, each shows a readable passage if there is one. */
async function hitsOf(
  store: HistoryReader,
  index: SearchIndex,
  { read, textMatches }: ReadRows,
  { offset, query, tools, prose = false }: SearchInput,
  weights: readonly number[],
): Promise<SearchHit[]> {
  const hits: SearchHit[] = []
  for (const [i, { hit, matches }] of read.entries()) {
    if (i < offset) continue
    // A document shows the section that was found. A conversation may show any of its messages.
    const numbers = hit.row.kind === "document" ? [] : matches
    const { snippet, contains } = textMatches[i]!
    const otherMatches = { ref: hit.row.ref, numbers, bestCoverage: coverage(weights, contains) }
    // If the search is limited to certain tools, show the tool's call instead of prose.
    const isProse = prose && tools === undefined
    const passage =
      isProse && hit.message && (await findPassage(store, index, hit.message, otherMatches, { query, weights }))
    hits.push({ ...hit, snippet, ...(passage && passageFields(passage)) })
  }
  return hits
}

function passageFields({ number, message, snippet }: ShownPassage): ShownPassage {
  return { number, message, snippet }
}

async function readRows(
  store: HistoryReader,
  rows: Row[],
  { query, limit, offset, by }: Pick<SearchInput, "query" | "limit" | "offset" | "by">,
  findSharedRow?: ReturnType<typeof createRowFolding>,
) {
  const texts = new Set<string>()
  const read: ReadRow[] = []
  const folded: Row[] = []
  const leaders = new Map<string, ReadRow>()
  const skipped: SkippedHit[] = []
  await store.readAhead?.(rows.slice(0, offset + limit).map(({ ref, best }) => ({ ...ref, number: numberOf(best) })))
  for (const row of rows) {
    if (read.length >= offset + limit) {
      skipped.push({ ...toSkipped(row), reason: "not_top_k" })
      continue
    }
    const conversation = await store.conversation(row.ref)
    if (!conversation) continue // The conversation was forgotten since it was indexed.
    const sharedRow = await findSharedRow?.(conversation)
    const leader = sharedRow && by === "conversation" ? leaders.get(sharedRow.name) : undefined
    if (leader) {
      leader.hit.more += 1 + row.others.length
      folded.push(row)
      skipped.push({ ...toSkipped(row), reason: "folded" })
      continue
    }
    const found = await readBest(store, row, conversation)
    if (!found) continue
    if (texts.has(found.text)) {
      skipped.push({ ...toSkipped(row), reason: "duplicate" })
      continue
    }
    texts.add(found.text)
    if (sharedRow?.parent) found.hit.parent = sharedRow.parent
    read.push(found)
    if (sharedRow) leaders.set(sharedRow.name, found)
  }
  const matchRows = (found: ReadRow[]) =>
    matchTexts(
      found.map(({ text }) => text),
      [...query.terms, ...query.required],
      query.words,
      query.required,
    )
  const matchFoldedRows = async () => {
    const others = await Promise.all(
      folded.map(async (row) => {
        const conversation = await store.conversation(row.ref)
        return conversation && (await readBest(store, row, conversation))
      }),
    )
    return matchRows(others.filter((found) => found !== undefined))
  }
  return { read, textMatches: matchRows(read), matchFoldedRows, skipped }
}

function toSkipped({ ref, best, score }: RankedConversation): Omit<SkippedHit, "reason"> {
  return { ref, number: best.number, score }
}

async function readBest(store: HistoryReader, row: Row, conversation: ConversationRow) {
  const { ref, best, score, parts, others, rank_source = "lexical", score_lex, score_vec } = row
  const number = numberOf(best)
  const [message] = await store.messages(ref, [number])
  if (!message && best.number > 0) return undefined
  const text = message ? messageText(message, "full") : (conversation.title?.text ?? formatRef(ref))
  const evidence: RankEvidence = {
    rank_source,
    // Without vectors, a row's score is its score by words.
    score_lex: score_lex ?? (rank_source === "lexical" ? scoreByWords(row) : undefined),
    score_vec,
  }
  const hit: Omit<SearchHit, "snippet"> = {
    row: conversation,
    number,
    score,
    parts,
    evidence,
    more: others.length,
    message,
  }
  return { hit, text, matches: others.map((other) => other.number) }
}

/** If the title matched, show the first message. */
function numberOf({ number }: RankedConversation["best"]): number {
  return Math.max(1, number)
}

function scoreByWords({ score, parts }: RankedConversation): number {
  return score - parts.reduce((sum, part) => sum + (part.name === "rerank" ? part.value : 0), 0)
}
