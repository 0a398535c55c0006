import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
} from "node:fs"
import { dirname } from "node:path"
import { codeOf, DexError, diskError, isDexError, messageOf } from "../../core/error.ts"
import { type Db, openSqlite, type Statement } from "./engine.ts"
import { pragmaValue, valueQuery } from "./typed-query.ts"

export type { Db } from "./engine.ts"

/** How long to wait for another process's transaction, in milliseconds; users should never see SQLITE_BUSY. */
const BUSY_TIMEOUT_MS = 30_000
const SHORT_WAIT_MS = 200
const CACHE_KB = 16_000

/**
 * Opens one of dex's own databases, updates its schema, and leaves it in WAL mode. Many processes may open the same new file at
 * once, so this waits for the switch to WAL, which SQLite itself does not do, and migrates in one transaction.
 */
export function openDatabase(
  path: string,
  migrations: readonly [name: string, sql: string][],
  cacheKb = CACHE_KB,
  busyMs = BUSY_TIMEOUT_MS,
): Db {
  makePrivateFile(path)
  const db = connect(path, busyMs)
  try {
    requireSafeSqlite(db)
    distrustSchema(db)
    enterWal(db, busyMs)
    requireIntactHeader(db, path)
    db.pragma("synchronous = normal")
    // This cache size keeps a query over a million messages under 300 MB.
    db.pragma(`cache_size = -${cacheKb}`)
    // Keys are hashes, so every checkpoint writes pages all over the file. That is why it happens every 32 MB and not every 4 MB.
    db.pragma("wal_autocheckpoint = 8000")
    db.pragma("journal_size_limit = 67108864")
    db.pragma("secure_delete = on")
    db.pragma("temp_store = memory")
    migrate(db, path, migrations)
    return db
  } catch (error) {
    db.close()
    throw explainError(error, path)
  }
}

/** Prevents code in a file's schema from calling functions that could do harm. */
export function distrustSchema(db: Db): void {
  db.pragma("trusted_schema = off")
}

/** Opens a database that can be recreated from others. If it is damaged, or a newer dex wrote it, deletes it and starts anew. */
export function openDerivedDatabase(path: string, migrations: readonly [name: string, sql: string][]): Db {
  if (isMarkedDamaged(path)) removeDatabase(path)
  try {
    return openDatabase(path, migrations)
  } catch (error) {
    if (!isDexError(error) || !["corrupt", "newer_schema"].includes(error.code)) throw error
    removeDatabase(path)
    return openDatabase(path, migrations)
  }
}

/** Copies the current state to a new file. Does nothing if it cannot be read completely or the disk is full. */
export function copyDatabase(db: Db, path: string): void {
  const building = `${path}.building`
  try {
    removeDatabase(building)
    db.prepare("vacuum into ?").run(building)
    chmodSync(building, 0o600)
    renameSync(building, path)
  } catch {
    removeDatabase(building)
  }
}

/** Marks a database as damaged: from then on readers ignore it, and the next writer rebuilds it from scratch. */
export function markDamaged(path: string): void {
  try {
    closeSync(openSync(`${path}.damaged`, "a", 0o600))
  } catch {
    // dex's folder is read-only. The next reader will notice the damage again.
  }
}

export function isMarkedDamaged(path: string): boolean {
  return existsSync(`${path}.damaged`)
}

/**
 * Opens a database for readers that may neither wait nor change anything. Returns undefined if there is no file, or if it has
 * another schema, which a process with more time will update. `version` is the number of its migrations.
 */
export function openReadOnly(path: string, version: number, busyMs: number): Db | undefined {
  if (!existsSync(path)) return undefined
  const db = withStatementCache(openSqlite(path, { timeout: busyMs, readonly: true, fileMustExist: true }))
  distrustSchema(db)
  if (db.pragma("user_version", { simple: true }) === version) return db
  db.close()
  return undefined
}

/** Throws a DexError if another process has the file open and the system refuses to delete it (Windows). */
export function removeDatabase(path: string): void {
  try {
    for (const suffix of ["", "-wal", "-shm", ".damaged"]) rmSync(path + suffix, { force: true })
  } catch (error) {
    if (!isOpenElsewhere(error)) throw error
    throw new DexError(
      "in_use",
      `${path} cannot be rebuilt because another program has it open, most likely an agent that dex serves. Close your agents, then run this again.`,
      { cause: error },
    )
  }
}

/** Whether a file could not be removed or replaced because another process has it open. */
export function isOpenElsewhere(error: unknown): boolean {
  const code = codeOf(error)
  return code === "EBUSY" || (process.platform === "win32" && (code === "EPERM" || code === "EACCES"))
}

/** Runs a transaction that begins with the write lock, because one that reads first and writes later can fail without waiting. */
export function inTransaction<T>(db: Db, work: () => T): T {
  const connection = db as PreparableDb
  const prepare = connection[BEFORE_WRITING]
  connection[BEFORE_WRITING] = undefined
  prepare?.()
  return db.transaction(work).immediate()
}

/** Runs several reads of the same state, even if others write meanwhile. Do not write in `work`. */
export function inReadTransaction<T>(db: Db, work: () => T): T {
  return db.transaction(work).deferred()
}

/**
 * Moves everything from the write-ahead log into the database and empties the log. Returns false if a reader still uses pages
 * that this would overwrite. A reader may take a long time, so the wait is shorter than for a writer.
 */
export function emptyLog(db: Db, waitMs = SHORT_WAIT_MS): boolean {
  const previous = pragmaValue(db, "busy_timeout", "integer")
  db.pragma(`busy_timeout = ${waitMs}`)
  try {
    return pragmaValue(db, "wal_checkpoint(truncate)", "integer") === 0 // the first column is 0 unless the log was busy
  } catch (error) {
    if (isBusy(error) || codeOf(error).startsWith("SQLITE_LOCKED")) return false
    throw error
  } finally {
    db.pragma(`busy_timeout = ${previous}`)
  }
}

/**
 * The key of a function that is stored on the connection itself, because the program is bundled in chunks, each with its own copy
 * of this module.
 */
const BEFORE_WRITING = Symbol.for("dex.before-writing")
type PreparableDb = Db & { [BEFORE_WRITING]?: (() => void) | undefined }

/** Calls `prepare` before a connection writes for the first time, because most connections only read. */
export function beforeFirstWrite(db: Db, prepare: () => void): void {
  ;(db as PreparableDb)[BEFORE_WRITING] = prepare
}

function requireIntactHeader(db: Db, path: string): void {
  const damaged = headerDamage(db, path)
  if (damaged !== undefined) throw corruptError(path, damaged)
}

function corruptError(path: string, what: string, cause?: unknown): DexError {
  return new DexError("corrupt", `${path} is damaged (${what}). Run \`dex doctor\` to see what can be saved.`, {
    cause,
  })
}

function connect(path: string, busyMs: number): Db {
  try {
    return withStatementCache(openSqlite(path, { timeout: busyMs }))
  } catch (error) {
    throw explainError(error, path)
  }
}

/** Compiling a statement costs as much as running it, so each text is compiled once per connection. */
export function withStatementCache(db: Db): Db {
  const compile = db.prepare.bind(db)
  const cache = new Map<string, Statement>()
  db.prepare = ((sql: string) => {
    const cached = cache.get(sql)
    if (cached) return cached
    const statement = compile(sql)
    cache.set(sql, statement)
    return statement
  }) as Db["prepare"]
  return db
}

/**
 * Throws a DexError for SQLite 3.7.0 to 3.51.2, unless the fix was backported: these versions can corrupt a WAL database that two
 * processes write and checkpoint at the same instant.
 */
function requireSafeSqlite(db: Db): void {
  const version = valueQuery(db, "select sqlite_version()", "text").get()!
  if (isSafeSqlite(version)) return
  throw new DexError(
    "unsafe_sqlite",
    `The SQLite in use is ${version}, which can corrupt a database that several processes share. Reinstall dex: it brings its own.`,
  )
}

export function isSafeSqlite(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number)
  if (major !== 3) return major > 3
  if (minor === 44) return patch >= 6
  if (minor === 50) return patch >= 7
  return minor > 51 || (minor === 51 && patch >= 3)
}

function enterWal(db: Db, busyMs: number): void {
  const deadline = Date.now() + busyMs
  for (;;) {
    try {
      if (db.pragma("journal_mode = wal", { simple: true }) === "wal") return
    } catch (error) {
      if (!isBusy(error) || Date.now() > deadline) throw error
    }
    if (Date.now() > deadline)
      throw new DexError("busy", "Another program keeps the database locked. Try again in a moment.")
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
  }
}

function migrate(db: Db, path: string, migrations: readonly [name: string, sql: string][]): void {
  const version = () => pragmaValue(db, "user_version", "integer")
  if (version() === migrations.length) return
  inTransaction(db, () => {
    const appliedCount = version()
    if (isSingleBit(appliedCount ^ migrations.length) && hasSchemaOf(db, migrations))
      throw corruptError(path, "its version number changed")
    if (appliedCount > migrations.length) {
      throw new DexError(
        "newer_schema",
        `${path} was written by a newer dex (schema ${appliedCount}, this one knows ${migrations.length}). Update dex: npm install -g dexctx@latest`,
      )
    }
    for (const [, sql] of migrations.slice(appliedCount)) db.exec(sql)
    db.pragma(`user_version = ${migrations.length}`)
  })
}

function isSingleBit(difference: number): boolean {
  return difference !== 0 && (difference & (difference - 1)) === 0
}

/** Like `explainError`, but also recognises errors that come from a damaged schema, which may still be valid SQL. */
export function explainSchemaError(db: Db, migrations: Migrations, error: unknown, path: string): Error {
  const mayBeSchema = codeOf(error) === "SQLITE_ERROR" || error instanceof TypeError
  return mayBeSchema && !hasSchemaOf(db, migrations)
    ? corruptError(path, "its schema changed", error)
    : explainError(error, path)
}

export type Migrations = readonly [name: string, sql: string][]

/** Whether the schema is exactly what these migrations create. Every migration changes it, so this also proves the version. */
export function hasSchemaOf(db: Db, migrations: Migrations): boolean {
  const selectSchema = "select type, name, tbl_name, sql from sqlite_schema order by name"
  // Versions of SQLite may use different white space.
  const readSchema = (database: Db) =>
    JSON.stringify(database.prepare(selectSchema).all()).replace(/(\s|\\[nt])+/g, " ")
  const emptyDb = openSqlite(":memory:")
  try {
    for (const [, sql] of migrations) emptyDb.exec(sql)
    return readSchema(emptyDb) === readSchema(db)
  } catch {
    return false // the file cannot be read at all
  } finally {
    emptyDb.close()
  }
}

/**
 * Creates a file that only its owner can read, because transcripts contain secrets that no rule recognises. SQLite gives the
 * log files the mode of the database, so the file only has to be private before SQLite opens it.
 */
function makePrivateFile(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    if (!existsSync(path)) closeSync(openSync(path, "a", 0o600))
  } catch (error) {
    throw explainError(error, path)
  }
}

/** Whether an error means that another process has locked the database. */
export function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith("SQLITE_BUSY")
}

/** The free space, in bytes, that SQLite needs next to a database even for reading it. */
const MIN_BYTES = 256 << 10

export function hasNoRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize < MIN_BYTES
  } catch {
    return false // the free space is unknown
  }
}

/** Converts the few errors that a database can cause to errors with a message that names the next step. */
export function explainError(error: unknown, path: string): Error {
  if (isDexError(error)) return error
  const code = codeOf(error)
  const dexError = (errorCode: string, text: string) => new DexError(errorCode, text, { cause: error })
  const diskProblem = diskError(error, path, () => hasNoRoom(dirname(path)))
  if (diskProblem) return diskProblem
  if (code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB" || isHeaderError(error, path)) {
    return corruptError(path, messageOf(error), error)
  }
  if (
    code === "SQLITE_READONLY" ||
    code.startsWith("SQLITE_READONLY") ||
    code === "EROFS" ||
    code === "EACCES" ||
    code === "EPERM"
  ) {
    return dexError(
      "read_only",
      `${path} cannot be written (${messageOf(error)}). Make the folder writable, or set DEX_HOME to one that is.`,
    )
  }
  if (code.startsWith("SQLITE_CANTOPEN") || code === "ENOTDIR" || code === "ENOENT") {
    return dexError(
      "cannot_open",
      `${path} cannot be opened (${messageOf(error)}). Check the folder, or set DEX_HOME to another one.`,
    )
  }
  return error instanceof Error ? error : new Error(String(error))
}

// Checks the header of a database file, which SQLite trusts. Its values are queried from SQLite and never read from the file,
// because closing the file would release the locks of other connections in this process.

/** Describes damage to the file's header, because of which SQLite could truncate the file or overwrite pages in use. */
function headerDamage(db: Db, path: string): string | undefined {
  if (db.pragma("encoding", { simple: true }) !== "UTF-8") return "its text encoding changed"
  if (db.pragma("auto_vacuum", { simple: true }) !== 0) return "its page format changed"
  // Another process may be writing between the two checks, but damage stays.
  return hasWrongLength(db, path) && hasWrongLength(db, path) ? "its length changed" : undefined
}

/** Whether an error comes from a file header with values that dex never writes. */
function isHeaderError(error: unknown, path: string): boolean {
  if (codeOf(error) === "SQLITE_ERROR") return messageOf(error) === "unsupported file format"
  return codeOf(error) === "SQLITE_READONLY" && isWritable(path)
}

/** Whether the file has the wrong length. The header's page count is only valid if no log has a later one. */
function hasWrongLength(db: Db, path: string): boolean {
  const isLogged = () => (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === undefined || isLogged()) return false
  const pageCount = pragmaValue(db, "page_count", "integer")
  return pageCount * pragmaValue(db, "page_size", "integer") !== size && !isLogged()
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    accessSync(dirname(path), constants.W_OK)
    return true
  } catch {
    return false
  }
}
