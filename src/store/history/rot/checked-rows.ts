import type { SourceId } from "../../../core/conversation.ts"
import type { Ref } from "../../../core/ref.ts"
import type { Db } from "../../sqlite/database.ts"
import { rowQuery } from "../../sqlite/typed-query.ts"
import { type HistoryRow, type HistoryValue, isIntact, KEYS, SUMMED_COLUMNS, type Summed } from "./sums.ts"
import { intactSql, tableSql } from "./table-sql.ts"

// Access to the history as it was written: readers detect damage and never show it.

export type Stored = HistoryRow & { sum: number | null }

/** Called for every conversation with damage, or with a description of other damage. */
export type OnDamage = (what: Ref | string) => void

/** The row, or undefined if it is damaged. */
export function asWritten<Row extends Stored>(db: Db, table: Summed, row: Row, onDamage: () => void): Row | undefined {
  if (isIntact(db, table, row)) return row
  onDamage()
  return undefined
}

/** The damaged rows; only those of one `owner` (the first value of the key) if it is given. */
export function damagedRows(db: Db, table: Summed, owner?: HistoryValue): Stored[] {
  const { damaged, damagedOf } = tableSql(table)
  return (owner === undefined ? db.prepare(damaged).all() : db.prepare(damagedOf).all(owner)) as Stored[]
}

/**
 * An index still contains the earlier values of a damaged row, so SQLite does not find the entry that it wants to remove and
 * calls the file corrupt. That is expected here: the entry for the new values exists or is created.
 */
export function despiteIndexes<T>(db: Db, work: () => T): T {
  db.unsafeMode(true)
  db.pragma("writable_schema = on")
  try {
    return work()
  } finally {
    db.pragma("writable_schema = off")
    db.unsafeMode(false)
  }
}

export function primaryKeyOf(table: Summed, row: HistoryRow): HistoryValue[] {
  return SUMMED_COLUMNS[table].slice(0, KEYS[table]).map((name) => row[name]!)
}

const INTACT_ROW = intactSql("c", "conversation")
const INTACT_PROJECT = intactSql("p", "project")
const DAMAGED_ROWS = `select c.id, c.source, c.native_id from conversation c left join project p on p.id = c.project_id
  where not ${INTACT_ROW} or (p.id is not null and not ${INTACT_PROJECT})`

const looked = new WeakMap<Db, { at: unknown; ids: string; rows: Stored[] }>()

/**
 * The conversations to exclude from every count and list, as a JSON array: a damaged row may claim any kind, date or project.
 * Checks all rows, again after each change.
 */
export function damagedIds(db: Db, onDamage: OnDamage): string {
  const at = db.prepare("select value from meta where key = 'change_seq'").pluck().get()
  let known = looked.get(db)
  if (!known || known.at !== at) {
    const rows = db.prepare(DAMAGED_ROWS).all() as Stored[]
    known = { at, ids: JSON.stringify(rows.map((row) => row.id)), rows }
    looked.set(db, known)
  }
  for (const row of known.rows) onDamage(conversationRef(db, row))
  return known.ids
}

/** A conversation's ref even if its row is damaged: the index on its name is a second copy. */
export function conversationRef(db: Db, { id, source, native_id }: HistoryRow): Ref {
  const sql = "select source, native_id as id from conversation indexed by sqlite_autoindex_conversation_1 where id = ?"
  const named = rowQuery(db, sql, { source: "text", id: "text" }).get(id)
  return named ?? { source: source as SourceId, id: native_id as string }
}

/** Parses JSON; undefined if it is damaged. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
