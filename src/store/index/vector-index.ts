import { type Ref, refFrom } from "../../core/ref.ts"
import { type Db, inReadTransaction, inTransaction } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { type DocId, docId, rowOf } from "./doc-id.ts"
import { excludesAny, type IndexScope, type ScopeValues } from "./index-scope.ts"
import { PROMPT_FILTER } from "./newest.ts"
import type { IndexFilter, IndexHit } from "./query.ts"
import { checkDocs } from "./twins.ts"
import {
  compactVectors,
  createVectorCache,
  dropOtherVectors,
  evenSample,
  goldenVector,
  missingVectors,
  sampleCosines,
  sampleCosinesOf,
  saveGoldenVector,
  saveVectors,
  scanVectors,
  type VectorHit,
  type VectorStats,
  vectorStats,
} from "./vectors.ts"

/** The vectors of the index's messages. Every method is its own transaction. */
export type VectorIndex = {
  /** One entry per embedder with stored vectors, newest last. With a scope, counts only the vectors in it. */
  stats(scope?: IndexScope): VectorStats[]
  /** The number of all documents, whether or not they have a vector. */
  documents(scope?: IndexScope): number
  /** Returns the messages that this embedder has not processed, newest first. `after` is the last one of the previous call. */
  missing(embedder: string, limit: number, after?: UnembeddedMessage, among?: "prompts"): UnembeddedMessage[]
  /** Returns all messages of a message's conversation, as they are indexed now. */
  conversationOf(message: UnembeddedMessage): UnembeddedMessage[]
  /** Saves vectors. A group is left out if one of its messages changed or was deleted meanwhile. Counts messages. */
  save(embedder: string, groups: EmbeddedGroup[]): { saved: number; gone: number }
  /** Returns the nearest messages by cosine, best first. All filters apply, as in a search by words. */
  scan(embedder: string, query: Float32Array, options: { limit: number; filter: VectorFilter }): IndexHit[]
  /** The centre and the deviation of the cosines between a query and a sample of messages, nearly all of them unrelated. */
  spread(embedder: string, query: Float32Array, scope?: IndexScope): { centre: number; deviation: number; of: number }
  /** Removes the vectors of all embedders except this one, or of all embedders if omitted. */
  drop(keep?: string): void
  /** Frees the space of deleted vectors and returns their number. */
  compact(): number
  golden(embedder: string): Float32Array | undefined
  saveGolden(embedder: string, vector: Float32Array): void
  /**
   * Records that the model with this id now returns different vectors than before. The record is deleted with the model's
   * vectors.
   */
  distrust(embedder: string): void
  isTrusted(embedder: string): boolean
}

/**
 * Messages whose text was embedded together, in windows. Each window's vector belongs to the message that contains most of its
 * words. Without windows, there is nothing to embed.
 */
export type EmbeddedGroup = {
  messages: UnembeddedMessage[]
  windows: { message: UnembeddedMessage; vector: Float32Array }[]
}

/** A message as it was when it was looked up; the number 0 is the conversation's card. */
export type UnembeddedMessage = { doc: DocId; conversation: number; version: number; ref: Ref; number: number }

export type VectorFilter = Omit<IndexFilter, "match" | "newest">

/** A filter in the form that the index needs: FTS5 expressions, and values for `BOUNDS_SQL`. */
export type PreparedFilter = {
  match?: string
  /** Set only if there is no `match`, because FTS5 cannot begin with NOT. */
  not?: string
  values: Bounds
}
type Bounds = ScopeValues & { from: number | null; to: number | null; conversations: string | null }

/** If at most this many messages pass a filter, they are listed before the scan. Otherwise the filter checks the hits. */
const MAX_LISTED = 20_000
const OVERFETCH_FACTOR = 10
const SAMPLE_SIZE = 256

/** `prepare` returns undefined if a filter can match nothing. */
export function openVectors(
  current: () => Db,
  prepare: (filter: VectorFilter) => PreparedFilter | undefined,
): VectorIndex {
  const cache = createVectorCache()
  let scans = 0
  return {
    stats: (scope) => vectorStats(current(), scope && docsIn(current(), scope.others)),
    documents: (scope) => {
      const documentCount = valueQuery(current(), "select count(*) from doc", "integer").get()!
      return scope ? documentCount - docsIn(current(), scope.others).length : documentCount
    },
    missing: (embedder, limit, after, among) =>
      missingMessages(current(), embedder, limit, after, among && PROMPT_FILTER),
    conversationOf: (message) => messagesOf(current(), message),
    save: (embedder, groups) => saveGroups(current(), embedder, groups),
    scan: (embedder, query, { limit, filter }) => {
      const db = current()
      const prepared = prepare(filter)
      if (!prepared) return []
      // Most processes scan only once, so the first scan caches nothing. A second scan means that this is a server.
      const options = scans++ > 0 ? { cache } : {}
      // A vector outside of the scope must not take the place of one in it, even among the candidates.
      const docsOutside = filter.scope && new Set(docsIn(db, filter.scope.others))
      const scan = (k: number, listed?: Set<number>) => {
        const isAllowed = (doc: number) => (listed?.has(doc) ?? true) && !docsOutside?.has(doc)
        return scanVectors(db, embedder, query, {
          k,
          ...options,
          allowed: listed || docsOutside ? isAllowed : undefined,
        })
      }
      const nearest = scanFiltered(db, prepared, limit, scan)
      return inReadTransaction(db, () => hitsOf(db, nearest))
    },
    spread: (embedder, query, scope) => measureSpread(current(), embedder, query, scope),
    drop: (keep) => dropVectors(current(), keep),
    compact: () => compactVectors(current()),
    golden: (embedder) => goldenVector(current(), embedder),
    saveGolden: (embedder, vector) => saveGoldenVector(current(), embedder, vector),
    distrust: (embedder) => {
      const sql = "insert or replace into meta (key, value) values ('distrusted', ?)"
      inTransaction(current(), () => current().prepare(sql).run(embedder))
    },
    isTrusted: (embedder) => distrustedEmbedder(current()) !== embedder,
  }
}

function distrustedEmbedder(db: Db): string | undefined {
  return valueQuery(db, "select value from meta where key = 'distrusted'", "text").get()
}

function dropVectors(db: Db, keep: string | undefined): void {
  inTransaction(db, () => {
    dropOtherVectors(db, keep)
    if (distrustedEmbedder(db) !== keep) db.prepare("delete from meta where key = 'distrusted'").run()
  })
}
const DOC_ROW = {
  conversation: "integer",
  version: "integer",
  source: "text",
  native_id: "text",
  number: "integer",
} as const

function missingMessages(
  db: Db,
  embedder: string,
  limit: number,
  after: UnembeddedMessage | undefined,
  match: string | undefined,
): UnembeddedMessage[] {
  const selectDoc = rowQuery(
    db,
    `select d.conversation_id as conversation, d.version, c.source, c.native_id, d.number
     from doc d join conversation c on c.id = d.conversation_id where d.id = ?`,
    DOC_ROW,
  )
  return missingVectors(db, embedder, limit, after && rowOf(after.doc), match).flatMap((id) => {
    const stored = selectDoc.get(id) // missing if another process deleted it
    if (!stored) return []
    const { source, native_id, ...rest } = stored
    return [{ ...rest, doc: docId(id), ref: refFrom(source, native_id) }]
  })
}

function messagesOf(db: Db, { conversation, ref }: UnembeddedMessage): UnembeddedMessage[] {
  const select = "select id, number, version from doc where conversation_id = ? order by number"
  const rows = rowQuery(db, select, { id: "integer", number: "integer", version: "integer" }).all(conversation)
  return rows.map(({ id, ...rest }) => ({ ...rest, doc: docId(id), conversation, ref }))
}

/** Saves vectors, after checking that each document's number still belongs to the same message. */
function saveGroups(db: Db, embedder: string, groups: EmbeddedGroup[]) {
  const isUnchanged = db
    .prepare("select 1 from doc where id = ? and conversation_id = ? and number = ? and version = ?")
    .pluck()
  return inTransaction(db, () => {
    const unchanged = groups.filter(({ messages }) =>
      messages.every(
        ({ doc, conversation, number, version }) => isUnchanged.get(rowOf(doc), conversation, number, version) === 1,
      ),
    )
    const { saved } = saveVectors(
      db,
      embedder,
      unchanged.map(({ messages, windows }) => ({
        docs: messages.map(({ doc }) => rowOf(doc)),
        vectors: windows.map(({ message, vector }) => ({ doc: rowOf(message.doc), vector })),
      })),
    )
    return { saved, gone: groups.reduce((sum, { messages }) => sum + messages.length, 0) - saved }
  })
}

/**
 * Scans with a filter. If few messages pass the filter, only they are scanned. If many pass, most of the nearest messages pass
 * too, so the filter is applied to the hits. If too few hits are left, all messages that pass are listed and scanned after all.
 */
function scanFiltered(
  db: Db,
  filter: PreparedFilter,
  limit: number,
  scan: (k: number, allowed?: Set<number>) => VectorHit[],
): VectorHit[] {
  if (acceptsAll(filter)) return scan(limit)
  const listedDocs = listPassing(db, filter, MAX_LISTED + 1)
  if (listedDocs.length <= MAX_LISTED) return listedDocs.length === 0 ? [] : scan(limit, new Set(listedDocs))
  const nearest = scan(limit * OVERFETCH_FACTOR)
  const passing = passingAmong(
    db,
    filter,
    nearest.map((hit) => hit.doc),
  )
  const hits = nearest.filter((hit) => passing.has(hit.doc))
  if (hits.length >= limit || nearest.length < limit * OVERFETCH_FACTOR) return hits.slice(0, limit)
  return scan(limit, new Set(listPassing(db, filter, -1)))
}

function acceptsAll({ match, not, values }: PreparedFilter): boolean {
  return match === undefined && not === undefined && Object.values(values).every((value) => value === null)
}

const TIME_CONDITION = "(@from is null or d.at >= @from) and (@to is null or d.at <= @to)"
const BOUNDS_CONDITION = `${TIME_CONDITION} and (@conversations is null or d.conversation_id in (select value from json_each(@conversations)))
  and (@excluded is null or d.conversation_id not in (select value from json_each(@excluded)))`
const MATCH_CONDITION = `(@match is null or exists (select 1 from words where words match @match and rowid = d.id))
  and (@not is null or not exists (select 1 from words where words match @not and rowid = d.id))`

const LIST_BY_CONVERSATION = `select d.id from doc d where d.conversation_id in (select value from json_each(@conversations))
  and ${BOUNDS_CONDITION} and ${MATCH_CONDITION} limit @most`
const LIST_BY_WORDS = `select d.id from words join doc d on d.id = words.rowid
  where words match @match and ${BOUNDS_CONDITION} and @not is null limit @most`
const LIST_ALL = `select d.id from doc d where ${BOUNDS_CONDITION} and ${MATCH_CONDITION} limit @most`
const LIST_PASSING = `select d.id from json_each(@docs) j join doc d on d.id = j.value where ${BOUNDS_CONDITION} and ${MATCH_CONDITION}`

function listPassing(db: Db, { match, not, values }: PreparedFilter, most: number): number[] {
  const sql = values.conversations !== null ? LIST_BY_CONVERSATION : match !== undefined ? LIST_BY_WORDS : LIST_ALL
  return valueQuery(db, sql, "integer").all({ match: match ?? null, not: not ?? null, ...values, most })
}

function passingAmong(db: Db, { match, not, values }: PreparedFilter, docs: number[]): Set<number> {
  const passing = valueQuery(db, LIST_PASSING, "integer").all({
    match: match ?? null,
    not: not ?? null,
    ...values,
    docs: JSON.stringify(docs),
  })
  return new Set(passing)
}
const HIT_ROW = { source: "text", native_id: "text", number: "integer", at: "integer?" } as const

/** Adds refs and times. Hits with equal scores are sorted newest first, then by id. */
function hitsOf(db: Db, vectorHits: VectorHit[]): IndexHit[] {
  const selectHit = rowQuery(
    db,
    "select c.source, c.native_id, d.number, d.at from doc d join conversation c on c.id = d.conversation_id where d.id = ?",
    HIT_ROW,
  )
  const hits = vectorHits.flatMap(({ doc, score }): IndexHit[] => {
    const hitRow = selectHit.get(doc)
    if (!hitRow) return []
    const { source, native_id, number, at } = hitRow
    return [{ doc: docId(doc), ref: refFrom(source, native_id), number, score, at: at ?? undefined }]
  })
  checkDocs(
    db,
    hits.map(({ doc }) => rowOf(doc)),
  )
  return hits.sort(
    (a, b) => b.score - a.score || (b.at ?? 0) - (a.at ?? 0) || compare(a.ref.id, b.ref.id) || a.number - b.number,
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Returns the documents of these conversations, in the order of the conversations and of their messages. */
function docsIn(db: Db, conversations: readonly number[]): number[] {
  const sql = `select d.id from json_each(?) j join doc d on d.conversation_id = j.value order by j.key, d.number`
  return conversations.length === 0 ? [] : valueQuery(db, sql, "integer").all(JSON.stringify(conversations))
}

function idsExcept(db: Db, others: readonly number[]): number[] {
  const sql = "select id from conversation where id not in (select value from json_each(?)) order by id"
  return valueQuery(db, sql, "integer").all(JSON.stringify(others))
}

/** Returns the same index for a user who may see only the scope: every number is as if the index contained nothing else. */
export function scopedVectors(vectors: VectorIndex, scope: IndexScope): VectorIndex {
  return {
    ...vectors,
    stats: () => vectors.stats(scope),
    documents: () => vectors.documents(scope),
    scan: (embedder, query, { limit, filter }) =>
      vectors.scan(embedder, query, { limit, filter: { ...filter, scope } }),
    spread: (embedder, query) => vectors.spread(embedder, query, scope),
  }
}

/**
 * Computes the centre and the deviation of the cosines from medians, so that the few related messages do not widen the spread.
 */
function measureSpread(
  db: Db,
  embedder: string,
  query: Float32Array,
  scope?: IndexScope,
): { centre: number; deviation: number; of: number } {
  const cosines =
    scope && excludesAny(db, scope)
      ? sampleCosinesOf(
          db,
          embedder,
          query,
          SAMPLE_SIZE,
          docsIn(db, evenSample(idsExcept(db, scope.others), SAMPLE_SIZE)),
        )
      : sampleCosines(db, embedder, query, SAMPLE_SIZE)
  const centre = median(cosines)
  const deviation = DEVIATION_FACTOR * median(cosines.map((cosine) => Math.abs(cosine - centre)))
  return { centre, deviation, of: cosines.length }
}

/** The standard deviation of a normal distribution whose median deviation is 1. */
const DEVIATION_FACTOR = 1.4826

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}
