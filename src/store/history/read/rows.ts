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

// Helpers for reading any table. They detect damage and never return damaged rows.

export type RawRow = Record<string, string | number | null>

export const NOT_DAMAGED = "(@damaged = '[]' or c.id not in (select value from json_each(@damaged)))"

export type Owner = RowOf<typeof OWNER>
const OWNER = { id: "integer", held: "text?" } as const

export function ownerOf(db: Db, ref: Ref): Owner | undefined {
  const sql = "select id, held from conversation where source = ? and native_id = ?"
  return rowQuery(db, sql, OWNER).get(sourceWithOwner(ref), ref.id)
}

/** The rows of a conversation, without damaged ones. */
export function rowsOf<Table extends Exclude<keyof RowCounts, "body">>(
  db: Db,
  table: Table,
  { id, held }: Owner,
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

/** Removes nulls from an object: in dex's data, unknown values are missing. */
export function withoutNulls(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))
}
