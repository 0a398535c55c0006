import type { Db } from "../sqlite/database.ts"
import { rowQuery, tupleQuery, valueQuery } from "../sqlite/typed-query.ts"
import { areSumsCurrent, indexDamage } from "./blocks.ts"
import type { Column } from "./fields.ts"
import {
  excludesAny,
  type IndexScope,
  messagesIn,
  SCOPE_SQL,
  type ScopedPart,
  type ScopeValues,
  scopeValues,
} from "./index-scope.ts"
import {
  BOUNDS_SQL,
  HIT_COLUMNS,
  type IndexHit,
  type IndexQuery,
  type IndexSizes,
  type PreparedQuery,
  queriesFor,
  TEXT_FILTER,
  toHit,
} from "./query.ts"
import { expressionOf, type Term } from "./terms.ts"
import { checkDocs, IS_DAMAGED_SIZE } from "./twins.ts"

// Users who may see only a part of an index get the scores and counts of an index that contains just that part, because a score
// reveals how often a word occurs as precisely as a count does. But FTS5 computes scores from all of its rows. So each term is
// queried separately, its frequency in a message is computed from FTS5's score, and the score is computed again from the
// statistics of the part.

/** Queries an index within a scope. Each function returns undefined if the scope excludes nothing. */
export const SCOPED_PART: ScopedPart = {
  find: findInScope,
  sizes: (db, terms, scope) => {
    const statistics = statisticsOf(db, scope)
    return statistics && sizesIn(db, terms, statistics)
  },
  oldestOfNewest: (db, newest, scope) => {
    const statistics = statisticsOf(db, scope)
    if (!statistics) return undefined
    if (newest <= statistics.sample.messages) return statistics.sample.docs[newest - 1]
    if (scope.docs) return scope.docs[newest - 1] ?? Number.MAX_SAFE_INTEGER
    const nth = valueQuery(db, SELECT_NTH_IN_SCOPE, "integer").get({ ...scopeValues(db, scope), nth: newest - 1 })
    return nth ?? Number.MAX_SAFE_INTEGER
  },
}

const SELECT_NTH_IN_SCOPE = `select d.id from doc d where ${SCOPE_SQL} order by d.id limit 1 offset cast(@nth as integer)`

/** Returns undefined if the user may see everything. */
function findInScope(db: Db, query: IndexQuery, { match, values }: PreparedQuery): IndexHit[] | undefined {
  const statistics = statisticsOf(db, query.scope)
  if (!statistics) return undefined
  const terms = [...query.match, ...(query.required ?? [])]
  const isUnfiltered = Object.keys(query).every((key) => NON_FILTERS.includes(key as keyof IndexQuery))
  const wantedDocs = isUnfiltered
    ? undefined
    : new Set(valueQuery(db, SELECT_MATCHING, "integer").all({ match, ...values }))
  const request = {
    ...{ terms, weights: query.weights, limit: query.limit },
    bounds: { ...UNBOUNDED, ...scopeValues(db, query.scope), highest: values.highest },
    shares: query.newest === undefined ? undefined : sizesIn(db, terms, statistics).shares,
  }
  const scores = scopedScores(db, statistics, request, (doc) => wantedDocs?.has(doc) ?? true)
  const docs = [...scores.keys()]
  const sql = SELECT_HITS[areSumsCurrent(db) ? "checked" : "older"]
  const rows = rowQuery(db, sql, HIT_COLUMNS).all(JSON.stringify(docs))
  if (rows.some(({ bad }) => bad === 1)) throw indexDamage("a row changed on disk")
  checkDocs(db, docs)
  const hits = rows.map((row) => toHit({ ...row, score: scores.get(row.doc)! }))
  return hits.sort(compareHits).slice(0, query.limit)
}

/**
 * The fields of a query that do not filter. If a query has no others, every message in the scope that contains a term is a
 * match.
 */
const NON_FILTERS: (keyof IndexQuery)[] = ["match", "weights", "scope", "newest", "limit"]

/** Sorts hits in the same order as the queries in query.ts. */
export function compareHits(a: IndexHit, b: IndexHit): number {
  return (
    b.score - a.score ||
    (b.at ?? Number.NEGATIVE_INFINITY) - (a.at ?? Number.NEGATIVE_INFINITY) ||
    (a.ref.id < b.ref.id ? -1 : a.ref.id > b.ref.id ? 1 : a.number - b.number)
  )
}

function sizesIn(db: Db, terms: Term[], { messages, sample, shares }: ScopeStatistics): IndexSizes {
  const shareOf = (term: Term): number => {
    const match = expressionOf(term)
    const share =
      shares.get(match) ??
      valueQuery(db, COUNT_IN_SAMPLE, "integer").get({
        match,
        ...UNBOUNDED,
        ...sample.values,
        highest: sample.docs.at(-1)!,
      })! / sample.messages
    shares.set(match, share)
    return share
  }
  return { messages, sample: sample.messages, shares: terms.map((term) => (sample.messages === 0 ? 0 : shareOf(term))) }
}

const UNBOUNDED = { from: null, to: null, conversations: null }
const COUNT_IN_SAMPLE = `select count(*) from words join doc d on d.id = words.rowid where words match @match and ${BOUNDS_SQL}`
const SELECT_MATCHING = `select words.rowid from words join doc d on d.id = words.rowid where words match @match and ${BOUNDS_SQL}`
const hitsSql = (IS_BAD: string) => `select d.id as doc, c.source, c.native_id, d.number, d.at, ${IS_BAD} as bad
  from doc d left join words_docsize z on z.id = d.id left join conversation c on c.id = d.conversation_id
  where d.id in (select value from json_each(?))`
const SELECT_HITS = { checked: hitsSql(IS_DAMAGED_SIZE), older: hitsSql("0") }

/** The statistics that FTS5 ranks by, for the messages in a scope. */
type ScopeStatistics = {
  messages: number
  /** The newest messages. */
  sample: { messages: number; docs: number[]; values: ScopeValues }
  /** Cached shares of terms in the sample, because a search needs the same terms several times. */
  shares: Map<string, number>
  /** The mean number of words per message. */
  length: number
}

/** The least number of messages to sample, if there are as many, and how many of them are measured for the mean length. */
const SAMPLE_SIZE = 4_000
const MEASURED_MESSAGES = 1_000
/** The constants of FTS5's bm25, from its source. */
const [K1, B, MIN_RARITY] = [1.2, 0.75, 1e-6]
/** Frequencies are rounded to a multiple of 1/PRECISION. They are sums of column weights, which have two decimals. */
const PRECISION = 1e6

const statisticsCache = new WeakMap<IndexScope, ScopeStatistics>()

/** Returns undefined if the scope excludes nothing, because the index's own statistics are then correct. */
function statisticsOf(db: Db, scope: IndexScope | undefined): ScopeStatistics | undefined {
  if (!scope || !excludesAny(db, scope)) return undefined
  const statistics = statisticsCache.get(scope) ?? sampleStatistics(db, scope)
  statisticsCache.set(scope, statistics)
  return statistics
}

function sampleStatistics(db: Db, scope: IndexScope): ScopeStatistics {
  const messages = messagesIn(db, scope)
  const values = scopeValues(db, scope)
  const docs =
    scope.docs?.slice(0, SAMPLE_SIZE) ?? valueQuery(db, SELECT_NEWEST, "integer").all({ ...values, most: SAMPLE_SIZE })
  const lengths = lengthsOf(db, docs.slice(0, MEASURED_MESSAGES))
  const wordCount = lengths.values().reduce((sum, length) => sum + length, 0)
  return {
    messages,
    sample: { messages: docs.length, docs, values },
    shares: new Map(),
    length: wordCount / Math.max(1, lengths.size),
  }
}

const SELECT_NEWEST = `select d.id from doc d where ${SCOPE_SQL} order by d.id limit @most`

/** Returns the number of words in each of these documents. */
function lengthsOf(db: Db, docs: readonly number[]): Map<number, number> {
  const rows = tupleQuery(db, SELECT_SIZES, ["integer", "blob"]).all(JSON.stringify(docs))
  return new Map(rows.map(([id, sizes]) => [id, numbersIn(sizes).reduce((sum, size) => sum + size, 0)]))
}

const SELECT_SIZES = "select id, sz from words_docsize where id in (select value from json_each(?))"

/** Decodes SQLite's variable-length integers. */
function numbersIn(bytes: Uint8Array): number[] {
  const numbers: number[] = []
  let number = 0
  for (const byte of bytes) {
    number = number * 128 + (byte & 127)
    if (byte >= 128) continue
    numbers.push(number)
    number = 0
  }
  return numbers
}

type ScopedTerms = {
  terms: Term[]
  weights: Record<Column, number>
  /** The parameters of BOUNDS_SQL, which restrict the query to the scope. */
  bounds: Record<string, unknown>
  /** The share of the scope's messages that contain each term. Set if the query reads only the newest messages. */
  shares?: readonly number[]
  limit: number
}

/** Scores the documents for which `isWanted` is true, and returns the best of them, unsorted. */
function scopedScores(
  db: Db,
  { messages, length }: ScopeStatistics,
  { terms, weights, bounds, shares, limit }: ScopedTerms,
  isWanted: (doc: number) => boolean,
): Map<number, number> {
  const indexTotals = totalsOf(db)
  const countMatching = valueQuery(db, "select count(*) from words where words match ?", "integer")
  const selectScores = tupleQuery(db, queriesFor(db).scores, ["integer", "real", [0, 1]])
  const scoredTerms = terms.map((term, i) => {
    const match = `${TEXT_FILTER} : ${expressionOf(term)}`
    const rows = selectScores.all({ match, ...weights, ...bounds })
    if (rows.some(([, , bad]) => bad === 1)) throw indexDamage("a row changed on disk")
    const rarityInAll = rows.length === 0 ? 1 : rarity(indexTotals.messages, countMatching.get(match)!)
    return { rows, rarityInAll, rarity: rarity(messages, shares ? shares[i]! * messages : rows.length) }
  })
  const roughScores = new Map<number, number>()
  for (const entry of scoredTerms)
    for (const [doc, score] of entry.rows)
      if (isWanted(doc)) roughScores.set(doc, (roughScores.get(doc) ?? 0) + (score / entry.rarityInAll) * entry.rarity)
  // These scores still use the mean length of all messages. That can move a message up or down by a rank or two, so twice as
  // many messages as needed are scored again.
  const sortedScores = Float64Array.from(roughScores.values()).sort()
  const minScore = sortedScores[Math.max(0, sortedScores.length - 2 * limit)]!
  const best = [...roughScores].filter(([, score]) => score >= minScore)
  const lengths = lengthsOf(
    db,
    best.map(([doc]) => doc),
  )
  const scores = new Map(best.map(([doc]) => [doc, 0]))
  for (const entry of scoredTerms)
    for (const [doc, score] of entry.rows) {
      const sum = scores.get(doc)
      if (sum === undefined) continue
      const words = lengths.get(doc) ?? 0
      const share = score / entry.rarityInAll
      const frequency =
        Math.round(((share * lengthNorm(words, indexTotals.length)) / (K1 + 1 - share)) * PRECISION) / PRECISION
      scores.set(doc, sum + (entry.rarity * frequency * (K1 + 1)) / (frequency + lengthNorm(words, length)))
    }
  return scores
}

function lengthNorm(words: number, mean: number): number {
  return K1 * (1 - B + (B * words) / Math.max(1e-9, mean))
}

function rarity(messages: number, containing: number): number {
  const value = Math.log((messages - containing + 0.5) / (containing + 0.5))
  return value > 0 ? value : MIN_RARITY // `containing` is an estimate, which may exceed `messages`
}

/** Reads FTS5's record of all its rows: their number, then the words in each column. */
function totalsOf(db: Db): { messages: number; length: number } {
  const record = valueQuery(db, "select block from words_data where id = 1", "blob").get()
  const [messages = 0, ...words] = record ? numbersIn(record) : []
  return { messages, length: words.reduce((sum, size) => sum + size, 0) / Math.max(1, messages) }
}
