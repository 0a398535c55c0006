import { messageText } from "../core/format.ts"
import { formatRef, type Ref } from "../core/ref.ts"
import type { SearchIndex } from "../store/search-index.ts"
import { lookAt } from "../store/snippets.ts"
import type { ConversationRow, Store } from "../store/store.ts"
import { coverage, isBelowFloor, wordWeights } from "./floor.ts"
import type { Plan } from "./plan.ts"
import type { Query } from "./query.ts"
import { type RankedConversation, type RankedMessage, rank, type ScorePart, type Weights } from "./rank.ts"
import { scan } from "./scan.ts"
import { type Filters, type Scope, scopeOf } from "./scope.ts"

export type SearchInput = Filters & {
  query: Query
  /** A row for each conversation by its best messages, or for each message. */
  by: "conversation" | "message"
  weights?: Weights
  limit: number
  offset: number
}

export type SearchHit = {
  row: ConversationRow
  /** The best message, by its number. */
  number: number
  at?: number
  score: number
  /** What the score is made of: these add up to it. */
  parts: ScorePart[]
  snippet: string
  /** Further messages of this conversation among the best ones. */
  more: number
}

export type Skipped = { ref: Ref; number: number; score: number; reason: SkipReason }
export type SkipReason = "filter" | "floor" | "duplicate" | "not_top_k"

export type SearchOutcome = {
  hits: SearchHit[]
  /** Candidates that are not among the hits, best first, and why. */
  skipped: Skipped[]
  candidates: number
  /** Messages that match. */
  total: number
  total_is_at_least: boolean
  /** `some`: none of the best messages holds all the words. */
  matched: "all" | "some"
  /** `scan`: there was no index to ask, so the history itself was read, newest first, as far as the time allowed. */
  mode: "index" | "scan"
  /** False while the index has not yet seen all that is in the history. */
  index_is_current: boolean
  /** For a scan: how many conversations were looked at, and how many there are. */
  scanned?: { conversations: number; of: number }
  hidden_private: number
  /** How much of what was asked the best of the messages holds, from 0 to 1. */
  coverage?: number
  /** How the work was bounded, where the words are very common. */
  plan?: Plan
}

const NOTHING: SearchOutcome = {
  hits: [],
  skipped: [],
  candidates: 0,
  total: 0,
  total_is_at_least: false,
  matched: "all",
  mode: "index",
  index_is_current: true,
  hidden_private: 0,
}

export async function search(store: Store, index: SearchIndex | undefined, input: SearchInput): Promise<SearchOutcome> {
  const { query } = input
  if (query.terms.length === 0) return NOTHING
  const scope = await scopeOf(store, input)
  if (scope === undefined) return NOTHING
  if (!index)
    return { ...NOTHING, ...(await scan(store, query, input, scope.filters.conversations)), index_is_current: false }
  const { messages, conversations, plan } = rank(index, query, scope.filters, input.weights)
  const rows = input.by === "message" ? messages.filter((hit) => hit.number > 0).map(alone) : conversations
  const shown = await present(store, index, rows, input)
  const counted = shown.silent ? { total: 0, total_is_at_least: false } : count(index, query, scope, plan)
  return {
    ...NOTHING,
    ...counted,
    hits: shown.hits,
    skipped: shown.skipped,
    candidates: rows.length,
    matched: shown.matched,
    coverage: shown.coverage,
    index_is_current: !(await index.isBehind(store)),
    hidden_private: hiddenOf(index, query, scope, plan),
    plan,
  }
}

function alone(message: RankedMessage): RankedConversation {
  return { ref: message.ref, score: message.score, parts: message.parts, best: message, more: 0 }
}

function phrasesOf({ required, excluded }: Query) {
  return { ...(required.length > 0 && { required }), ...(excluded.length > 0 && { excluded }) }
}

function count(index: SearchIndex, query: Query, { filters }: Scope, plan: Plan) {
  return index.count({ ...filters, ...phrasesOf(query), match: plan.match })
}

function hiddenOf(index: SearchIndex, query: Query, { filters, hiddenProjects }: Scope, plan: Plan): number {
  if (hiddenProjects.length === 0) return 0
  const { excludedProjects: _, ...rest } = filters
  return index.count({ ...rest, ...phrasesOf(query), projects: hiddenProjects, match: plan.match }).total
}

/** Reads the best rows and shows why they are here; when even the best hold too little of what was asked, none. */
async function present(store: Store, index: SearchIndex, rows: RankedConversation[], input: SearchInput) {
  const { query, limit, offset } = input
  const texts = new Set<string>()
  const read: { hit: Omit<SearchHit, "snippet">; text: string }[] = []
  const skipped: Skipped[] = []
  for (const row of rows) {
    if (read.length >= offset + limit) {
      skipped.push({ ...toSkipped(row), reason: "not_top_k" })
      continue
    }
    const found = await readBest(store, row)
    if (!found) continue // forgotten since it was indexed
    if (texts.has(found.text)) skipped.push({ ...toSkipped(row), reason: "duplicate" })
    else read.push(found)
    texts.add(found.text)
  }
  const match = [...query.terms, ...query.required].join(" OR ")
  const looks = lookAt(
    read.map(({ text }) => text),
    match,
    query.words,
  )
  const weights = wordWeights(index, query)
  const best = looks.reduce((most, { holds }) => Math.max(most, coverage(weights, holds)), 0)
  if (read.length > 0 && isBelowFloor(query, best)) {
    const floored = rows.map((row) => ({ ...toSkipped(row), reason: "floor" as const }))
    return { hits: [], skipped: floored, silent: true, matched: "some" as const, coverage: best }
  }
  const hits = read.map(({ hit }, i) => ({ ...hit, snippet: looks[i]!.snippet })).slice(offset)
  const matched = looks.some(({ holds }) => holds.every(Boolean)) ? ("all" as const) : ("some" as const)
  return { hits, skipped, silent: false, matched, coverage: best }
}

function toSkipped({ ref, best, score }: RankedConversation): Omit<Skipped, "reason"> {
  return { ref, number: best.number, score }
}

async function readBest(store: Store, { ref, best, score, parts, more }: RankedConversation) {
  const row = await store.conversation(ref)
  const number = Math.max(1, best.number)
  const [message] = row ? await store.messages(ref, [number]) : []
  if (!row || (!message && best.number > 0)) return undefined
  const text = message ? messageText(message, "full") : (row.title?.text ?? formatRef(ref))
  return { hit: { row, number, score, parts, more, ...(best.at !== undefined && { at: best.at }) }, text }
}
