import type { Db } from "../../sqlite/database.ts"
import { correctedRow } from "./correct.ts"
import type { Stored } from "./sound.ts"
import { type HistoryRow, isSound, SUMMED_COLUMNS, type Summed } from "./sums.ts"
import { tableSql } from "./table-sql.ts"

/**
 * The rows that begin with a key, as they were written, looked for in the whole table: one whose own key has a wrong bit is
 * led to by nothing, and neither are those that stand behind it. For when rows are missing; it takes its time.
 */
export function rowsAnywhere(db: Db, table: Summed, key: number): HistoryRow[] {
  const [first] = SUMMED_COLUMNS[table]
  const near = db.prepare(tableSql(table).near).all({ key }) as Stored[]
  return near.flatMap((row) => {
    const right = isSound(table, row) ? row : correctedRow(db, table, row)
    return right?.[first] === key ? [right] : []
  })
}
