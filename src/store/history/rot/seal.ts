import { type Db, inTransaction } from "../../sqlite/database.ts"
import { rowQuery, tupleQuery, valueQuery } from "../../sqlite/typed-query.ts"
import { packBlock, readBlock } from "../codec.ts"
import { BLOCK_COUNT, ROW_COUNTS } from "../row-counts.ts"
import { TABLES } from "../tables.ts"
import { isSealed, markSealed, rowSum, SUMMED_TABLES, type SummedTable } from "./sums.ts"
import { tableSql } from "./table-sql.ts"

// Histories that an older dex wrote get their checksums gradually, a few with every sync.

const BATCH_ROWS = 2_000

/** Adds checksums until the deadline. Unreadable blocks get none, since a checksum would make them count as undamaged. */
export function seal(db: Db, deadline: number): void {
  if (isSealed(db) && !hasUnsealed(db)) return
  const hasTime = () => Date.now() < deadline
  for (let id = 0; hasTime(); ) {
    const nextId = valueQuery(db, "select min(id) from conversation where held is null and id > ?", "integer?").get(id)
    if (nextId == null) break
    id = nextId
    inTransaction(db, () => sealConversation(db, id))
  }
  for (let id = 0; hasTime(); ) {
    const nextId = valueQuery(db, "select min(id) from unit where blocks is null and id > ?", "integer?").get(id)
    if (nextId == null) break
    id = nextId
    inTransaction(db, () => sealUnit(db, id))
  }
  if (isSealed(db)) return
  for (const table of SUMMED_TABLES) while (hasTime() && inTransaction(db, () => sealRows(db, table)) === BATCH_ROWS);
  if (hasTime()) inTransaction(db, () => markSealed(db))
}

function hasUnsealed(db: Db): boolean {
  const sql =
    "select exists (select 1 from conversation where held is null) or exists (select 1 from unit where blocks is null)"
  return db.prepare(sql).pluck().get() === 1
}

function sealConversation(db: Db, id: number): void {
  if (!isSealed(db)) addSums(db, id)
  db.prepare(`update conversation set held = ${ROW_COUNTS} where id = @id`).run({ id })
}

function addSums(db: Db, id: number): void {
  const sql = "select chunk, data from body where conversation_id = ? and sum is null"
  const save = db.prepare("update body set data = ?, sum = ? where conversation_id = ? and chunk = ?")
  for (const [chunk, old] of tupleQuery(db, sql, ["integer", "blob"]).all(id)) {
    const lines = readBlock(old)
    if (!lines) continue
    const { data } = packBlock(lines)
    save.run(data, rowSum("body", [id, chunk, data]), id, chunk)
  }
  for (const table of ["message", "touch", "command", "made"] as const) db.prepare(tableSql(table).sealOf).run(id)
}

function sealUnit(db: Db, id: number): void {
  const sql = "select * from raw where unit_id = ? and sum is null"
  const blocks = isSealed(db) ? [] : rowQuery(db, sql, TABLES.raw).all(id)
  const save = db.prepare("update raw set data = ?, sum = ? where unit_id = ? and kind = ? and seq = ?")
  for (const { kind, seq, records, bytes, data: old } of blocks) {
    const lines = readBlock(old)
    if (lines?.length !== records) continue
    const { data } = packBlock(lines)
    save.run(data, rowSum("raw", [id, kind, seq, records, bytes, data]), id, kind, seq)
  }
  db.prepare(`update unit set blocks = ${BLOCK_COUNT} where id = @id`).run({ id })
}

/**
 * Adds checksums to some rows of a table and returns their number. Blocks get theirs together with their conversation or unit,
 * because they are packed again.
 */
function sealRows(db: Db, table: SummedTable): number {
  return table === "body" || table === "raw" ? 0 : db.prepare(tableSql(table).seal).run(BATCH_ROWS).changes
}
