import type { Ref } from "../../../core/ref.ts"
import { type Db, inTransaction } from "../../sqlite/database.ts"
import { rowQuery, valueQuery } from "../../sqlite/typed-query.ts"
import { restoreCollections } from "../collections.ts"
import { TABLES } from "../tables.ts"
import { allowIndexMismatch, damagedRows, primaryKeyOf } from "./checked-rows.ts"
import {
  CONVERSATION_TABLES,
  canRenewEffects,
  hasIntactRecords,
  type Injury,
  inspect,
  inspectConversation,
} from "./inspect.ts"
import { SUMMED_TABLES, type SummedTable } from "./sums.ts"
import { intactSql, tableSql } from "./table-sql.ts"
import { renewEffects } from "./write-damaged.ts"

export type Healing = {
  /** Conversations that are complete again. */
  restored: Ref[]
  /** Conversations that will be complete once the next sync has read their files or raw records again. */
  again: Ref[]
  /** Conversations that nothing can restore. Their readable parts stay. */
  lost: Injury[]
}

/** Small tables on which everything else depends. */
const SMALL_TABLES: SummedTable[] = ["meta", "tombstone", "project", "project_path", "collection"]

/**
 * Restores damaged rows: those of small tables from their copies, and the files, commands and commits of these conversations
 * from their messages. If a conversation has other damage, its units are marked to be read again. `everywhere` also restores the
 * rows of all other tables and rebuilds the indexes.
 */
export function heal(db: Db, refs: readonly Ref[], everywhere = false): Healing {
  return inTransaction(db, () => {
    for (const table of everywhere ? SUMMED_TABLES : SMALL_TABLES) restoreDamagedRows(db, table)
    if (everywhere) db.exec("reindex") // an index may be damaged too, and can be rebuilt from the rows
    const healing: Healing = { restored: [], again: [], lost: [] }
    const idOf = valueQuery(db, "select id from conversation where source = ? and native_id = ?", "integer")
    for (const { source, id: name } of refs) {
      const id = idOf.get(source, name)
      if (id === undefined) continue // forgotten meanwhile
      let injury = inspectConversation(db, id)
      if (injury && canRenewEffects(db, id, injury)) {
        renewEffects(db, id)
        injury = inspectConversation(db, id)
      }
      if (!injury) healing.restored.push({ source, id: name })
      else if (readAgain(db, id)) healing.again.push({ source, id: name })
      else healing.lost.push(injury)
    }
    if (everywhere) deleteStrays(db)
    return healing
  })
}

/**
 * Deletes rows whose damaged key names no conversation, unless some conversation cannot be restored, because the rows may be
 * all that is left of that conversation.
 */
function deleteStrays(db: Db): void {
  const selectConversation = db.prepare("select 1 from conversation where id = ?")
  const strays = CONVERSATION_TABLES.flatMap((table) => damagedRows(db, table).map((row) => ({ table, row }))).filter(
    ({ row }) => selectConversation.get(row.conversation_id) === undefined,
  )
  if (strays.length === 0 || inspect(db).conversations.some(({ restores }) => restores === "nothing")) return
  allowIndexMismatch(db, () => {
    for (const { table, row } of strays) db.prepare(tableSql(table).deleteOne).run(...primaryKeyOf(table, row))
  })
}

/** Restores a table's damaged rows from copies, if there are any. Values without a copy are set to safe ones. */
function restoreDamagedRows(db: Db, table: SummedTable): void {
  const damaged = damagedRows(db, table)
  if (damaged.length === 0) return
  const keys = damaged.map((row) => primaryKeyOf(table, row))
  // Find the rows by their wrong checksum, because a key may be damaged too, and a text key may no longer be UTF-8.
  const deleteDamaged = () => db.prepare(tableSql(table).deleteDamaged).run()
  allowIndexMismatch(db, () => {
    if (table === "tombstone") for (const sql of [KEEP_TOMBSTONES, ADD_TOMBSTONES]) db.prepare(sql).run()
    if (table === "meta") for (const sql of [RESTORE_SETTINGS, ADD_SETTINGS]) db.prepare(sql).run()
    if (table === "claim") for (const sql of [KEEP_CLAIMS, ADD_CLAIMS]) db.prepare(sql).run()
    if (table === "tombstone" || table === "meta" || table === "claim" || table === "container") deleteDamaged()
    if (table === "claim") db.prepare(READ_UNKNOWN_CLAIMS).run()
    if (table === "collection" && restoreCollections(db) > 0) deleteDamaged()
    if (table === "project") for (const [id] of keys) db.prepare(RESTORE_PROJECT).run({ id })
    // The feed may now lack a deletion, so its followers must start again. A new history id tells them to.
    if (table === "deletion") {
      deleteDamaged()
      db.prepare("update meta set value = ? where key = 'history_id'").run(globalThis.crypto.randomUUID())
    }
    if (table === "file") {
      const selectConversationIds = valueQuery(
        db,
        "select distinct conversation_id from touch where file_id = ?",
        "integer",
      )
      const ids = keys.flatMap((key) => selectConversationIds.all(...key))
      deleteDamaged()
      for (const id of ids) renewEffects(db, id)
    }
  })
}

const IS_DAMAGED_TOMBSTONE = ["not", intactSql("tombstone", "tombstone")].join(" ")
const IS_DAMAGED_SETTING = ["not", intactSql("meta", "meta")].join(" ")
const IS_DAMAGED_CLAIM = ["not", intactSql("claim", "claim")].join(" ")

// These statements read copies only from the indexes, which still contain the values that were written. If the index has the
// hash of a damaged tombstone, only the checksum is damaged. Deleting that row would bring the forgotten conversation back.
const SELECT_TOMBSTONE_COPIES = "select hash from tombstone indexed by tombstone_copy"
const KEEP_TOMBSTONES = `update tombstone set sum = null where ${IS_DAMAGED_TOMBSTONE} and hash in (${SELECT_TOMBSTONE_COPIES})`
const ADD_TOMBSTONES = `insert or ignore into tombstone (hash) ${SELECT_TOMBSTONE_COPIES}`
const SELECT_SETTING_COPY = "(select value from meta as copy indexed by meta_copy where copy.key = meta.key)"
const RESTORE_SETTINGS = `update meta set value = ${SELECT_SETTING_COPY}, sum = null
  where ${IS_DAMAGED_SETTING} and ${SELECT_SETTING_COPY} is not null`
const ADD_SETTINGS = "insert or ignore into meta (key, value) select key, value from meta indexed by meta_copy"
const SELECT_CLAIM_COPIES = "select native_id, unit_id from claim indexed by claim_unit"
const KEEP_CLAIMS = `update claim set authority = null, live = null, began_at = null, sum = null
  where ${IS_DAMAGED_CLAIM} and (native_id, unit_id) in (${SELECT_CLAIM_COPIES})`
const ADD_CLAIMS = `insert or ignore into claim (native_id, unit_id) ${SELECT_CLAIM_COPIES}`
const RESTORE_PROJECT = `update project set path = (select path from project indexed by sqlite_autoindex_project_1 where id = @id),
  git_remote = null, private = 1, sum = null where id = @id`

/** Marks units to be read again if their claims come from the index, which has only the two ids of a claim. */
export const READ_UNKNOWN_CLAIMS =
  "update unit set connector_version = 0 where id in (select unit_id from claim where authority is null)"

/**
 * Marks a conversation's units to be read again: from the source if it exists, else from raw records if they are complete.
 * Returns false if no unit can be read.
 */
function readAgain(db: Db, id: number): boolean {
  const units = rowQuery(
    db,
    `select u.* from unit u where u.id = (select unit_id from conversation where id = @id) or u.id in
       (select l.unit_id from conversation c join claim l on l.native_id = c.native_id join unit n on n.id = l.unit_id and n.source = c.source where c.id = @id)`,
    TABLES.unit,
  ).all({ id })
  const readableUnits = units.filter(
    (unit) => unit.state === "present" || (unit.raw_withheld !== 1 && hasIntactRecords(db, unit)),
  )
  const markUnread = db.prepare("update unit set connector_version = 0 where id = ?")
  for (const unit of readableUnits) markUnread.run(unit.id)
  return readableUnits.length > 0
}
