import type { Db } from "../../sqlite/database.ts"
import { correctedRow } from "./correct.ts"
import { primaryKeyOf, type Stored } from "./sound.ts"
import { type HistoryRow, type HistoryValue, SUMMED_COLUMNS, type Summed } from "./sums.ts"
import { tableSql } from "./table-sql.ts"

/** The rows that are not what was written; only those of one `owner`, the first value of the key, where it is given. */
export function unsoundRows(db: Db, table: Summed, owner?: HistoryValue): Stored[] {
  const { unsound, unsoundOf } = tableSql(table)
  return (owner === undefined ? db.prepare(unsound).all() : db.prepare(unsoundOf).all(owner)) as Stored[]
}

/** Puts every row right of which a single bit flipped, and returns the keys of those that are damaged in more. */
export function mendRows(db: Db, table: Summed, owner?: HistoryValue): HistoryValue[][] {
  return unsoundRows(db, table, owner)
    .filter((row) => {
      const right = correctedRow(db, table, row)
      return !right || !replaceRow(db, table, row, right)
    })
    .map((row) => primaryKeyOf(table, row))
}

/** False where its key leads to another row, or another row stands where it belongs: then the table is out of order. */
function replaceRow(db: Db, table: Summed, row: Stored, right: HistoryRow): boolean {
  const { byKey, replace } = tableSql(table)
  const [key, rightKey] = [primaryKeyOf(table, row), primaryKeyOf(table, right)]
  const found = db.prepare(byKey).get(...key) as Stored | undefined
  if (found?.sum !== row.sum) return false
  if (JSON.stringify(rightKey) !== JSON.stringify(key) && db.prepare(byKey).get(...rightKey) !== undefined) return false
  const values = [...SUMMED_COLUMNS[table], "sum"].map((name) => right[name]!)
  return despiteIndexes(db, () => db.prepare(replace).run(...values, ...key).changes === 1)
}

/**
 * An index still holds what a damaged row once said, so SQLite misses the entry that it wants to take out and calls the
 * file corrupt. Here that is expected: the entry for what is written now is there, or is made.
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
