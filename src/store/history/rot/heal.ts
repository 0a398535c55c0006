import { DexError } from "../../../core/error.ts"
import type { Ref } from "../../../core/ref.ts"
import { type Db, inTransaction } from "../../sqlite/database.ts"
import { rowQuery, valueQuery } from "../../sqlite/typed-query.ts"
import { loadLines } from "../bodies.ts"
import { saveEffects } from "../effects.ts"
import { projectPathsOf } from "../project-paths.ts"
import { ROW_COUNTS } from "../row-counts.ts"
import { TABLES } from "../tables.ts"
import { damagedRows, despiteIndexes, parsed, primaryKeyOf } from "./checked-rows.ts"
import { hasIntactRecords, hasMissingRows, type Injury, inspectConversation } from "./inspect.ts"
import { type HistoryValue, SUMMED, type Summed } from "./sums.ts"
import { tableSql } from "./table-sql.ts"

export type Healing = {
  /** Damaged before, and complete again. */
  restored: Ref[]
  /** Complete again once the next sync has read their files or raw records again. */
  again: Ref[]
  /** Damaged, with nothing to restore them from. The readable parts stay. */
  lost: Injury[]
}

const PARTS = ["message", "body", "touch", "command", "made"] as const
/** Tables with few rows on which everything depends. */
const SMALL: Summed[] = ["meta", "tombstone", "project", "project_path", "collection"]

/**
 * Restores what it can of these conversations: files and commands from the messages. Anything else that is damaged is marked to
 * be read again. `everywhere` checks every row of the history.
 */
export function heal(db: Db, refs: readonly Ref[], everywhere = false): Healing {
  return inTransaction(db, () => {
    for (const table of everywhere ? SUMMED : SMALL)
      for (const row of damagedRows(db, table)) replaceLost(db, table, primaryKeyOf(table, row))
    if (everywhere) db.exec("reindex") // an index may be damaged too, and can be rebuilt from the rows
    const healing: Healing = { restored: [], again: [], lost: [] }
    const idOf = valueQuery(db, "select id from conversation where source = ? and native_id = ?", "integer")
    for (const { source, id: name } of refs) {
      const id = idOf.get(source, name)
      if (id === undefined) continue // forgotten meanwhile
      let injury = inspectConversation(db, id)
      if (injury?.what.length === 1 && injury.what[0]!.startsWith("its files")) {
        renewEffects(db, id)
        injury = inspectConversation(db, id)
      }
      if (!injury) healing.restored.push({ source, id: name })
      else if (readAgain(db, id)) healing.again.push({ source, id: name })
      else healing.lost.push(injury)
    }
    return healing
  })
}

/**
 * Call before writing to a damaged conversation. Throws if rows cannot be found because the table is out of order, since writing
 * would lose more of them.
 */
export function refuseOutOfOrder(db: Db, id: number): void {
  if (!hasMissingRows(db, id)) return
  for (const table of PARTS) {
    const problem = db.pragma(`quick_check(${table})`, { simple: true })
    if (problem !== "ok")
      throw new DexError(
        "corrupt",
        `Rows of this conversation in history.db are damaged (${problem}). Run \`dex doctor --repair\`.`,
      )
  }
  db.prepare(`update conversation set held = ${ROW_COUNTS} where id = @id`).run({ id })
}

/** Restores a row of a small table from the copies in its indexes. Unknown values are set to safe ones. */
function replaceLost(db: Db, table: Summed, key: HistoryValue[]): void {
  if (table === "tombstone")
    despiteIndexes(db, () => {
      const isInCopy = "select 1 from tombstone indexed by tombstone_copy where hash = ?"
      // If the copy has this mark, only its checksum is damaged. Deleting it would bring the conversation back.
      if (db.prepare(isInCopy).get(...key)) db.prepare("update tombstone set sum = null where hash = ?").run(...key)
      else {
        db.prepare("insert or ignore into tombstone (hash) select hash from tombstone indexed by tombstone_copy").run()
        db.prepare("delete from tombstone where hash = ?").run(...key)
      }
    })
  if (table === "meta")
    despiteIndexes(db, () =>
      db
        .prepare(
          "update meta set value = (select value from meta indexed by meta_copy where key = @key), sum = null where key = @key",
        )
        .run({ key: key[0] }),
    )
  if (table === "project")
    despiteIndexes(db, () =>
      db
        .prepare(
          `update project set path = (select path from project indexed by sqlite_autoindex_project_1 where id = @id),
             git_remote = null, private = 1, sum = null where id = @id`,
        )
        .run({ id: key[0] }),
    )
  // Followers must not rely on an incomplete feed. With a new history id they start again.
  if (table === "deletion") {
    db.prepare("delete from deletion where change_seq = ?").run(...key)
    db.prepare("update meta set value = ? where key = 'history_id'").run(globalThis.crypto.randomUUID())
  }
  if (table === "file") {
    const users = valueQuery(db, "select distinct conversation_id from touch where file_id = ?", "integer").all(...key)
    despiteIndexes(db, () => db.prepare("delete from file where id = ?").run(...key))
    for (const id of users) renewEffects(db, id)
  }
  if (table === "container") db.prepare("delete from container where source = ? and path = ?").run(...key)
  if (table === "claim")
    despiteIndexes(db, () => {
      db.prepare(
        "insert or ignore into claim (native_id, unit_id, authority, live, began_at) select native_id, unit_id, authority, live, began_at from claim indexed by claim_unit",
      ).run()
      db.prepare("delete from claim where native_id = ? and unit_id = ?").run(...key)
    })
}

/** Files, commands and commits are in the messages too. */
function renewEffects(db: Db, id: number): void {
  const projectId = valueQuery(db, "select project_id from conversation where id = ?", "integer?").get(id) ?? null
  const folders = projectId === null ? [] : projectPathsOf(db, projectId)
  despiteIndexes(db, () => {
    for (const table of ["touch", "command", "made"] as const) db.prepare(tableSql(table).deleteOf).run(id)
  })
  for (const [number, line] of loadLines(db, id)) {
    const message = parsed(line) as { effects?: never[] } | undefined
    if (message) saveEffects(db, id, { number, message }, projectId, folders, process.platform)
  }
  db.prepare(`update conversation set held = ${ROW_COUNTS} where id = @id`).run({ id })
}

/** Marks the units to be read again: from the source if it exists, else from raw records if they are complete. */
function readAgain(db: Db, id: number): boolean {
  const units = rowQuery(
    db,
    `select u.* from unit u where u.id = (select unit_id from conversation where id = @id) or u.id in
       (select l.unit_id from conversation c join claim l on l.native_id = c.native_id join unit n on n.id = l.unit_id and n.source = c.source where c.id = @id)`,
    TABLES.unit,
  ).all({ id })
  const useful = units.filter(
    (unit) => unit.state === "present" || (unit.raw_withheld !== 1 && hasIntactRecords(db, unit)),
  )
  const again = db.prepare("update unit set connector_version = 0 where id = ?")
  for (const unit of useful) again.run(unit.id)
  return useful.length > 0
}
