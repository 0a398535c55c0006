import { isValidTime } from "../../../core/record.ts"
import { type Ref, sourceWithOwner } from "../../../core/ref.ts"
import type { Db } from "../../sqlite/database.ts"
import { type RowOf, rowQuery } from "../../sqlite/typed-query.ts"
import type { StoredRow } from "../rot/checked-rows.ts"
import { isIntact } from "../rot/sums.ts"
import { tableSql } from "../rot/table-sql.ts"
import { type RowCounts, readRowCounts } from "../row-counts.ts"
import { spellingsOf } from "../spellings.ts"
import { type RowIn, TABLES } from "../tables.ts"

export const NOT_DAMAGED = "(@damaged = '[]' or c.id not in (select value from json_each(@damaged)))"

export type StoredConversation = RowOf<typeof STORED_CONVERSATION>
const STORED_CONVERSATION = { id: "integer", held: "text?" } as const

export function findStoredConversation(db: Db, ref: Ref): StoredConversation | undefined {
  const sql = "select id, held from conversation where source = ? and native_id = ?"
  return rowQuery(db, sql, STORED_CONVERSATION).get(sourceWithOwner(ref), ref.id)
}

/** Returns the rows of a conversation, without damaged ones. */
export function rowsOf<Table extends Exclude<keyof RowCounts, "body">>(
  db: Db,
  table: Table,
  { id, held }: StoredConversation,
  onDamage: () => void,
): RowIn<Table>[] {
  const stored = rowQuery(db, tableSql(table).allOf, TABLES[table]).all(id) as (RowIn<Table> & StoredRow)[]
  const isComplete = held === null || readRowCounts(held)[table] === stored.length
  if (isComplete && stored.every((row) => row.conversation_id === id && isIntact(db, table, row))) return stored
  onDamage()
  return stored.filter((row) => row.conversation_id === id && isIntact(db, table, row))
}

/** Treats an impossible time, which an earlier import may have stored, as unknown. */
export function validTime(value: unknown): number | null {
  return isValidTime(value) ? value : null
}

/** `validTime` in SQL, for a conversation `c`. */
export const STARTED_AT = "iif(c.started_at between -8.64e15 and 8.64e15, c.started_at, null)"
export const ENDED_AT = "iif(c.ended_at between -8.64e15 and 8.64e15, c.ended_at, null)"

export function spellingsAsJson(db: Db, project: string | undefined, platform: NodeJS.Platform): string | null {
  return project === undefined ? null : JSON.stringify(spellingsOf(db, project, platform))
}

/** Removes nulls from an object, because in dex's data unknown values are missing fields. */
export function withoutNulls(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))
}

/** A condition on the unit `u`: it was not imported from another history. */
export const NOT_IMPORTED = "instr(u.key, '#from-') = 0"

/** Whether a unit was imported from another history. */
export function isImportedKey(key: string): boolean {
  return key.includes("#from-")
}
