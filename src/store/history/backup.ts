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

/** A backup's content, counted by reading the written file. */
export type BackupContent = { historyId: string; conversations: number; messages: number; blocks: number }

/**
 * Writes one file with the complete history, as it was at one instant even if others read or write meanwhile, and with dex's
 * small state databases. The file gets its name only after it was verified, so a backup that exists is complete.
 */
export function writeBackup(db: Db, file: string, otherDatabases: Record<string, string>): BackupContent {
  const partial = `${file}.partial`
  rmSync(partial, { force: true })
  try {
    closeSync(openSync(partial, "wx", 0o600))
    db.prepare("vacuum into ?").run(partial)
    chmodSync(partial, 0o600)
    addFiles(partial, otherDatabases)
    const content = verifyBackup(partial)
    syncToDisk(partial)
    renameSync(partial, file)
    return content
  } catch (error) {
    rmSync(partial, { force: true })
    throw explainError(error, file)
  }
}

/** Adds other databases of dex as rows, because one file is easier to look after than three. */
function addFiles(path: string, otherDatabases: Record<string, string>): void {
  const copy = openSqlite(path)
  try {
    copy.exec(BACKUP_FILE_TABLE)
    for (const [name, source] of Object.entries(otherDatabases)) {
      if (!existsSync(source)) continue
      const temporary = `${path}.${name}`
      const other = openSqlite(source, { timeout: 5_000 })
      try {
        rmSync(temporary, { force: true })
        closeSync(openSync(temporary, "wx", 0o600))
        other.prepare("vacuum into ?").run(temporary)
        copy.prepare("insert or replace into kept_file (name, data) values (?, ?)").run(name, readFileSync(temporary))
      } finally {
        other.close()
        rmSync(temporary, { force: true })
      }
    }
  } finally {
    copy.close()
  }
}

/**
 * Checks that the schema is dex's own, then reads every page and every block. Throws a DexError that describes the problem;
 * messages call the file `name`.
 */
export function verifyBackup(path: string, name = path): BackupContent {
  const file = statSync(path, { throwIfNoEntry: false })
  if (!file) throw new DexError("no_file", `There is no file ${name}.`)
  if (!file.isFile()) throw new DexError("not_a_file", `${name} is not a regular file.`)
  const db = openForeignHistory(path, name, { readonly: true })
  try {
    const blocks = unpackAll(db, path, name, (error) => refuseBroken(name, error))
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

function refuseBroken(name: string, error: unknown): never {
  throw new DexError("corrupt", `${name} is damaged: a block of it cannot be unpacked. Use another copy of it.`, {
    cause: error,
  })
}

/** The databases that a backup contains in addition to the history: the path to restore each to, and its schema. */
export type BackupDatabases = Record<string, { place: string; migrations: Migrations }>

/**
 * Moves the databases of a backup to their paths, if nothing exists there and dex wrote them, and leaves a plain history. Returns
 * the names of those that dex did not write.
 */
export function extractFiles(path: string, files: BackupDatabases): string[] {
  const db = openSqlite(path)
  try {
    distrustSchema(db)
    const hasTable = db.prepare("select 1 from sqlite_schema where name = 'kept_file'").get() !== undefined
    const refused: string[] = []
    for (const [name, { place, migrations }] of hasTable ? Object.entries(files) : []) {
      const data = db.prepare("select data from kept_file where name = ?").pluck().get(name)
      if (data === undefined || existsSync(place)) continue
      if (!restoreDatabase(data, place, migrations)) refused.push(name)
    }
    db.exec("drop table if exists kept_file")
    return refused
  } finally {
    db.close()
  }
}

/** Returns false if dex did not write this database. The file gets its name only once it is complete. */
function restoreDatabase(data: unknown, place: string, migrations: Migrations): boolean {
  const temporary = `${place}.restored`
  removeDatabase(temporary)
  try {
    if (!Buffer.isBuffer(data) || data.length === 0) return false
    writeFileSync(temporary, data, { mode: 0o600, flag: "wx" })
    if (!isOwnDatabase(temporary, migrations)) return false
    syncToDisk(temporary)
    renameSync(temporary, place)
    return true
  } finally {
    removeDatabase(temporary)
  }
}

/** Merges a database's log into the database, so that a single file can be renamed. */
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
