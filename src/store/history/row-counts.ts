/**
 * The number of rows of a conversation, and of blocks of a unit's records. A row with a damaged key cannot be found, so only the
 * count reveals it. Null (unknown) while one of the rows has no checksum yet.
 */
const TABLES = ["message", "body", "touch", "command", "made"] as const

// A row out of order may be among the others of the index, so each is compared by itself too.
const counted = (table: string) =>
  ["(select count(*) filter (where conversation_id = @id) from", table, "where conversation_id = @id)"].join(" ")
const unsealed = (table: string) =>
  ["exists (select 1 from", table, "where conversation_id = @id and sum is null)"].join(" ")

const UNSEALED = TABLES.map(unsealed).join(" or ")
const COUNTS = TABLES.map(counted).join(" || ' ' || ")

export const ROW_COUNTS = `case when ${UNSEALED} then null else ${COUNTS} end`

export const BLOCK_COUNT = `case when exists (select 1 from raw where unit_id = @id and sum is null) then null
  else (select count(*) from raw where unit_id = @id) end`

export type RowCounts = Record<(typeof TABLES)[number], number>

export function readRowCounts(held: string): RowCounts {
  const counts = held.split(" ").map(Number)
  return Object.fromEntries(TABLES.map((table, i) => [table, counts[i]])) as RowCounts
}
