import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { syncToDisk } from "../../core/copy-file.ts"
import { DexError } from "../../core/error.ts"
import { type Db, distrustSchema, explainError, isBusy, type Migrations, removeDatabase } from "../sqlite/database.ts"
import { openSqlite } from "../sqlite/engine.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { BACKUP_FILE_TABLE, historyIdIn, isOwnDatabase, openForeignHistory, unpackAll } from "./foreign-file.ts"

/** The contents of a backup, as counted in its file. */
export type BackupContent = { historyId: string; conversations: number; messages: number; blocks: number }

/**
 * Writes the history and dex's smaller databases to one file. The history is complete and from one instant, even if another
 * process writes to it meanwhile. The file gets its name only after it was verified, so a backup that exists is complete.
 */
export function writeBackup(db: Db, file: string, otherDatabases: Record<string, string>): BackupContent {
  const partial = `${file}.partial`
  rmSync(partial, { force: true })
  try {
    closeSync(openSync(partial, "wx", 0o600))
    db.prepare("vacuum into ?").run(partial)
    chmodSync(partial, 0o600)
    addDatabases(partial, otherDatabases)
    const content = verifyBackup(partial)
    syncToDisk(partial)
    renameSync(partial, file)
    return content
  } catch (error) {
    rmSync(partial, { force: true })
    throw explainError(error, file)
  }
}

/** Adds dex's other databases as rows of a table, so that a backup is a single file. */
function addDatabases(path: string, otherDatabases: Record<string, string>): void {
  const copy = openSqlite(path)
  try {
    copy.exec(BACKUP_FILE_TABLE)
    for (const [name, source] of Object.entries(otherDatabases)) {
      if (!existsSync(source)) continue
      const temporary = `${path}.${name}`
      const otherDb = openSqlite(source, { timeout: 5_000 })
      try {
        rmSync(temporary, { force: true })
        closeSync(openSync(temporary, "wx", 0o600))
        otherDb.prepare("vacuum into ?").run(temporary)
        copy.prepare("insert or replace into kept_file (name, data) values (?, ?)").run(name, readFileSync(temporary))
      } finally {
        otherDb.close()
        rmSync(temporary, { force: true })
      }
    }
  } finally {
    copy.close()
  }
}

/**
 * Checks that the schema is dex's own, then reads every page and every block. Throws a DexError that describes the problem and
 * calls the file `name`.
 */
export function verifyBackup(path: string, name = path): BackupContent {
  const file = statSync(path, { throwIfNoEntry: false })
  if (!file) throw new DexError("no_file", `There is no file ${name}. Check the path.`)
  if (!file.isFile()) throw new DexError("not_a_file", `${name} is not a regular file.`)
  const db = openForeignHistory(path, name, { readonly: true })
  try {
    const blocks = unpackAll(db, path, name, (error) => throwDamaged(name, error))
    const count = (sql: string) => valueQuery(db, sql, "integer").get()!
    return {
      historyId: historyIdIn(db, name),
      conversations: count("select count(*) from conversation where kind <> 'document'"),
      messages: count("select ifnull(sum(message_count - copied_count), 0) from conversation where kind <> 'document'"),
      blocks,
    }
  } finally {
    db.close()
  }
}

function throwDamaged(name: string, error: unknown): never {
  throw new DexError(
    "corrupt",
    `${name} is damaged: one of its blocks cannot be decompressed. Use another copy of it.`,
    {
      cause: error,
    },
  )
}

/** The databases that a backup contains in addition to the history: the path to restore each to, and its schema. */
export type BackupDatabases = Record<string, { target: string; migrations: Migrations }>

/**
 * Restores the other databases of a backup to their paths, but never replaces a file there. Then removes them from the backup, so
 * that only the history is left. Returns the names of the databases that were refused because dex did not write them.
 */
export function extractDatabases(path: string, databases: BackupDatabases): string[] {
  const db = openSqlite(path)
  try {
    distrustSchema(db)
    const hasTable = db.prepare("select 1 from sqlite_schema where name = 'kept_file'").get() !== undefined
    const refused: string[] = []
    for (const [name, { target, migrations }] of hasTable ? Object.entries(databases) : []) {
      const data = db.prepare("select data from kept_file where name = ?").pluck().get(name)
      if (data === undefined || existsSync(target)) continue
      if (!restoreDatabase(data, target, migrations)) refused.push(name)
    }
    db.exec("drop table if exists kept_file")
    return refused
  } finally {
    db.close()
  }
}

/** Returns false if dex did not write this database. The restored file gets its name only after it was checked. */
function restoreDatabase(data: unknown, target: string, migrations: Migrations): boolean {
  const temporary = `${target}.restored`
  removeDatabase(temporary)
  try {
    if (!Buffer.isBuffer(data) || data.length === 0) return false
    writeFileSync(temporary, data, { mode: 0o600, flag: "wx" })
    if (!isOwnDatabase(temporary, migrations)) return false
    syncToDisk(temporary)
    renameSync(temporary, target)
    return true
  } finally {
    removeDatabase(temporary)
  }
}

/** Merges a database's write-ahead log into it, so that only one file has to be renamed. */
export function mergeLog(path: string): "done" | "in use" | "damaged" {
  let db: Db | undefined
  try {
    db = openSqlite(path, { timeout: 0 })
    distrustSchema(db)
    db.pragma("locking_mode = exclusive")
    db.exec("begin exclusive; rollback")
    return db.pragma("journal_mode = delete", { simple: true }) === "delete" ? "done" : "in use"
  } catch (error) {
    return isBusy(error) ? "in use" : "damaged"
  } finally {
    db?.close()
  }
}
