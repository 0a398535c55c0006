import type { Db } from "../sqlite/database.ts"
import { rowQuery, tupleQuery, valueQuery } from "../sqlite/typed-query.ts"
import { areSumsCurrent, indexDamage } from "./blocks.ts"
import { COLUMN_VALUES, type Column } from "./fields.ts"
import { excludesAny, type IndexScope, type ScopedPart } from "./index-scope.ts"
import {
  BOUNDS_SQL,
  boundsOf,
  HIT_COLUMNS,
  type IndexHit,
  type IndexQuery,
  type IndexSizes,
  type PreparedQuery,
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
    if (!statisticsOf(db, scope)) return undefined
    const nth = valueQuery(db, NTH_IN_SCOPE, "integer").get(JSON.stringify(scope.ids), newest - 1)
    return nth ?? Number.MAX_SAFE_INTEGER
  },
}

const NTH_IN_SCOPE =
  "select id from doc where +conversation_id in (select value from json_each(?)) order by id limit 1 offset cast(? as integer)"

/** Returns undefined if the user may see everything. */
function findInScope(db: Db, query: IndexQuery, { match, values }: PreparedQuery): IndexHit[] | undefined {
  const statistics = statisticsOf(db, query.scope)
  if (!statistics) return undefined
  const terms = [...query.match, ...(query.required ?? [])]
  const { from: _, to: __, ...scope } = boundsOf(db, { scope: query.scope! })
  const isUnfiltered = Object.keys(query).every((key) => NON_FILTERS.includes(key as keyof IndexQuery))
  const wantedDocs = isUnfiltered ? undefined : new Set(valueQuery(db, MATCHING, "integer").all({ match, ...values }))
  const request = {
    ...{ terms, weights: query.weights, limit: query.limit },
    bounds: { from: null, to: null, ...scope, highest: values.highest },
    shares: query.newest === undefined ? undefined : sizesIn(db, terms, statistics).shares,
  }
  const scores = scopedScores(db, statistics, request, (doc) => wantedDocs?.has(doc) ?? true)
  const docs = [...scores.keys()]
  const sql = HITS[areSumsCurrent(db) ? "checked" : "older"]
  const rows = rowQuery(db, sql, HIT_COLUMNS).all(JSON.stringify(docs))
  if (rows.some(({ bad }) => bad === 1)) throw indexDamage("a row changed on disk")
  checkDocs(db, docs)
  const hits = rows.map((row) => toHit({ ...row, score: scores.get(row.doc)! }))
  return hits.sort(byScore).slice(0, query.limit)
}

/** Fields that do not filter. With only these, every message in the scope that contains a term is wanted. */
const NON_FILTERS: (keyof IndexQuery)[] = ["match", "weights", "scope", "newest", "limit"]

/** Sorts hits in the same order as FIND in query.ts. */
function byScore(a: IndexHit, b: IndexHit): number {
  return (
    b.score - a.score ||
    (b.at ?? Number.NEGATIVE_INFINITY) - (a.at ?? Number.NEGATIVE_INFINITY) ||
    (a.ref.id < b.ref.id ? -1 : a.ref.id > b.ref.id ? 1 : a.number - b.number)
  )
}

function sizesIn(db: Db, terms: Term[], { messages, sample, shares }: ScopeStatistics): IndexSizes {
  const shareOf = (term: Term): number => {
    const match = expressionOf(term)
    const share = shares.get(match) ?? valueQuery(db, IN_SAMPLE, "integer").get({ match, ...sample })! / sample.messages
    shares.set(match, share)
    return share
  }
  return { messages, sample: sample.messages, shares: terms.map((term) => (sample.messages === 0 ? 0 : shareOf(term))) }
}

const IN_SAMPLE = `select count(*) from words join doc d on d.id = words.rowid where words match @match
  and words.rowid between cast(@first as integer) and cast(@last as integer)
  and d.conversation_id in (select value from json_each(@conversations)) and @messages > 0`
const SCORES_SQL = `select words.rowid, -bm25(words, ${COLUMN_VALUES}, 0.0) from words join doc d on d.id = words.rowid
  where words match @match and ${BOUNDS_SQL}`
const MATCHING = `select words.rowid from words join doc d on d.id = words.rowid where words match @match and ${BOUNDS_SQL}`
const hitsSql = (IS_BAD: string) => `select d.id as doc, c.source, c.native_id, d.number, d.at, ${IS_BAD} as bad
  from doc d left join words_docsize z on z.id = d.id left join conversation c on c.id = d.conversation_id
  where d.id in (select value from json_each(?))`
const HITS = { checked: hitsSql(IS_DAMAGED_SIZE), older: hitsSql("0") }

/** The statistics that FTS5 ranks by, for the messages in a scope. */
type ScopeStatistics = {
  /** Estimated from the sample, unless the sample includes all messages. */
  messages: number
  /** The newest conversations, whose messages are the sample. */
  sample: { messages: number; conversations: string; first: number; last: number }
  /** Cached shares of terms in the sample, because a search needs the same terms several times. */
  shares: Map<string, number>
  /** The mean number of words per message. */
  length: number
}

/** The number of messages in the sample, and how many of them are measured for the mean length. */
const SAMPLE_SIZE = 4_000
const MEASURED_MESSAGES = 1_000
const CONVERSATIONS_AT_ONCE = 50
/** The constants of FTS5's bm25, from its source. */
const [K1, B, MIN_RARITY] = [1.2, 0.75, 1e-6]
/** The precision of frequencies, which are sums of column weights with two decimals. */
const PRECISION = 1e6

const statisticsCache = new WeakMap<IndexScope, ScopeStatistics>()

/** Returns undefined if the scope excludes nothing, because the index's own statistics are then correct. */
function statisticsOf(db: Db, scope: IndexScope | undefined): ScopeStatistics | undefined {
  if (!scope || !excludesAny(db, scope)) return undefined
  const statistics = statisticsCache.get(scope) ?? sampleStatistics(db, scope)
  statisticsCache.set(scope, statistics)
  return statistics
}

function sampleStatistics(db: Db, { ids }: IndexScope): ScopeStatistics {
  const docs: number[] = []
  let sampledCount = 0
  while (docs.length < SAMPLE_SIZE && sampledCount < ids.length) {
    const batch = ids.slice(Math.max(0, ids.length - sampledCount - CONVERSATIONS_AT_ONCE), ids.length - sampledCount)
    docs.push(...valueQuery(db, DOCS_OF, "integer").all(JSON.stringify(batch)))
    sampledCount += batch.length
  }
  const lengths = lengthsOf(db, docs.slice(0, MEASURED_MESSAGES))
  const words = lengths.values().reduce((sum, length) => sum + length, 0)
  return {
    messages: sampledCount === 0 ? 0 : Math.round((docs.length / sampledCount) * ids.length),
    sample: {
      messages: docs.length,
      conversations: JSON.stringify(ids.slice(Math.max(0, ids.length - sampledCount))),
      first: docs.reduce((least, doc) => Math.min(least, doc), Number.MAX_SAFE_INTEGER),
      last: docs.reduce((most, doc) => Math.max(most, doc), Number.MIN_SAFE_INTEGER),
    },
    shares: new Map(),
    length: words / Math.max(1, lengths.size),
  }
}

const DOCS_OF = `select id from doc where conversation_id in (select value from json_each(?)) order by conversation_id desc, number`

/** Returns the number of words in each of these documents. */
function lengthsOf(db: Db, docs: readonly number[]): Map<number, number> {
  const rows = tupleQuery(db, SIZES_SQL, ["integer", "blob"]).all(JSON.stringify(docs))
  return new Map(rows.map(([id, sizes]) => [id, numbersIn(sizes).reduce((sum, size) => sum + size, 0)]))
}

const SIZES_SQL = "select id, sz from words_docsize where id in (select value from json_each(?))"

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
  const all = totalsOf(db)
  const matching = valueQuery(db, "select count(*) from words where words match ?", "integer")
  const scored = tupleQuery(db, SCORES_SQL, ["integer", "real"])
  const scoredTerms = terms.map((term, i) => {
    const match = `${TEXT_FILTER} : ${expressionOf(term)}`
    const rows = scored.all({ match, ...weights, ...bounds })
    const rarityInAll = rows.length === 0 ? 1 : rarity(all.messages, matching.get(match)!)
    return { rows, rarityInAll, rarity: rarity(messages, shares ? shares[i]! * messages : rows.length) }
  })
  const roughScores = new Map<number, number>()
  for (const entry of scoredTerms)
    for (const [doc, score] of entry.rows)
      if (isWanted(doc)) roughScores.set(doc, (roughScores.get(doc) ?? 0) + (score / entry.rarityInAll) * entry.rarity)
  // These scores still use the mean length of all messages. That moves a message by a place or two, so twice as many are
  // rescored.
  const values = Float64Array.from(roughScores.values()).sort()
  const minScore = values[Math.max(0, values.length - 2 * limit)]!
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
      const frequency = Math.round(((share * lengthNorm(words, all.length)) / (K1 + 1 - share)) * PRECISION) / PRECISION
      scores.set(doc, sum + (entry.rarity * frequency * (K1 + 1)) / (frequency + lengthNorm(words, length)))
    }
  return scores
}

function lengthNorm(words: number, mean: number): number {
  return K1 * (1 - B + (B * words) / Math.max(1e-9, mean))
}

function rarity(messages: number, containing: number): number {
  const value = Math.log((messages - containing + 0.5) / (containing + 0.5))
  return value > 0 ? value : MIN_RARITY // an estimate may exceed the number of messages
}

/** Reads FTS5's record of all its rows: their number, then the words in each column. */
function totalsOf(db: Db): { messages: number; length: number } {
  const record = valueQuery(db, "select block from words_data where id = 1", "blob").get()
  const [messages = 0, ...words] = record ? numbersIn(record) : []
  return { messages, length: words.reduce((sum, size) => sum + size, 0) / Math.max(1, messages) }
}
