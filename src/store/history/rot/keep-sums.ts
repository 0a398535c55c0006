import type { Db } from "../../sqlite/database.ts"
import { SUMMED } from "./sums.ts"
import { tableSql } from "./table-sql.ts"

/**
 * Whoever writes a row without its checksum gets it made. A row that was damaged before it was changed stays known as
 * damaged; `sum = null` in the same statement says that nothing of the old row was kept. How many rows there are is no
 * longer known after some were deleted, until whoever deletes says so again. The triggers are this connection's own.
 */
export function keepSums(db: Db): void {
  for (const table of SUMMED) db.exec(tableSql(table).triggers)
}
