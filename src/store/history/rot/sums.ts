import { crc32 } from "node:zlib"
import type { Db } from "../../sqlite/database.ts"
import { TABLES } from "../tables.ts"

// Every row of the history has a checksum of its values, so that a reader notices a bit that flipped on disk. Rows that an older
// dex wrote have none until a later sync adds it.

export type HistoryValue = string | number | Uint8Array | null
export type SummedTable = keyof typeof TABLES

/** The columns that each row's checksum covers, primary key first. */
export const SUMMED_COLUMNS = summedColumns()

function summedColumns(): Record<keyof typeof TABLES, readonly string[]> {
  const columns: [string, string[]][] = Object.entries(TABLES).map(([table, { sum: _, ...summed }]) => [
    table,
    Object.keys(summed),
  ])
  return Object.fromEntries(columns) as Record<keyof typeof TABLES, string[]>
}

/** The number of columns in the primary key of each table. */
export const KEY_LENGTHS: Record<SummedTable, number> = {
  meta: 1,
  project: 1,
  project_path: 1,
  unit: 1,
  container: 2,
  raw: 3,
  conversation: 1,
  message: 2,
  body: 2,
  claim: 2,
  file: 1,
  touch: 4,
  command: 3,
  made: 4,
  deletion: 1,
  tombstone: 1,
  collection: 1,
}

export const SUMMED_TABLES = Object.keys(SUMMED_COLUMNS) as SummedTable[]

/** Computes a checksum of four bytes. It includes the table's name, so that a row found outside its table can be placed. */
export function rowSum(table: string, values: readonly HistoryValue[]): number {
  let text: string = table
  let sum = 0
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!
    if (value === null) continue
    if (typeof value === "object") {
      sum = crc32(value, crc32(`${text}\0${i}x`, sum))
      text = ""
    } else text += typeof value === "string" ? `\0${i}t${value}` : `\0${i}n${value}`
  }
  return crc32(text, sum) | 0
}

export type HistoryRow = Record<string, HistoryValue>

/** True if the row is as it was written, or if it has no checksum yet and need not have one. */
export function isIntact(db: Db, table: SummedTable, row: HistoryRow & { sum: number | null }): boolean {
  return row.sum === null ? !isSealed(db) : row.sum === checksumOf(table, row)
}

/** A file that is loaded late has a copy of its own, so it may have to look once more. */
const sealed = new WeakSet<Db>()

/**
 * True once every row has a checksum, also if another process has added the last ones. From then on, a row without one is damaged:
 * a flipped bit in a row's header can hide its last value, which is the checksum. If a damaged page prevents looking, `dex doctor`
 * reports the damage.
 */
export function isSealed(db: Db): boolean {
  if (sealed.has(db)) return true
  try {
    const sql = "select 1 from meta indexed by meta_copy where key = 'sealed'"
    if (db.prepare(sql).get() === undefined) return false
  } catch {
    return false
  }
  sealed.add(db)
  return true
}

export function markSealed(db: Db): void {
  db.prepare("insert or replace into meta (key, value) values ('sealed', '1')").run()
}

export function checksumOf(table: SummedTable, row: HistoryRow): number {
  return rowSum(
    table,
    SUMMED_COLUMNS[table].map((name) => row[name]!),
  )
}

/**
 * Registers the SQL functions `row_sum` and `is_sealed`. The second cannot run a query inside another one, so `isSealed` must be
 * called before each use of the database.
 */
export function registerRowSum(db: Db): void {
  isSealed(db)
  db.function("is_sealed", () => (sealed.has(db) ? 1 : 0))
  db.function("row_sum", { varargs: true, deterministic: true }, (table, ...values) =>
    rowSum(table as string, values as HistoryValue[]),
  )
}
