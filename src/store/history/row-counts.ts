// SQL that counts the rows of a conversation, and the blocks of a unit's raw records. A row with a damaged key cannot be found:
// only a wrong count reveals that it is missing. A count is null (unknown) while one of the rows has no checksum yet.

const COUNTED_TABLES = ["message", "body", "touch", "command", "made"] as const

// If the table is out of order, the range that SQLite reads may include other rows, so each row is compared again.
const countSql = (table: string) =>
  ["(select count(*) filter (where conversation_id = @id) from", table, "where conversation_id = @id)"].join(" ")
const unsealedSql = (table: string) =>
  ["exists (select 1 from", table, "where conversation_id = @id and sum is null)"].join(" ")

const HAS_UNSEALED_ROWS = COUNTED_TABLES.map(unsealedSql).join(" or ")
const COUNTS = COUNTED_TABLES.map(countSql).join(" || ' ' || ")

export const ROW_COUNTS = `case when ${HAS_UNSEALED_ROWS} then null else ${COUNTS} end`

export const BLOCK_COUNT = `case when exists (select 1 from raw where unit_id = @id and sum is null) then null
  else (select count(*) from raw where unit_id = @id) end`

export type RowCounts = Record<(typeof COUNTED_TABLES)[number], number>

export function readRowCounts(storedCounts: string): RowCounts {
  const counts = storedCounts.split(" ").map(Number)
  return Object.fromEntries(COUNTED_TABLES.map((table, i) => [table, counts[i]])) as RowCounts
}
