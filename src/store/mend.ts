import { correctedRow } from "./correct.ts"
import type { Db } from "./database.ts"
import { keyOf } from "./sound.ts"
import { COLUMNS, type Row, type Summed, type Value } from "./sums.ts"
import { tableSql } from "./table-sql.ts"

/** The rows that are not what was written, by their keys as they stand now; of one `owner`, the first value of the key. */
export function unsoundRows(db: Db, table: Summed, owner?: Value): Value[][] {
  const { unsound, unsoundOf } = tableSql(table)
  const rows = owner === undefined ? db.prepare(unsound).raw().all() : db.prepare(unsoundOf).raw().all(owner)
  return rows as Value[][]
}

/** Puts every row right of which a single bit flipped, and returns the keys of those that are damaged in more. */
export function mendRows(db: Db, table: Summed, owner?: Value): Value[][] {
  return unsoundRows(db, table, owner).filter((key) => {
    const right = correctedRow(db, table, key)
    return !right || !replaceRow(db, table, key, right)
  })
}

/** False where another row already stands where this one belongs. */
function replaceRow(db: Db, table: Summed, key: Value[], right: Row): boolean {
  const { byKey, replace } = tableSql(table)
  const moves = JSON.stringify(keyOf(table, right)) !== JSON.stringify(key)
  if (moves && db.prepare(byKey).get(...keyOf(table, right)) !== undefined) return false
  const values = [...COLUMNS[table], "sum"].map((name) => right[name]!)
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
