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
import { type IndexScope, restrictToScope } from "./index-scope.ts"
import { anyOf, expressionOf, type Term } from "./terms.ts"
import { checkDocs, checkMatching, conversationId, IS_DAMAGED_SIZE, indexedProjectId } from "./twins.ts"
import type { PreparedFilter, VectorFilter } from "./vector-index.ts"

// Queries of the full-text index.

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
  /** Searches only about this many of the newest messages. */
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

/** The number of messages, the size of the sample of newest ones, and the share of the sample that contains each term. */
export type IndexSizes = { messages: number; sample: number; shares: number[] }

/** The number up to which totals are counted; beyond it, they are reported as a lower bound. */
export const COUNT_LIMIT = 10_000
const RELEVANCE = `bm25(words, ${COLUMN_VALUES}, 0.0)`
/** Every column except the tags. */
export const TEXT_FILTER = `{${TEXT_COLUMNS.join(" ")}}`

export function findMessages(db: Db, query: IndexQuery): IndexHit[] {
  const prepared = prepare(db, query)
  if (!prepared) return []
  const { match, terms, isBounded, values } = prepared
  checkBlocks(db, terms)
  if (isBounded) checkMatching(db, match, values.highest)
  const scored = query.scope?.part?.find(db, query, prepared)
  if (scored) return scored
  const sql = (isBounded ? FIND_BOUNDED : FIND)[areSumsCurrent(db) ? "checked" : "older"]
  const rows = rowQuery(db, sql, SCORED_HIT).all({
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
  return new Set(rowsAmong(db, `${TEXT_FILTER} : ${expressionOf(term)}`, docs.map(rowOf)).map(docId))
}

/**
 * Returns the messages of a conversation in which no term occurs in spoken text or thinking, except messages that are not
 * indexed.
 */
export function findUnspoken(db: Db, ref: Ref, numbers: number[], terms: Term[]): Set<number> {
  const id = conversationId(db, ref)
  if (id === undefined) return new Set()
  const docs = rowQuery(db, DOCS_OF, { id: "integer", number: "integer" }).all({ id, numbers: JSON.stringify(numbers) })
  if (docs.length === 0) return new Set()
  const ids = docs.map((doc) => doc.id)
  checkDocs(db, ids)
  checkBlocks(db, terms)
  const spoken = new Set(rowsAmong(db, `${SPOKEN_COLUMNS} : (${anyOf(terms)})`, ids))
  return new Set(docs.filter((doc) => !spoken.has(doc.id)).map(({ number }) => number))
}

const DOCS_OF =
  "select id, number from doc where conversation_id = @id and number in (select value from json_each(@numbers))"

/** The columns with messages between people and agents, and with the agents' thinking. */
const SPOKEN_COLUMNS = `{${(["said", "aside"] satisfies Column[]).join(" ")}}`

function rowsAmong(db: Db, match: string, ids: number[]): number[] {
  const [first, last] = [Math.min(...ids), Math.max(...ids)]
  return last - first <= MAX_SPAN
    ? valueQuery(db, MATCHING_BETWEEN, "integer").all({ match, first, last })
    : valueQuery(db, MATCHING_EACH, "integer").all({ match, docs: JSON.stringify(ids) })
}

const MATCHING_BETWEEN =
  "select rowid from words where words match @match and rowid between cast(@first as integer) and cast(@last as integer)"
const MATCHING_EACH =
  "select words.rowid from json_each(@docs) d cross join words on words.rowid = cast(d.value as integer) where words match @match"

export function countMatches(db: Db, query: IndexFilter): MatchCount {
  const prepared = prepare(db, query)
  if (!prepared) return { total: 0, total_is_at_least: false }
  const { match, terms, isBounded, values } = prepared
  checkBlocks(db, terms)
  if (isBounded) checkMatching(db, match, values.highest)
  const most = COUNT_LIMIT + 1
  const count = isBounded
    ? valueQuery(db, COUNT_BOUNDED, "integer").get({ match, most, ...values })!
    : valueQuery(db, COUNT, "integer").get({ match, most, highest: values.highest })!
  return { total: Math.min(count, COUNT_LIMIT), total_is_at_least: count > COUNT_LIMIT }
}

/** Counts matching messages, and their conversations by kind. */
export function countConversations(db: Db, query: IndexFilter): CountByKind {
  const prepared = prepare(db, query)
  if (!prepared) return { total: 0, total_is_at_least: false, kinds: {} }
  const { match, terms, values } = prepared
  checkBlocks(db, terms)
  checkMatching(db, match, values.highest)
  const rows = rowQuery(db, COUNT_CONVERSATIONS, {
    kind: "integer?",
    messages: "integer",
    conversations: "integer",
  }).all({ match, most: COUNT_LIMIT + 1, ...values })
  const messages = rows.reduce((sum, row) => sum + row.messages, 0)
  const kinds: CountByKind["kinds"] = {}
  for (const { kind, conversations } of rows) {
    const name = INDEXED_KINDS[kind ?? -1]
    if (name) kinds[name] = conversations
  }
  return { total: Math.min(messages, COUNT_LIMIT), total_is_at_least: messages > COUNT_LIMIT, kinds }
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

/** Conditions that are checked row by row; null if there is no condition. */
export function boundsOf(db: Db, query: VectorFilter): PreparedFilter["values"] {
  const chosen = query.conversations && conversationIds(db, query.conversations)
  const excluded = conversationIds(db, query.excludedConversations ?? [])
  const bounds = query.scope ? restrictToScope(db, query.scope, chosen, excluded) : { conversations: chosen, excluded }
  return {
    from: query.from ?? null,
    to: query.to ?? null,
    conversations: bounds.conversations ? JSON.stringify(bounds.conversations) : null,
    excluded: bounds.excluded.length > 0 ? JSON.stringify(bounds.excluded) : null,
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
const SCORED_HIT = { ...HIT_COLUMNS, score: "real" } as const

// The query for hits. Numbers are bound as reals, which FTS5 does not accept as a bound of its scan; hence the casts. Filters by
// time or conversation are checked row by row; the others are words of the index itself, which is faster.
const findSql = (IS_BAD: string) => `select f.rowid as doc, c.source, c.native_id, d.number, d.at, f.score, f.bad from
    (select words.rowid, -${RELEVANCE} as score, ${IS_BAD} as bad from words left join words_docsize z on z.id = words.rowid
      where words match @match and words.rowid <= cast(@highest as integer) order by bad desc, score desc limit @limit) f
  left join doc d on d.id = f.rowid left join conversation c on c.id = d.conversation_id
  order by f.bad desc, f.score desc, d.at desc, c.native_id, d.number`
export const BOUNDS_SQL = `words.rowid <= cast(@highest as integer) and (@from is null or d.at >= @from) and (@to is null or d.at <= @to)
  and (@conversations is null or d.conversation_id in (select value from json_each(@conversations)))
  and (@excluded is null or d.conversation_id not in (select value from json_each(@excluded)))`
const findBoundedSql = (
  IS_BAD: string,
) => `select d.id as doc, c.source, c.native_id, d.number, d.at, -${RELEVANCE} as score, ${IS_BAD} as bad
  from words left join words_docsize z on z.id = words.rowid join doc d on d.id = words.rowid left join conversation c on c.id = d.conversation_id
  where words match @match and ${BOUNDS_SQL} order by bad desc, score desc, d.at desc, c.native_id, d.number limit @limit`
/** The query with and without a check of sizes. An index built by 0.1.0 has no second copies to compare. */
const FIND = { checked: findSql(IS_DAMAGED_SIZE), older: findSql("0") }
const FIND_BOUNDED = { checked: findBoundedSql(IS_DAMAGED_SIZE), older: findBoundedSql("0") }
const COUNT =
  "select count(*) from (select 1 from words where words match @match and rowid <= cast(@highest as integer) limit @most)"
const COUNT_BOUNDED = `select count(*) from (select 1 from words join doc d on d.id = words.rowid where words match @match and ${BOUNDS_SQL} limit @most)`
const COUNT_CONVERSATIONS = `select cast(substr(c.tags, instr(c.tags, '${KIND_TAG}') + length('${KIND_TAG}'), 1) as integer) as kind,
    sum(m.messages) as messages, count(*) as conversations from
  (select conversation_id, count(*) as messages from
    (select d.conversation_id from words join doc d on d.id = words.rowid where words match @match and ${BOUNDS_SQL} limit @most)
    group by conversation_id) m
  left join conversation c on c.id = m.conversation_id group by kind order by kind`

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
  const matching = valueQuery(
    db,
    "select count(*) from words where words match ? and rowid <= cast(? as integer)",
    "integer",
  )
  return {
    messages,
    sample,
    shares: terms.map((term) => matching.get(expressionOf(term), highest)! / Math.max(1, sample)),
  }
}

export function toHit(row: RowOf<typeof SCORED_HIT>): IndexHit {
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
  const all = must.map(clauseText).join(" AND ")
  return not.length > 0 ? `(${all}) NOT (${not.map(clauseText).join(" OR ")})` : all
}

function clauseText({ column, terms }: Clause): string {
  return `${column} : (${anyOf(terms)})`
}

/** Converts a filter to conditions on words and tags. Returns undefined if it can match nothing. */
function clausesOf(db: Db, query: VectorFilter): { must: Clause[]; not: Clause[] } | undefined {
  const text = (term: Term): Clause => ({ column: TEXT_FILTER, terms: [term] })
  const tagged = (tags: string[] | undefined): Clause[] =>
    tags ? [{ column: "tags", terms: tags.map((words) => ({ words })) }] : []
  const must = [
    ...(query.required ?? []).map(text),
    ...tagged(query.sources?.map(sourceTag)),
    ...tagged(query.kinds?.map(kindTag)),
    ...tagged(query.collections?.map(collectionTag)),
    ...tagged(query.roles?.map(roleTag)),
    ...tagged(query.tools?.map(toolTag)),
    ...tagged(query.projects && projectTags(db, query.projects)),
  ]
  const not = [
    ...(query.excluded ?? []).map(text),
    ...tagged(query.excludedKinds?.map(kindTag)),
    ...tagged(query.excludedCollections?.map(collectionTag)),
    ...tagged(query.excludedProjects && projectTags(db, query.excludedProjects)),
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
