import type { Kind, Role, SourceId } from "../../core/conversation.ts"
import { type Ref, refFrom } from "../../core/ref.ts"
import type { Db } from "../sqlite/database.ts"
import { type RowOf, rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { areSumsCurrent, checkBlocks, indexDamage } from "./blocks.ts"
import { type DocId, docId, rowOf } from "./doc-id.ts"
import {
  COLUMN_VALUES,
  type Column,
  collectionTag,
  INDEXED_KINDS,
  KIND_TAG,
  kindTag,
  projectTag,
  roleTag,
  sourceTag,
  TEXT_COLUMNS,
  toolTag,
} from "./fields.ts"
import { type IndexScope, SCOPE_SQL, scopeValues } from "./index-scope.ts"
import { anyOf, expressionOf, type Term } from "./terms.ts"
import { checkDocs, conversationId, IS_DAMAGED_DOC, IS_DAMAGED_SIZE, indexedProjectId } from "./twins.ts"
import type { PreparedFilter, VectorFilter } from "./vector-index.ts"

export type IndexQuery = {
  /** At least one of these terms must match. */
  match: Term[]
  /** The weight of a word by who wrote it. */
  weights: Record<Column, number>
  /** All of these terms must match too. */
  required?: Term[]
  excluded?: Term[]
  sources?: SourceId[]
  projects?: string[]
  excludedProjects?: string[]
  kinds?: Kind[]
  excludedKinds?: Kind[]
  collections?: string[]
  excludedCollections?: string[]
  roles?: Role[]
  tools?: string[]
  from?: number
  to?: number
  conversations?: Ref[]
  excludedConversations?: Ref[]
  /** Restricts the query to what the user may see. */
  scope?: IndexScope
  /** Searches only the newest messages, about this many. */
  newest?: number
  limit: number
}

/** Selects messages, without ranking. */
export type IndexFilter = Omit<IndexQuery, "limit" | "weights">

/**
 * A matching message. The number 0 is the conversation's card: its title, branch and the files it changed. Higher scores are
 * better.
 */
export type IndexHit = { doc: DocId; ref: Ref; number: number; at?: number; score: number }

export type MatchCount = { total: number; total_is_at_least: boolean }
export type CountByKind = MatchCount & { kinds: Partial<Record<Kind, number>> }

/** The number of messages, the size of the sample of the newest ones, and the share of the sample that contains each term. */
export type IndexSizes = { messages: number; sample: number; shares: number[] }

/** The number up to which totals are counted; beyond it, they are reported as a lower bound. */
export const COUNT_LIMIT = 10_000
const SCORE = `-bm25(words, ${COLUMN_VALUES}, 0.0)`
/** Every column except the tags. */
export const TEXT_FILTER = `{${TEXT_COLUMNS.join(" ")}}`

export function findMessages(db: Db, query: IndexQuery): IndexHit[] {
  const prepared = prepare(db, query)
  if (!prepared) return []
  const { match, terms, isBounded, values } = prepared
  checkBlocks(db, terms)
  const scored = query.scope?.part?.find(db, query, prepared)
  if (scored) return scored
  const { find, findUnbounded } = queriesFor(db)
  const rows = rowQuery(db, isBounded ? find : findUnbounded, SCORED_HIT_ROW).all({
    match,
    limit: query.limit,
    ...query.weights,
    ...(isBounded ? values : { highest: values.highest }),
  })
  if (rows[0]?.bad === 1) throw indexDamage("a row changed on disk")
  checkDocs(
    db,
    rows.map(({ doc }) => doc),
  )
  return rows.map(toHit)
}

/** If documents are at most this far apart, reading all from the first to the last is faster than looking up each one. */
const MAX_SPAN = 100_000

/** Returns those of the documents that contain the term. */
export function docsContaining(db: Db, term: Term, docs: DocId[]): Set<DocId> {
  if (docs.length === 0) return new Set()
  checkBlocks(db, [term])
  const matching = new Set(matchingRows(db, `${TEXT_FILTER} : ${expressionOf(term)}`, docs.map(rowOf)))
  return new Set(docs.filter((doc) => matching.has(rowOf(doc))))
}

/**
 * Returns the messages of a conversation in which no term occurs in spoken text or thinking, except messages that are not
 * indexed.
 */
export function findUnspoken(db: Db, ref: Ref, numbers: number[], terms: Term[]): Set<number> {
  const id = conversationId(db, ref)
  if (id === undefined) return new Set()
  const docs = rowQuery(db, SELECT_DOCS, { id: "integer", number: "integer" }).all({
    id,
    numbers: JSON.stringify(numbers),
  })
  if (docs.length === 0) return new Set()
  const ids = docs.map((doc) => doc.id)
  checkDocs(db, ids)
  checkBlocks(db, terms)
  const spoken = new Set(matchingRows(db, `${SPOKEN_COLUMNS} : (${anyOf(terms)})`, ids))
  return new Set(docs.filter((doc) => !spoken.has(doc.id)).map(({ number }) => number))
}

const SELECT_DOCS =
  "select id, number from doc where conversation_id = @id and number in (select value from json_each(@numbers))"

/** The columns with what people and agents said, and with asides: thinking, summaries, and text that hooks inserted. */
const SPOKEN_COLUMNS = `{${(["said", "aside"] satisfies Column[]).join(" ")}}`

function matchingRows(db: Db, match: string, ids: number[]): number[] {
  const [first, last] = [Math.min(...ids), Math.max(...ids)]
  return last - first <= MAX_SPAN
    ? valueQuery(db, SELECT_MATCHING_BETWEEN, "integer").all({ match, first, last })
    : valueQuery(db, SELECT_MATCHING_EACH, "integer").all({ match, docs: JSON.stringify(ids) })
}

const SELECT_MATCHING_BETWEEN =
  "select rowid from words where words match @match and rowid between cast(@first as integer) and cast(@last as integer)"
const SELECT_MATCHING_EACH =
  "select words.rowid from json_each(@docs) d cross join words on words.rowid = cast(d.value as integer) where words match @match"

export function countMatches(db: Db, filter: IndexFilter): MatchCount {
  const prepared = prepare(db, filter)
  if (!prepared) return { total: 0, total_is_at_least: false }
  const { match, terms, isBounded, values } = prepared
  checkBlocks(db, terms)
  const maxCount = COUNT_LIMIT + 1
  const query = rowQuery(db, isBounded ? queriesFor(db).count : UNBOUNDED_COUNT_SQL, { count: "integer", bad: [0, 1] })
  const { count, bad } = query.get({
    ...{ match, most: maxCount },
    ...(isBounded ? values : { highest: values.highest }),
  })!
  if (bad === 1) throw indexDamage("a row changed on disk")
  return { total: Math.min(count, COUNT_LIMIT), total_is_at_least: count > COUNT_LIMIT }
}

/** Counts matching messages, and their conversations by kind. */
export function countConversations(db: Db, query: IndexFilter): CountByKind {
  const prepared = prepare(db, query)
  if (!prepared) return { total: 0, total_is_at_least: false, kinds: {} }
  const { match, terms, values } = prepared
  checkBlocks(db, terms)
  const rows = rowQuery(db, queriesFor(db).conversations, {
    kind: "integer?",
    messages: "integer",
    conversations: "integer",
    bad: [0, 1],
  }).all({ match, most: COUNT_LIMIT + 1, ...values })
  if (rows.some(({ bad }) => bad === 1)) throw indexDamage("a row changed on disk")
  const messageCount = rows.reduce((sum, row) => sum + row.messages, 0)
  const kinds: CountByKind["kinds"] = {}
  for (const { kind, conversations } of rows) {
    const name = INDEXED_KINDS[kind ?? -1]
    if (name) kinds[name] = conversations
  }
  return { total: Math.min(messageCount, COUNT_LIMIT), total_is_at_least: messageCount > COUNT_LIMIT, kinds }
}

export type PreparedQuery = NonNullable<ReturnType<typeof prepare>>

/** Returns undefined if a filter can match nothing. */
function prepare(db: Db, query: IndexFilter) {
  const clauses = clausesOf(db, query)
  const bounds = boundsOf(db, query)
  if (!clauses || query.match.length === 0 || bounds.conversations === EMPTY_LIST) return undefined
  const must = [{ column: TEXT_FILTER, terms: query.match }, ...clauses.must]
  const terms = [...must, ...clauses.not].flatMap((clause) => clause.terms)
  const highest = query.newest === undefined ? Number.MAX_SAFE_INTEGER : oldestOfNewest(db, query.newest, query.scope)
  const isBounded = Object.values(bounds).some((value) => value !== null)
  return { match: matchExpression(must, clauses.not), terms, isBounded, values: { ...bounds, highest } }
}

const EMPTY_LIST = "[]"

/** Returns the values of the conditions that are checked row by row; null if there is no condition. */
export function boundsOf(db: Db, query: VectorFilter): PreparedFilter["values"] {
  const chosen = query.conversations && conversationIds(db, query.conversations)
  const excluded = conversationIds(db, query.excludedConversations ?? [])
  return {
    from: query.from ?? null,
    to: query.to ?? null,
    conversations: chosen ? JSON.stringify(chosen) : null,
    ...scopeValues(db, query.scope, excluded),
  }
}

/** Returns the highest id among this many of the newest messages: newer ones have lower ids. */
function oldestOfNewest(db: Db, newest: number, scope?: IndexScope): number {
  const inScope = scope?.part?.oldestOfNewest(db, newest, scope)
  if (inScope !== undefined) return inScope
  return (valueQuery(db, "select min(id) from doc", "integer?").get() ?? 0) + newest - 1
}

/** The columns of a hit. In a damaged index, the message or its conversation may be missing; then `source` is null. */
export const HIT_COLUMNS = {
  doc: "integer",
  source: "text?",
  native_id: "text?",
  number: "integer?",
  at: "integer?",
  bad: [0, 1],
} as const
const SCORED_HIT_ROW = { ...HIT_COLUMNS, score: "real" } as const

// The query for hits. Numbers are bound as reals, which FTS5 does not accept as a bound of its scan; hence the casts. Filters by
// time or conversation are checked row by row; the others are words of the index itself, which is faster.
const findSql = (IS_BAD: string) => `select f.rowid as doc, c.source, c.native_id, d.number, d.at, f.score, f.bad from
    (select words.rowid, ${SCORE} as score, ${IS_BAD} as bad from words left join words_docsize z on z.id = words.rowid
      where words match @match and words.rowid <= cast(@highest as integer) order by bad desc, score desc limit @limit) f
  left join doc d on d.id = f.rowid left join conversation c on c.id = d.conversation_id
  order by f.bad desc, f.score desc, d.at desc, c.native_id, d.number`
const AMONG_SQL =
  "words.rowid <= cast(@highest as integer) and (@docs is null or +words.rowid in (select value from json_each(@docs)))"
const ROW_SQL = `(@from is null or d.at >= @from) and (@to is null or d.at <= @to)
  and (@conversations is null or d.conversation_id in (select value from json_each(@conversations))) and ${SCOPE_SQL}`
/** The condition for a matching document, as `d`. */
export const BOUNDS_SQL = `${AMONG_SQL} and ${ROW_SQL}`

/** The queries whose rows are checked one by one. Damaged rows pass, because one with a wrong time would otherwise be left out. */
function boundedSql(IS_BAD: string, IS_BAD_SIZE: string) {
  const MATCHING = `from words left join doc d on d.id = words.rowid
    where words match @match and ${AMONG_SQL} and (${IS_BAD} or (${ROW_SQL}))`
  return {
    find: `select f.rowid as doc, c.source, c.native_id, d.number, d.at, f.score, f.bad or ${IS_BAD_SIZE} as bad from
        (select words.rowid, ${SCORE} as score, ${IS_BAD} as bad ${MATCHING}) f
      left join words_docsize z on z.id = f.rowid left join doc d on d.id = f.rowid left join conversation c on c.id = d.conversation_id
      order by bad desc, f.score desc, d.at desc, c.native_id, d.number limit @limit`,
    scores: `select words.rowid, ${SCORE}, ${IS_BAD} ${MATCHING}`,
    count: `select count(*) as count, ifnull(max(bad), 0) as bad from (select ${IS_BAD} as bad ${MATCHING} limit @most)`,
    conversations: `select cast(substr(c.tags, instr(c.tags, '${KIND_TAG}') + length('${KIND_TAG}'), 1) as integer) as kind,
        sum(m.messages) as messages, count(*) as conversations, max(m.bad) as bad from
      (select conversation_id, count(*) as messages, max(bad) as bad from
        (select d.conversation_id, ${IS_BAD} as bad ${MATCHING} limit @most) group by conversation_id) m
      left join conversation c on c.id = m.conversation_id group by kind order by kind`,
  }
}

// An index built by 0.1.0 has no second copies to compare.
const BOUNDED_SQL = { checked: boundedSql(IS_DAMAGED_DOC, IS_DAMAGED_SIZE), older: boundedSql("d.id is null", "0") }
const UNBOUNDED_SQL = { checked: findSql(IS_DAMAGED_SIZE), older: findSql("0") }
/** Counts documents without their checksums, so it never finds a damaged one. */
const UNBOUNDED_COUNT_SQL =
  "select count(*) as count, 0 as bad from (select 1 from words where words match @match and rowid <= cast(@highest as integer) limit @most)"

/** The queries for this index. */
export function queriesFor(db: Db) {
  const format = areSumsCurrent(db) ? "checked" : "older"
  return { ...BOUNDED_SQL[format], findUnbounded: UNBOUNDED_SQL[format] }
}

/** The number of newest messages that serve as a sample. */
const SAMPLE_SIZE = 20_000

export function querySizes(db: Db, terms: Term[], scope?: IndexScope): IndexSizes {
  checkBlocks(db, terms)
  const inScope = scope?.part?.sizes(db, terms, scope)
  if (inScope) return inScope
  const messages =
    valueQuery(db, "select (select max(id) from doc) - (select min(id) from doc) + 1", "integer?").get() ?? 0
  const sample = Math.min(messages, SAMPLE_SIZE)
  const highest = oldestOfNewest(db, sample)
  const countMatching = valueQuery(
    db,
    "select count(*) from words where words match ? and rowid <= cast(? as integer)",
    "integer",
  )
  return {
    messages,
    sample,
    shares: terms.map((term) => countMatching.get(expressionOf(term), highest)! / Math.max(1, sample)),
  }
}

export function toHit(row: RowOf<typeof SCORED_HIT_ROW>): IndexHit {
  const { source, native_id, number, score, at } = row
  if (source === null || native_id === null || number === null) throw indexDamage("a row is missing")
  return { doc: docId(row.doc), ref: refFrom(source, native_id), number, score, at: at ?? undefined }
}

function conversationIds(db: Db, refs: Ref[]): number[] {
  return refs.flatMap((ref) => conversationId(db, ref) ?? [])
}

/** Matches any of these terms, in the text or among the tags. */
type Clause = { column: string; terms: Term[] }

function matchExpression(must: Clause[], not: Clause[]): string {
  const required = must.map(clauseText).join(" AND ")
  return not.length > 0 ? `(${required}) NOT (${not.map(clauseText).join(" OR ")})` : required
}

function clauseText({ column, terms }: Clause): string {
  return `${column} : (${anyOf(terms)})`
}

/** Converts a filter to conditions on words and tags. Returns undefined if it can match nothing. */
function clausesOf(db: Db, query: VectorFilter): { must: Clause[]; not: Clause[] } | undefined {
  const textClause = (term: Term): Clause => ({ column: TEXT_FILTER, terms: [term] })
  const tagClauses = (tags: string[] | undefined): Clause[] =>
    tags ? [{ column: "tags", terms: tags.map((words) => ({ words })) }] : []
  const must = [
    ...(query.required ?? []).map(textClause),
    ...tagClauses(query.sources?.map(sourceTag)),
    ...tagClauses(query.kinds?.map(kindTag)),
    ...tagClauses(query.collections?.map(collectionTag)),
    ...tagClauses(query.roles?.map(roleTag)),
    ...tagClauses(query.tools?.map(toolTag)),
    ...tagClauses(query.projects && projectTags(db, query.projects)),
  ]
  const not = [
    ...(query.excluded ?? []).map(textClause),
    ...tagClauses(query.excludedKinds?.map(kindTag)),
    ...tagClauses(query.excludedCollections?.map(collectionTag)),
    ...tagClauses(query.excludedProjects && projectTags(db, query.excludedProjects)),
  ]
  const isEmpty = ({ terms }: Clause) => terms.length === 0
  return must.some(isEmpty) ? undefined : { must, not: not.filter((clause) => !isEmpty(clause)) }
}

/** Returns undefined if the filter can match nothing. */
export function prepareFilter(db: Db, filter: VectorFilter): PreparedFilter | undefined {
  const clauses = clausesOf(db, filter)
  const values = boundsOf(db, filter)
  if (!clauses || values.conversations === EMPTY_LIST) return undefined
  const { must, not } = clauses
  return {
    match: must.length > 0 ? matchExpression(must, not) : undefined,
    not: must.length === 0 && not.length > 0 ? not.map(clauseText).join(" OR ") : undefined,
    values,
  }
}

function projectTags(db: Db, paths: string[]): string[] {
  return paths.flatMap((path) => indexedProjectId(db, path) ?? []).map(projectTag)
}
