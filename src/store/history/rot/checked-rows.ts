import type { SourceId } from "../../../core/conversation.ts"
import type { Ref } from "../../../core/ref.ts"
import type { Db } from "../../sqlite/database.ts"
import { rowQuery } from "../../sqlite/typed-query.ts"
import { type HistoryRow, type HistoryValue, isIntact, KEY_LENGTHS, SUMMED_COLUMNS, type SummedTable } from "./sums.ts"
import { intactSql, tableSql } from "./table-sql.ts"

// Access to rows of the history with a check for damage, so that readers never show damaged data.

export type StoredRow = HistoryRow & { sum: number | null }

/** Is called with each damaged conversation, or with a description of other damage. */
export type OnDamage = (what: Ref | string) => void

/** Returns the row, or undefined if it is damaged. */
export function intactRow<Row extends StoredRow>(
  db: Db,
  table: SummedTable,
  row: Row,
  onDamage: () => void,
): Row | undefined {
  if (isIntact(db, table, row)) return row
  onDamage()
  return undefined
}

/** Returns the damaged rows of a table, or only those of one `owner` (the first value of the key). */
export function damagedRows(db: Db, table: SummedTable, owner?: HistoryValue): StoredRow[] {
  const { damaged, damagedOf } = tableSql(table)
  return (owner === undefined ? db.prepare(damaged).all() : db.prepare(damagedOf).all(owner)) as StoredRow[]
}

/**
 * Runs work that changes damaged rows. An index still contains the values from before the damage, so SQLite does not find the
 * index entry that it has to remove; without this function, SQLite would then report the file as corrupt.
 */
export function allowIndexMismatch<T>(db: Db, work: () => T): T {
  db.unsafeMode(true)
  db.pragma("writable_schema = on")
  try {
    return work()
  } finally {
    db.pragma("writable_schema = off")
    db.unsafeMode(false)
  }
}

export function primaryKeyOf(table: SummedTable, row: HistoryRow): HistoryValue[] {
  return SUMMED_COLUMNS[table].slice(0, KEY_LENGTHS[table]).map((name) => row[name]!)
}

const IS_CONVERSATION_INTACT = intactSql("c", "conversation")
const IS_PROJECT_INTACT = intactSql("p", "project")
const SELECT_DAMAGED_ROWS = `select c.id, c.source, c.native_id from conversation c left join project p on p.id = c.project_id
  where not ${IS_CONVERSATION_INTACT} or (p.id is not null and not ${IS_PROJECT_INTACT})`

const damageCache = new WeakMap<Db, { at: unknown; ids: string; rows: StoredRow[] }>()

/**
 * Returns the ids of the conversations whose row, or project row, is damaged, as a JSON array. Counts and lists exclude them,
 * because a damaged row may claim any kind, date or project. All rows are checked, once after each change to the history.
 */
export function damagedIds(db: Db, onDamage: OnDamage): string {
  const newestChange = db.prepare("select value from meta where key = 'change_seq'").pluck().get()
  let cached = damageCache.get(db)
  if (!cached || cached.at !== newestChange) {
    const rows = db.prepare(SELECT_DAMAGED_ROWS).all() as StoredRow[]
    cached = { at: newestChange, ids: JSON.stringify(rows.map((row) => row.id)), rows }
    damageCache.set(db, cached)
  }
  for (const row of cached.rows) onDamage(conversationRef(db, row))
  return cached.ids
}

/** Returns a conversation's ref, even if its row is damaged: the index on source and id contains a second copy of both. */
export function conversationRef(db: Db, { id, source, native_id }: HistoryRow): Ref {
  const sql = "select source, native_id as id from conversation indexed by sqlite_autoindex_conversation_1 where id = ?"
  const indexedName = rowQuery(db, sql, { source: "text", id: "text" }).get(id)
  return indexedName ?? { source: source as SourceId, id: native_id as string }
}

/** Returns undefined if the text is not JSON, as may be the case if it is damaged. */
export function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
