import type { Db } from "../../sqlite/database.ts"
import { SUMMED_TABLES } from "./sums.ts"
import { tableSql } from "./table-sql.ts"

/**
 * Creates triggers, only for this connection, that compute the checksum of every row written without one. A row that was damaged
 * before a change stays damaged, unless the same statement sets `sum = null`, which means that all values are new. After rows
 * were deleted, the row count is unknown (null) until the caller sets it again.
 */
export function createSumTriggers(db: Db): void {
  for (const table of SUMMED_TABLES) db.exec(tableSql(table).triggers)
}
