import { type Ref, sourceWithOwner } from "../../core/ref.ts"
import { type Db, inTransaction } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { areSumsCurrent, indexDamage } from "./blocks.ts"

// Second copies of values. SQLite does not notice a flipped bit in a row, and a search would then show the wrong message or the
// wrong order. So the rows that a search reads contain their values twice, in a form that SQLite itself can compare quickly,
// because a search may read tens of thousands of rows.

const sumSql = (ROW: string) =>
  `${ROW}id + 3 * ${ROW}conversation_id + 5 * ${ROW}number + 7 * ifnull(${ROW}at, -1) + 9 * ${ROW}version`
/** The sum of a row's columns. A flipped bit always changes it, because each column has an odd factor. */
export const DOC_SUM = sumSql("")
/** The condition for a damaged or missing row of `doc d`. */
export const IS_DAMAGED_DOC = `(d.id is null or d.sum is not (${sumSql("d.")}))`
export const CONVERSATION_TWIN = "id || ' ' || name || ' ' || source || ' ' || native_id"
export const PROJECT_TWIN = "id || ' ' || path"

/**
 * The condition for a damaged size in `words_docsize z`. It is checked for every scored document, not only for the hits, because
 * a damaged size may rank a document so low that it is not among the hits.
 */
export const IS_DAMAGED_SIZE = "z.twin is not z.sz"

/**
 * Adds a second copy of each size. FTS5 stores the sizes of messages, by which it ranks, in a table of its own, to which a
 * generated column can be added.
 */
export function storeSizesTwice(db: Db): void {
  if (db.prepare("select 1 from pragma_table_xinfo('words_docsize') where name = 'twin'").get() !== undefined) return
  inTransaction(db, () => db.exec(ADD_SIZE_COPIES))
}

const ADD_SIZE_COPIES = `
  create table doc_size as select id, sz, origin from words_docsize;
  drop table words_docsize;
  create table words_docsize (id integer primary key, sz blob, origin integer, twin blob generated always as (sz) stored);
  insert into words_docsize (id, sz, origin) select id, sz, origin from doc_size;
  drop table doc_size;
`

// The functions below throw a DexError `index_damaged` if a row differs from what was written.

/** Checks these documents and their conversations. */
export function checkDocs(db: Db, docs: number[]): void {
  if (docs.length === 0 || !areSumsCurrent(db)) return
  const intactDocs = db.prepare(COUNT_INTACT_DOCS).pluck().get(JSON.stringify(docs))
  throwIfDamaged(intactDocs === docs.length ? undefined : intactDocs)
}

const COUNT_INTACT_DOCS = `select count(*) from doc where id in (select value from json_each(?)) and sum is (${DOC_SUM})
  and exists (select 1 from conversation where id = conversation_id and twin is (${CONVERSATION_TWIN}))`

/** Returns undefined if the index has no such conversation. */
export function conversationId(db: Db, ref: Ref): number | undefined {
  return idOf(db, CONVERSATION_LOOKUP, { source: sourceWithOwner(ref), native_id: ref.id })
}

/** Returns undefined if the index has no such project. */
export function indexedProjectId(db: Db, path: string): number | undefined {
  return idOf(db, PROJECT_LOOKUP, { path })
}

/**
 * The queries of a lookup. `wrong`: the row belongs to another name, or is damaged. `hidden`: the row exists, but its name or the
 * list of names is damaged.
 */
type LookupSql = { id: string; wrong: string; hidden: string }

const IS_CONVERSATION = "source = @source and native_id = @native_id"
const CONVERSATION_LOOKUP: LookupSql = {
  id: `select id from conversation where ${IS_CONVERSATION}`,
  wrong: `select 1 from conversation where id = @id and not (${IS_CONVERSATION} and twin is (${CONVERSATION_TWIN}))`,
  hidden: `select 1 from conversation not indexed where (${IS_CONVERSATION}) or twin is not (${CONVERSATION_TWIN}) limit 1`,
}
const PROJECT_LOOKUP: LookupSql = {
  id: "select id from project where path = @path",
  wrong: `select 1 from project where id = @id and not (path = @path and twin is (${PROJECT_TWIN}))`,
  hidden: `select 1 from project not indexed where path = @path or twin is not (${PROJECT_TWIN}) limit 1`,
}

function idOf(db: Db, lookup: LookupSql, values: Record<string, string>): number | undefined {
  const id = valueQuery(db, lookup.id, "integer").get(values)
  if (!areSumsCurrent(db)) return id
  const damagedRow =
    id === undefined ? db.prepare(lookup.hidden).get(values) : db.prepare(lookup.wrong).get({ ...values, id })
  throwIfDamaged(damagedRow)
  return id
}

export function countDamagedRows(db: Db): number {
  return areSumsCurrent(db) ? valueQuery(db, COUNT_DAMAGED_ROWS, "integer").get()! : 0
}

const COUNT_DAMAGED_ROWS = `select
  (select count(*) from doc where sum is not (${DOC_SUM}))
  + (select count(*) from words_docsize where twin is not sz)
  + (select count(*) from conversation where twin is not (${CONVERSATION_TWIN}))
  + (select count(*) from project where twin is not (${PROJECT_TWIN}))`

function throwIfDamaged(damagedRow: unknown): void {
  if (damagedRow !== undefined) throw indexDamage("a row changed on disk")
}
