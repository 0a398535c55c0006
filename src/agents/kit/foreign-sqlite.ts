import { createHash } from "node:crypto"
import {
  type BigIntStats,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
} from "node:fs"
import { basename, join } from "node:path"
import type { DatabaseSync, StatementSync } from "node:sqlite"
import { copyPrivately } from "../../core/copy-file.ts"
import { codeOf } from "../../core/error.ts"
import { RefusedFile, readStart } from "../../core/read-file.ts"

export type ForeignValue = string | number | bigint | null
export type ForeignRow = Record<string, unknown>

/** A snapshot of another program's database. Valid only inside the call that provides it. */
export type ForeignDatabase = {
  all(sql: string, ...params: ForeignValue[]): ForeignRow[]
  iterate(sql: string, ...params: ForeignValue[]): Iterable<ForeignRow>
}

const MAX_ATTEMPTS = 4
const RETRY_PAUSE_MS = 30
const BUSY_TIMEOUT_MS = 5_000

/**
 * Reads another program's database and leaves no trace: it changes no byte, keeps no lock after the call and leaves no `-wal` or
 * `-shm`, whether the program is running or not, and in read-only folders too.
 * `use` may run more than once if the file changes meanwhile. It must consume its rows before it returns. Integers beyond 2^53
 * become decimal strings. Throws an Error that says what is wrong with the file.
 * A database that cannot be read in place is copied into `scratch`, once per state of the file. The copy stays there until the
 * owner of that folder removes it.
 */
export function withForeignDatabase<T>(path: string, use: (db: ForeignDatabase) => T, scratch?: string): T {
  return explainSqliteErrors(() => {
    const file = realpathSync(path)
    const copy = scratch && existingCopy(scratch, file, readDatabaseState(file))
    if (copy) return openCopy(copy, use)
    if (scratch) removeCopy(scratch, file)
    return readOrCopy(file, use, scratch)
  })
}

/**
 * Like withForeignDatabase, for reading a session that discovery has found. If discovery copied the database, reads that copy,
 * even if the program has written to the original since. So a sync copies a database only once, and reads exactly the state that
 * it found.
 */
export function withFoundDatabase<T>(path: string, use: (db: ForeignDatabase) => T, scratch?: string): T {
  return explainSqliteErrors(() => {
    const file = realpathSync(path)
    const copy = scratch && existingCopy(scratch, file)
    return copy ? openCopy(copy, use) : readOrCopy(file, use, scratch)
  })
}

function explainSqliteErrors<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw isSqliteError(error) ? new Error(`not readable as a database: ${error.message}`, { cause: error }) : error
  }
}

/**
 * Returns a text that differs whenever the content may differ. It covers the `-wal`, because in WAL mode a program may change
 * only that file for hours.
 */
export function databaseStamp(path: string): string {
  const file = realpathSync(path)
  const { size, mtimeMs } = statSync(file)
  const wal = statSync(`${file}-wal`, { throwIfNoEntry: false })
  return `${size}:${mtimeMs}:${wal && wal.size > 0 ? `${wal.size}:${wal.mtimeMs}` : ""}`
}

/** The columns of a table; empty if the table does not exist. Other programs' schemas differ by version. */
export function columnsOf(db: ForeignDatabase, table: string): Set<string> {
  return new Set(db.all("select name from pragma_table_info(?)", table).map((row) => String(row.name)))
}

/** Lists the tables, except views, the shadow tables of extensions (such as a full-text index), and SQLite's own tables. */
function tablesOf(db: ForeignDatabase): string[] {
  const sql = "select name from pragma_table_list where schema = 'main' and type = 'table' and name not glob 'sqlite_*'"
  return db.all(sql).map((row) => String(row.name))
}

function readOrCopy<T>(file: string, use: (db: ForeignDatabase) => T, scratch: string | undefined): T {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    if (attempt > 0) blockFor(RETRY_PAUSE_MS)
    const stateBefore = readDatabaseState(file)
    if (stateBefore.hasHotJournal) continue
    if (stateBefore.walBytes > 0) {
      if (!stateBefore.hasShm) break
      // without readonly_shm, a reader repairs (and so changes) the -shm that a killed program left
      try {
        return openSnapshot(sqliteUri(file, "mode=ro&readonly_shm=1"), use)
      } catch (error) {
        if (!isSqliteError(error) || !SHARING_ERRORS.has(error.errcode & 0xff)) throw error
        break
      }
    }
    const outcome = catchErrors(() => openSnapshot(sqliteUri(file, "immutable=1"), use))
    if (readDatabaseState(file).fingerprint !== stateBefore.fingerprint) continue
    if ("error" in outcome) throw outcome.error
    return outcome.value
  }
  if (scratch === undefined) throw new Error("it cannot be read in place, and there is no folder for a copy of it")
  return openCopy(makeCopy(scratch, file), use)
}

/** Opens the copy for writing, because that applies its log or rolls back its journal. */
function openCopy<T>(copy: string, use: (db: ForeignDatabase) => T): T {
  return openSnapshot(sqliteUri(copy, "mode=rw"), use)
}

/**
 * The SQLite errors BUSY, READONLY (no access to the -shm), IOERR, CANTOPEN and PROTOCOL: the file may be fine, but cannot be
 * shared.
 */
const SHARING_ERRORS = new Set([5, 8, 10, 14, 15])

function openSnapshot<T>(location: string, use: (db: ForeignDatabase) => T): T {
  const db = new (sqlite().DatabaseSync)(location)
  try {
    db.exec(
      `pragma busy_timeout = ${BUSY_TIMEOUT_MS}; pragma query_only = 1; pragma trusted_schema = 0; pragma temp_store = memory; begin`,
    )
    return use(wrapDatabase(db))
  } finally {
    db.close()
  }
}

function wrapDatabase(db: DatabaseSync): ForeignDatabase {
  const prepare = (sql: string): StatementSync => {
    const statement = db.prepare(sql)
    statement.setReadBigInts(true) // without this, one large number would make its row unreadable
    return statement
  }
  return {
    all: (sql, ...params) =>
      prepare(sql)
        .all(...params)
        .map(withoutBigInts),
    iterate: (sql, ...params) => iterateRows(prepare(sql), params),
  }
}

function* iterateRows(statement: StatementSync, params: ForeignValue[]): Generator<ForeignRow> {
  for (const row of statement.iterate(...params)) yield withoutBigInts(row)
}

function withoutBigInts(row: ForeignRow): ForeignRow {
  for (const key in row) {
    const value = row[key]
    if (typeof value === "bigint") row[key] = Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
  }
  return row
}

function sqliteUri(file: string, query: string): string {
  const slashed = process.platform === "win32" ? file.replaceAll("\\", "/") : file
  const absolute = slashed.startsWith("/") ? slashed : `/${slashed}`
  return `file://${absolute.replace(/[%?#]/g, encodeURIComponent)}?${query}`
}

/**
 * Loads the module `node:sqlite`, without Node 22's warning that the module is experimental, because the warning does not help a
 * user.
 */
function sqlite(): typeof import("node:sqlite") {
  const emitWarning = process.emitWarning
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule("node:sqlite")
  } finally {
    process.emitWarning = emitWarning
  }
}

type SqliteError = Error & { code: "ERR_SQLITE_ERROR"; errcode: number }

function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR" && "errcode" in error
}

function catchErrors<T>(work: () => T): { value: T } | { error: unknown } {
  try {
    return { value: work() }
  } catch (error) {
    return { error } // the caller decides, because a file that changed during the read looks corrupt
  }
}

/** The state of a database's files. Equal fingerprints mean equal content. */
type DatabaseState = {
  fingerprint: string
  /** The size of a copy in bytes. */
  bytes: number
  walBytes: number
  hasShm: boolean
  hasHotJournal: boolean
}

/** Throws if the database does not exist, or if one of its files is not a regular file. */
function readDatabaseState(file: string): DatabaseState {
  const main = statSync(file, { bigint: true })
  if (!main.isFile()) throw new RefusedFile("not a regular file")
  const { size, mtimeNs, ino } = main
  const [wal, journal, shm] = ["-wal", "-journal", "-shm"].map((suffix) => sidecarOf(file, suffix))
  const walBytes = Number(wal?.size ?? 0n)
  const hasHotJournal =
    journal !== undefined && journal.size > 0n && firstBytes(`${file}-journal`, 8).some((b) => b !== 0)
  return {
    fingerprint: [size, mtimeNs, ino, walBytes, walBytes > 0 ? wal?.mtimeNs : 0, hasHotJournal].join(":"),
    bytes: Number(size) + walBytes + Number(journal?.size ?? 0n),
    walBytes,
    hasShm: shm !== undefined,
    hasHotJournal,
  }
}

/**
 * Returns the stats of the database's -wal, -journal or -shm file, or undefined if there is none. Throws if it is not a regular
 * file, because SQLite would block forever on a pipe.
 */
function sidecarOf(file: string, suffix: string): BigIntStats | undefined {
  const stats = statSync(file + suffix, { bigint: true, throwIfNoEntry: false })
  if (stats && !stats.isFile()) throw new RefusedFile(`its ${suffix} is not a regular file`)
  return stats
}

/**
 * Reads the first bytes of a journal. A finished transaction leaves no journal, an empty one, or (journal_mode=persist) one that
 * begins with zeros.
 */
function firstBytes(path: string, count: number): Buffer {
  try {
    return readStart(path, count)
  } catch {
    return Buffer.alloc(0) // the journal was deleted meanwhile, so the transaction is over
  }
}

/** The disk space, in bytes, that must remain free for everything else, above all for dex's own history. */
const RESERVED_BYTES = 64 << 20
const PARTIAL_COPY = "partial"

/** Returns the path of the existing copy of a database, or undefined. If `state` is given, only a copy of that state counts. */
function existingCopy(scratch: string, file: string, state?: DatabaseState): string | undefined {
  const folder = folderOf(scratch, file)
  const name = state ? copyNameOf(state) : namesIn(folder).find((entry) => entry !== PARTIAL_COPY)
  const path = name && join(folder, name, basename(file))
  return path && statSync(path, { throwIfNoEntry: false }) ? path : undefined
}

/**
 * Copies a database with its log, readable only by the owner, and returns the path. The copy is complete or absent; a
 * copy of an earlier state is removed first. Throws an Error that says why no copy was made.
 */
function makeCopy(scratch: string, file: string): string {
  const folder = folderOf(scratch, file)
  removeCopy(scratch, file)
  mkdirSync(join(folder, PARTIAL_COPY), { recursive: true, mode: 0o700 })
  try {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      if (attempt > 0) blockFor(RETRY_PAUSE_MS)
      const stateBefore = readDatabaseState(file)
      expectRoom(scratch, stateBefore)
      for (const suffix of ["", "-wal", "-journal"])
        copyPrivately(file + suffix, join(folder, PARTIAL_COPY, basename(file) + suffix))
      if (readDatabaseState(file).fingerprint !== stateBefore.fingerprint) continue
      renameSync(join(folder, PARTIAL_COPY), join(folder, copyNameOf(stateBefore)))
      return join(folder, copyNameOf(stateBefore), basename(file))
    }
  } catch (error) {
    removeCopy(scratch, file)
    throw isFull(error) ? noRoom(scratch, readDatabaseState(file)) : error
  }
  removeCopy(scratch, file)
  throw new Error("the database changes faster than it can be copied; the next sync will try again")
}

function removeCopy(scratch: string, file: string): void {
  rmSync(folderOf(scratch, file), { recursive: true, force: true })
}

export function blockFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** Throws if there is no room for a copy. Opening the copy writes its log into the database, so the log counts twice. */
function expectRoom(scratch: string, state: DatabaseState): void {
  if (freeBytes(scratch) < state.bytes + state.walBytes + RESERVED_BYTES) throw noRoom(scratch, state)
}

function noRoom(scratch: string, { bytes, walBytes }: DatabaseState): Error {
  const needed = Math.ceil((bytes + walBytes + RESERVED_BYTES) / 1e6)
  const free = Math.floor(freeBytes(scratch) / 1e6)
  return new Error(
    `it cannot be read in place, and a copy needs ${needed} MB, but only ${free} MB are free (${scratch}). Free some space, then sync again`,
  )
}

function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

function isFull(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT"].includes(codeOf(error))
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return [] // the folder does not exist, because nothing has been copied yet
  }
}

function folderOf(scratch: string, file: string): string {
  return join(scratch, `database-${hash(file)}`)
}

function copyNameOf({ fingerprint }: DatabaseState): string {
  return hash(fingerprint)
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16)
}

/** Unknown tables that have rows, with the number of rows, counted up to `MAX_COUNTED_ROWS`. */
export type UnknownTables = { path: string; tables: Record<string, number> }

export const MAX_COUNTED_ROWS = 10_000
/** The maximum number of tables to count, because a database can have any number. */
const MAX_TABLES = 100

/**
 * Finds tables of a database that dex does not know, in which a newer version of the program may store its conversations. Returns
 * undefined if there are none, or if the database cannot be read in place now.
 */
export function unknownTables(path: string, known: readonly string[]): UnknownTables | undefined {
  try {
    const tables = withForeignDatabase(path, (db) => countUnknownRows(db, known))
    return Object.keys(tables).length > 0 ? { path, tables } : undefined
  } catch {
    return undefined // the next sync will report the problem
  }
}

function countUnknownRows(db: ForeignDatabase, known: readonly string[]): Record<string, number> {
  const unknown = tablesOf(db).filter((name) => !known.includes(name))
  const counts = unknown.slice(0, MAX_TABLES).map((name): [string, number] => {
    const table = `"${name.replaceAll('"', '""')}"`
    return [name, [...db.iterate(`select ${ROW_MARKER} from ${table} limit ${MAX_COUNTED_ROWS}`)].length]
  })
  return Object.fromEntries(counts.filter(([, rows]) => rows > 0))
}

/** The expression that is selected instead of columns, because only the number of rows matters. */
const ROW_MARKER = "1 as one"
