import { copyPrivately } from "../../../core/copy-file.ts"
import { codeOf, DexError } from "../../../core/error.ts"
import { type Db, hasSchemaOf, inTransaction, openDatabase, removeDatabase } from "../../sqlite/database.ts"
import { openSqlite } from "../../sqlite/engine.ts"
import { restoreCollections } from "../collections.ts"
import { HISTORY_MIGRATIONS } from "../migrations.ts"
import type { StoredRow } from "./checked-rows.ts"
import { repairFiles } from "./damaged-files.ts"
import { READ_UNKNOWN_CLAIMS } from "./heal.ts"
import { type HistoryValue, isIntact, registerRowSum, SUMMED_COLUMNS, SUMMED_TABLES, type SummedTable } from "./sums.ts"
import { createSumTriggers, tableSql } from "./table-sql.ts"

/**
 * Creates a new history from every row of a damaged file that SQLite can still read, and returns the number of rows. Rows with a
 * wrong checksum are left out. Units that lost rows, or whose conversations did, are marked to be read again. Throws if the marks
 * of forgotten conversations cannot all be read, since those conversations could come back.
 */
export function copyReadable(from: string, to: string): number {
  const [, copy] = repairFiles(from)
  const old = openDamaged(from, copy)
  const db = openDatabase(to, HISTORY_MIGRATIONS)
  try {
    registerRowSum(db)
    let rowCount = 0
    inTransaction(db, () => {
      for (const table of SUMMED_TABLES) {
        const { isComplete, copied } = copyTable(old, db, table)
        rowCount += copied
        if (table === "tombstone" && !isComplete && !copyMarks(old, db))
          throw new DexError("corrupt", "the marks of forgotten conversations cannot be read")
      }
    })
    createSumTriggers(db)
    inTransaction(db, () => restoreLostRows(old, db))
    db.pragma("journal_mode = delete")
    return rowCount
  } finally {
    old.close()
    db.close()
    removeDatabase(copy)
  }
}

/**
 * Opens a damaged file. If its schema is damaged, opens a copy with the correct schema, because a table whose schema is not valid
 * SQL cannot be read.
 */
function openDamaged(from: string, copy: string): Db {
  const old = openTolerantly(from, true)
  if (hasSchemaOf(old, HISTORY_MIGRATIONS)) return old
  removeDatabase(copy)
  for (const suffix of ["", "-wal"]) copyPrivately(from + suffix, copy + suffix)
  const db = openTolerantly(copy, false)
  try {
    restoreSchema(db)
  } catch (error) {
    if (!codeOf(error).startsWith("SQLITE_")) throw error
    return old
  } finally {
    db.close()
  }
  old.close()
  return openTolerantly(copy, true)
}

/** Opens a database so that tables can be read even if the schema of another table is damaged. */
function openTolerantly(path: string, readonly: boolean): Db {
  const db = openSqlite(path, { readonly, fileMustExist: true })
  db.unsafeMode(true)
  db.pragma("writable_schema = on")
  return db
}

type SchemaRow = { id: number; type: string; name: string; tbl_name: string; sql: string | null }

/** Restores the schema, except for the number of each table's first page: everything else is the same in every history. */
function restoreSchema(db: Db): void {
  const selectSchema = "select rowid as id, type, name, tbl_name, sql from sqlite_schema order by rowid"
  const emptyHistory = openSqlite(":memory:")
  for (const [, sql] of HISTORY_MIGRATIONS) emptyHistory.exec(sql)
  const expected = emptyHistory.prepare(selectSchema).all() as SchemaRow[]
  emptyHistory.close()
  const damaged = db.prepare(selectSchema).all() as SchemaRow[]
  const restore = (matches: (row: SchemaRow, expectedRow: SchemaRow) => boolean) => {
    for (const expectedRow of [...expected]) {
      const row = damaged.find((candidate) => matches(candidate, expectedRow))
      if (!row) continue
      const sql = "update sqlite_schema set type = ?, name = ?, tbl_name = ?, sql = ? where rowid = ?"
      db.prepare(sql).run(expectedRow.type, expectedRow.name, expectedRow.tbl_name, expectedRow.sql, row.id)
      damaged.splice(damaged.indexOf(row), 1)
      expected.splice(expected.indexOf(expectedRow), 1)
    }
  }
  restore((row, expectedRow) => row.name === expectedRow.name)
  restore((row, expectedRow) => expectedRow.sql !== null && row.sql === expectedRow.sql)
  // If one damaged row and one expected row are left, they belong together.
  if (expected.length === 1 && damaged.length === 1) restore(() => true)
}

/** Copies a table from its beginning and, if a damaged page prevents reading on, from its end. */
function copyTable(old: Db, db: Db, table: SummedTable): { isComplete: boolean; copied: number } {
  const { insert, forward, backward } = tableSql(table)
  // Match columns by position, because the names in a damaged schema may be wrong.
  const names = (db.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name)
  const save = db.prepare(insert)
  let copied = 0
  let isComplete = true
  const copy = (values: HistoryValue[]) => {
    const row = Object.fromEntries(names.map((name, i) => [name, values[i] ?? null])) as StoredRow
    if (!isIntact(db, table, row)) isComplete = false
    else copied += save.run(...SUMMED_COLUMNS[table].map((name) => row[name]), row.sum).changes
  }
  if (!readRows(old, forward, copy)) {
    isComplete = false
    readRows(old, backward, copy)
  }
  return { isComplete, copied }
}

/** Returns false if the table cannot be read to the end. */
function readRows(old: Db, sql: string, onRow: (values: HistoryValue[]) => void): boolean {
  const rows = readUntilDamage(old, sql)
  for (let next = rows.next(); ; next = rows.next()) {
    if (next.done) return next.value
    onRow(next.value)
  }
}

function* readUntilDamage(old: Db, sql: string): Generator<HistoryValue[], boolean> {
  try {
    for (const values of old.prepare(sql).raw().iterate()) yield values as HistoryValue[]
    return true
  } catch (error) {
    if (!codeOf(error).startsWith("SQLITE_")) throw error
    return false
  }
}

/** Copies the marks of forgotten conversations from the index with their copies. Returns false if not all can be read. */
function copyMarks(old: Db, db: Db): boolean {
  const save = db.prepare("insert or ignore into tombstone (hash) values (?)")
  return readRows(old, "select hash from tombstone indexed by tombstone_copy", ([hash]) => void save.run(hash))
}

/** Restores what the indexes still contain of lost rows, such as the names of units, conversations and projects. */
function restoreLostRows(old: Db, db: Db): void {
  readRows(old, "select key, value from meta indexed by meta_copy", (row) => void db.prepare(INSERT_META).run(...row))
  readRows(old, SELECT_UNIT_NAMES, (row) => void db.prepare(INSERT_UNIT).run(...row))
  readRows(
    old,
    "select native_id, unit_id from claim indexed by claim_unit",
    (row) => void db.prepare(INSERT_CLAIM).run(...row),
  )
  readRows(old, SELECT_CONVERSATION_NAMES, ([id, source, name]) => {
    if (db.prepare("select 1 from conversation where id = ?").get(id)) return
    const unit = db.prepare(SELECT_UNIT).pluck().get(name, source)
    if (unit === undefined) return
    db.prepare(INSERT_CONVERSATION).run({ id, source, name, unit })
    db.prepare("update unit set connector_version = 0 where id = ?").run(unit)
  })
  db.prepare(READ_LOST_CONVERSATIONS).run()
  readRows(old, SELECT_PROJECT_NAMES, (row) => void db.prepare(INSERT_PROJECT).run(...row))
  restoreCollections(db)
  for (const sql of [READ_UNKNOWN_CLAIMS, ...DELETE_ORPHANS]) db.prepare(sql).run()
  db.prepare(ADD_UNKNOWN_PROJECTS).run()
  const change = db.prepare(SELECT_LAST_CHANGE).pluck().get()
  db.prepare("insert or replace into meta (key, value) values ('change_seq', ?)").run(String(change))
  // With a new id, every index that follows the history is rebuilt.
  db.prepare("insert or replace into meta (key, value) values ('history_id', ?)").run(globalThis.crypto.randomUUID())
}

const INSERT_META = "insert or ignore into meta (key, value) values (?, ?)"
const INSERT_CLAIM = "insert or ignore into claim (native_id, unit_id) values (?, ?)"
const SELECT_UNIT_NAMES = "select id, source, key, key from unit indexed by sqlite_autoindex_unit_1"
const INSERT_UNIT = `insert or ignore into unit (id, source, key, path, stamp, cursor, born_at, modified_at, connector_version, redaction_version, state)
  values (?, ?, ?, ?, '', 'null', 0, 0, 0, 0, 'archived')`
const SELECT_CONVERSATION_NAMES =
  "select id, source, native_id from conversation indexed by sqlite_autoindex_conversation_1"
const SELECT_UNIT =
  "select l.unit_id from claim l join unit u on u.id = l.unit_id where l.native_id = ? and u.source = ? order by l.unit_id limit 1"
const INSERT_CONVERSATION = `insert or ignore into conversation (id, source, native_id, unit_id, authority, kind, message_count, last_number, estimated_tokens, text_bytes, change_seq)
  values (@id, @source, @name, @unit, 0, 'person', 0, ifnull((select max(number) from message where conversation_id = @id), 0), 0, 0, 0)`
const READ_LOST_CONVERSATIONS = `update unit set connector_version = 0 where id in (select l.unit_id from claim l join unit u on u.id = l.unit_id
  where not exists (select 1 from conversation c where c.source = u.source and c.native_id = l.native_id))`
const SELECT_PROJECT_NAMES = "select id, path from project indexed by sqlite_autoindex_project_1"
// Marks a restored project as private, because the lost row may have been.
const INSERT_PROJECT = "insert or ignore into project (id, path, private) values (?, ?, 1)"
const ADD_UNKNOWN_PROJECTS = `insert or ignore into project (id, path, private)
  select distinct project_id, '(unknown project ' || project_id || ')', 1 from conversation where project_id not in (select id from project)`
/** Deletes rows without an owner, which a new conversation or unit with the same id could otherwise inherit. */
const DELETE_ORPHANS = [
  "delete from conversation where unit_id not in (select id from unit)",
  ...["message", "body", "touch", "command", "made"].map((table) =>
    ["delete from", table, "where conversation_id not in (select id from conversation)"].join(" "),
  ),
  ...["raw", "claim"].map((table) => ["delete from", table, "where unit_id not in (select id from unit)"].join(" ")),
]
const SELECT_LAST_CHANGE = `select max(n) from (select ifnull(max(change_seq), 0) as n from conversation union all select ifnull(max(change_seq), 0) from deletion
  union all select ifnull(max(version), 0) from message union all select cast(value as integer) from meta where key = 'change_seq')`
