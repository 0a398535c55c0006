import type { Db } from "../sqlite/database.ts"
import { COLUMN_VALUES, type Column } from "./fields.ts"
import { type IndexScope, leavesOut } from "./index-scope.ts"
import { expressionOf, type Term } from "./terms.ts"

// Whoever may see a part of an index gets the numbers of an index that contains that part only: a score tells how often a word
// occurs as exactly as a count does. FTS5 scores by all of its rows. So each term is asked for by itself, its frequency in a
// message is worked out from FTS5's score, and the score is made again from the statistics of the part.

/** What FTS5 ranks by, of the messages in a scope. */
export type ScopeStatistics = {
  /** Estimated from the sample, unless that is all of them. */
  messages: number
  /** Messages of the newest conversations, which stand for all. */
  sample: ReadonlySet<number>
  /** The mean number of words of a message. */
  length: number
}

const SAMPLE = 4_000
const MEASURED = 1_000
const CONVERSATIONS_AT_ONCE = 50
/** FTS5's own: see the source of its bm25. */
const [K1, B, LEAST_RARITY] = [1.2, 0.75, 1e-6]
/** Frequencies are sums of column weights, which have two decimals. */
const EXACT = 1e6

const known = new WeakMap<IndexScope, ScopeStatistics>()

/** Undefined where the scope leaves nothing out: the index's own statistics are right then. */
export function statisticsOf(db: Db, scope: IndexScope | undefined): ScopeStatistics | undefined {
  if (!scope || !leavesOut(db, scope)) return undefined
  const found = known.get(scope) ?? sampled(db, scope)
  known.set(scope, found)
  return found
}

function sampled(db: Db, { ids }: IndexScope): ScopeStatistics {
  const docs: number[] = []
  let looked = 0
  while (docs.length < SAMPLE && looked < ids.length) {
    const some = ids.slice(Math.max(0, ids.length - looked - CONVERSATIONS_AT_ONCE), ids.length - looked)
    docs.push(...(db.prepare(DOCS_OF).pluck().all(JSON.stringify(some)) as number[]))
    looked += some.length
  }
  const lengths = lengthsOf(db, docs.slice(0, MEASURED))
  const words = lengths.values().reduce((sum, length) => sum + length, 0)
  return {
    messages: looked === 0 ? 0 : Math.round((docs.length / looked) * ids.length),
    sample: new Set(docs),
    length: words / Math.max(1, lengths.size),
  }
}

const DOCS_OF = `select id from doc where conversation_id in (select value from json_each(?)) order by conversation_id desc, number`

/** How many words each of these documents has. */
function lengthsOf(db: Db, docs: readonly number[]): Map<number, number> {
  const rows = db.prepare(SIZES).raw().all(JSON.stringify(docs)) as [number, Buffer][]
  return new Map(rows.map(([id, sizes]) => [id, numbersIn(sizes).reduce((sum, size) => sum + size, 0)]))
}

const SIZES = "select id, sz from words_docsize where id in (select value from json_each(?))"

/** SQLite's numbers of variable length. */
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

export type ScopedTerms = {
  terms: Term[]
  /** Which columns are looked at, as FTS5 names them. */
  text: string
  weights: Record<Column, number>
  /** Conditions on `doc d` that leave only the scope, with their values. */
  inScope: { sql: string; values: Record<string, unknown> }
  /** How often each term occurs in the scope, where not all of it is looked at. */
  shares?: readonly number[]
  limit: number
}

/** Scores the documents for which `isWanted`, and gives the best of them, in no order. */
export function scopedScores(
  db: Db,
  { messages, length }: ScopeStatistics,
  { terms, text, weights, inScope, shares, limit }: ScopedTerms,
  isWanted: (doc: number) => boolean,
): Map<number, number> {
  const all = totalsOf(db)
  const held = db.prepare("select count(*) from words where words match ?").pluck()
  const scored = db
    .prepare(
      `select words.rowid, -bm25(words, ${COLUMN_VALUES}, 0.0) from words join doc d on d.id = words.rowid where words match @match and ${inScope.sql}`,
    )
    .raw()
  const found = terms.map((term, i) => {
    const match = `${text} : ${expressionOf(term)}`
    const rows = scored.all({ match, ...weights, ...inScope.values }) as [number, number][]
    const rarityInAll = rows.length === 0 ? 1 : rarity(all.messages, held.get(match) as number)
    return { rows, rarityInAll, rarity: rarity(messages, shares ? shares[i]! * messages : rows.length) }
  })
  const rough = new Map<number, number>()
  for (const one of found)
    for (const [doc, score] of one.rows)
      if (isWanted(doc)) rough.set(doc, (rough.get(doc) ?? 0) + (score / one.rarityInAll) * one.rarity)
  // These scores still know the mean length of all messages. It moves a message by a place or two, so twice as many are scored again.
  const best = [...rough].sort(([, a], [, b]) => b - a).slice(0, 2 * limit)
  const lengths = lengthsOf(
    db,
    best.map(([doc]) => doc),
  )
  const scores = new Map(best.map(([doc]) => [doc, 0]))
  for (const one of found)
    for (const [doc, score] of one.rows) {
      const before = scores.get(doc)
      if (before === undefined) continue
      const words = lengths.get(doc) ?? 0
      const share = score / one.rarityInAll
      const frequency = Math.round(((share * norm(words, all.length)) / (K1 + 1 - share)) * EXACT) / EXACT
      scores.set(doc, before + (one.rarity * frequency * (K1 + 1)) / (frequency + norm(words, length)))
    }
  return scores
}

function norm(words: number, mean: number): number {
  return K1 * (1 - B + (B * words) / Math.max(1e-9, mean))
}

function rarity(messages: number, holding: number): number {
  const value = Math.log((messages - holding + 0.5) / (holding + 0.5))
  return value > 0 ? value : LEAST_RARITY // also where an estimate says that more hold it than there are
}

/** What FTS5 keeps of all its rows: how many there are, then the words in each column. */
function totalsOf(db: Db): { messages: number; length: number } {
  const record = db.prepare("select block from words_data where id = 1").pluck().get() as Buffer | undefined
  const [messages = 0, ...words] = record ? numbersIn(record) : []
  return { messages, length: words.reduce((sum, size) => sum + size, 0) / Math.max(1, messages) }
}
