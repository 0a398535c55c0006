import { statSync } from "node:fs"
import { copyPrivately } from "../../core/copy-file.ts"
import { codeOf, DexError, isDexError, messageOf } from "../../core/error.ts"
import { lookAt } from "../../core/look-at.ts"
import { RefusedFile, readStart } from "../../core/read-file.ts"
import { type Db, distrustSchema, explainError, hasSchemaOf, type Migrations } from "../sqlite/database.ts"
import { openSqlite } from "../sqlite/engine.ts"
import { pragmaValue, valueQuery } from "../sqlite/typed-query.ts"
import { MAX_BLOCK_BYTES, unpackBytes } from "./codec.ts"
import { HISTORY_MIGRATIONS } from "./migrations.ts"

// Opens databases that a user provides: a backup, another machine's history. Such a file may be damaged or malicious. SQLite runs
// code that is part of a file's schema (triggers, views, generated columns, expressions in indexes and checks), so only the
// schema is read until it is known to be exactly what dex writes.

/** Creates the table in which a backup contains dex's other databases, one complete file per row. */
export const BACKUP_FILE_TABLE = "create table if not exists kept_file (name text primary key, data blob not null)"

/**
 * Copies a database and its write-ahead log to a path that only the owner can read, so that SQLite never opens the original. A
 * rollback journal is not copied: dex writes none, and a journal can name any other file on this machine, which SQLite then
 * deletes.
 */
export function copyForeign(file: string, to: string): void {
  try {
    // Look before copying: the file may be larger than the disk.
    if (lookAt(file) !== undefined && !isDatabaseOrEmpty(readStart(file, SQLITE_MARK.length))) throw notAHistory(file)
    if (!copyPrivately(file, to, { toDisk: true }))
      throw new DexError("no_file", `There is no file ${file}. Check the path.`)
    copyPrivately(`${file}-wal`, `${to}-wal`, { toDisk: true })
  } catch (error) {
    if (error instanceof RefusedFile) throw new DexError("not_a_file", `${file} is ${error.message}.`)
    if (codeOf(error) === "ELOOP") throw new DexError("not_a_file", `${file} is a link that leads to itself.`)
    throw isDexError(error) ? error : explainError(error, file)
  }
}

const SQLITE_MARK = Buffer.from("SQLite format 3\0")

function isDatabaseOrEmpty(start: Buffer): boolean {
  return start.length === 0 || start.equals(SQLITE_MARK)
}

/** Opens a history that a user provided, and checks its schema and its pages. Error messages call it `name`. */
export function openForeignHistory(path: string, name: string, options: { readonly?: boolean } = {}): Db {
  return openForeign(path, name, HISTORY_MIGRATIONS, options)
}

function openForeign(path: string, name: string, migrations: Migrations, options: { readonly?: boolean } = {}): Db {
  if (statSync(path).size === 0)
    throw new DexError("not_a_history", `${name} is empty, so it is not a dex history. Use another copy of it.`)
  let db: Db | undefined
  try {
    db = openSqlite(path, { ...options, fileMustExist: true })
    distrustSchema(db)
    db.pragma("cell_size_check = on")
    db.pragma("mmap_size = 0")
    requireOwnSchema(db, name, migrations)
    const problems = valueQuery(db, "pragma integrity_check(5)", "text")
      .all()
      .filter((line) => line !== "ok")
    if (problems.length > 0)
      throw new DexError("corrupt", `${name} is damaged: ${problems[0]}. Use another copy of it.`)
    return db
  } catch (error) {
    db?.close()
    throw isDexError(error) ? error : notAHistory(name, error)
  }
}

/** Throws unless the schema is exactly dex's. Reads only the version number and the text of the schema. */
function requireOwnSchema(db: Db, name: string, migrations: Migrations): void {
  const version = pragmaValue(db, "user_version", "integer")
  if (version > migrations.length)
    throw new DexError(
      "newer_schema",
      `${name} was written by a newer dex (schema ${version}, this one knows ${migrations.length}). Update dex: npm install -g dexctx@latest`,
    )
  if (version < 1 || db.pragma("encoding", { simple: true }) !== "UTF-8") throw notAHistory(name)
  const appliedMigrations = migrations.slice(0, version)
  if (hasSchemaOf(db, appliedMigrations) || hasSchemaOf(db, [...appliedMigrations, ["kept-files", BACKUP_FILE_TABLE]]))
    return
  const foreignTypes = db
    .prepare("select distinct type from sqlite_schema where type in ('trigger', 'view')")
    .pluck()
    .all()
  const details = foreignTypes.length > 0 ? ` It has a ${foreignTypes.join(" and a ")}, and dex writes none.` : ""
  throw new DexError(
    "foreign_schema",
    `${name} does not have the tables of a history that dex wrote: it is damaged, or somebody changed it.${details} Nothing in it was used. Use another copy of it.`,
  )
}

function notAHistory(name: string, error?: unknown): DexError {
  const reason = error === undefined ? "" : ` (${messageOf(error)})`
  return new DexError(
    "not_a_history",
    `${name} is not a dex history, or it is damaged${reason}. Nothing in it was used. Check the path, or use another copy of it.`,
    {
      cause: error,
    },
  )
}

/** Returns the id of a history that a user provided. Throws a DexError if it has none. */
export function historyIdIn(db: Db, name: string): string {
  const id = db.prepare("select value from meta where key = 'history_id'").pluck().get()
  if (typeof id !== "string" || id === "" || id.length > MAX_ID_LENGTH) throw notAHistory(name)
  return id
}

const MAX_ID_LENGTH = 200

/** True if the file is a dex database that this or an older version wrote. */
export function isOwnDatabase(path: string, migrations: Migrations): boolean {
  try {
    openForeign(path, path, migrations).close()
    return true
  } catch {
    return false // damaged, or a different kind of file
  }
}

/** The largest plausible ratio of unpacked to packed size: dex's data compresses to between a tenth and a fourth. */
const MAX_RATIO = 100
/** Unpacked bytes that are allowed on top of that ratio, because a small file full of repetitions compresses much better. */
const EXTRA_BYTES = 256 << 20

/**
 * Unpacks every block once and returns the number of blocks. Calls `onBroken` for each block that cannot be unpacked. Throws a
 * DexError if their total size exceeds what dex could have packed into a file of this size.
 */
export function unpackAll(db: Db, path: string, name: string, onBroken: (error: unknown) => void): number {
  const maxBytes = EXTRA_BYTES + MAX_RATIO * statSync(path).size
  let [bytes, blockCount] = [0, 0]
  for (const table of ["select data from body", "select data from raw"]) {
    for (const data of db.prepare(table).pluck().iterate()) {
      blockCount++
      try {
        bytes += unpackBytes(data as Buffer).length
      } catch (error) {
        onBroken(error)
        if (codeOf(error) === "ERR_BUFFER_TOO_LARGE") bytes += MAX_BLOCK_BYTES
      }
      if (bytes > maxBytes)
        throw new DexError(
          "too_large",
          `${name} unpacks to more than ${Math.round(maxBytes / 1e6)} MB, more than dex packs into a file of its size: somebody changed it. Use another copy of it.`,
        )
    }
  }
  return blockCount
}
