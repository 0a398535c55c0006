import { realpathSync, statSync } from "node:fs"
import type { DatabaseSync, StatementSync } from "node:sqlite"
import { copyIn, makeCopy, pause, removeCopy } from "./database-copy.ts"
import { readDatabaseState } from "./database-state.ts"

export type ForeignValue = string | number | bigint | null
export type ForeignRow = Record<string, unknown>

/** A snapshot of somebody else's database. Good only inside the call that gave it. */
export type ForeignDatabase = {
  all(sql: string, ...params: ForeignValue[]): ForeignRow[]
  iterate(sql: string, ...params: ForeignValue[]): Iterable<ForeignRow>
}

const ATTEMPTS = 4
const PAUSE_MS = 30
const BUSY_MS = 5_000

/**
 * Reads another program's database and leaves no trace: no byte is changed, no lock outlives the call, no `-wal` or
 * `-shm` is left behind, whether the program runs or not, and on read-only folders too.
 *
 * `use` may run more than once, when the file moved under it, and must not let rows escape unread. Whole numbers past
 * 2^53 come as decimal strings. Throws an Error that says what is wrong with the file.
 *
 * What cannot be read in place is copied into `scratch`, once for as long as it is as it is. The copy stays there: whoever
 * owns that folder removes it.
 */
export function withForeignDatabase<T>(path: string, use: (db: ForeignDatabase) => T, scratch?: string): T {
  return explained(() => {
    const file = realpathSync(path)
    const copy = scratch && copyIn(scratch, file, readDatabaseState(file))
    if (copy) return openCopy(copy, use)
    if (scratch) removeCopy(scratch, file)
    return read(file, use, scratch)
  })
}

/**
 * As withForeignDatabase, for what was found in a database before: where it had to be copied then, that copy is read, also
 * when the program has written since. So one sync copies it once, and what is read is what was found.
 */
export function withFoundDatabase<T>(path: string, use: (db: ForeignDatabase) => T, scratch?: string): T {
  return explained(() => {
    const file = realpathSync(path)
    const copy = scratch && copyIn(scratch, file)
    return copy ? openCopy(copy, use) : read(file, use, scratch)
  })
}

function explained<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw isSqliteError(error) ? new Error(`not readable as a database: ${error.message}`, { cause: error }) : error
  }
}

/** Different whenever the database may hold something else. A program in WAL mode changes only the `-wal` for hours. */
export function databaseStamp(path: string): string {
  const file = realpathSync(path)
  const { size, mtimeMs } = statSync(file)
  const wal = statSync(`${file}-wal`, { throwIfNoEntry: false })
  return `${size}:${mtimeMs}:${wal && wal.size > 0 ? `${wal.size}:${wal.mtimeMs}` : ""}`
}

/** The columns of a table, none where there is no such table: other programs' schemas differ by version. */
export function columnsOf(db: ForeignDatabase, table: string): Set<string> {
  return new Set(db.all("select name from pragma_table_info(?)", table).map((row) => String(row.name)))
}

/** Neither views, nor what an extension keeps for a table of its own (an index of words), nor SQLite's own tables. */
export function tablesOf(db: ForeignDatabase): string[] {
  const sql = "select name from pragma_table_list where schema = 'main' and type = 'table' and name not glob 'sqlite_*'"
  return db.all(sql).map((row) => String(row.name))
}

function read<T>(file: string, use: (db: ForeignDatabase) => T, scratch: string | undefined): T {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (attempt > 0) pause(PAUSE_MS)
    const before = readDatabaseState(file)
    if (before.hotJournal) continue
    if (before.walBytes > 0) {
      if (!before.hasShm) break
      // readonly_shm: without it a reader repairs the -shm that a killed program left, and so changes it
      try {
        return open(uri(file, "mode=ro&readonly_shm=1"), use)
      } catch (error) {
        if (!isSqliteError(error) || !CANNOT_SHARE.has(error.errcode & 0xff)) throw error
        break
      }
    }
    const outcome = attempted(() => open(uri(file, "immutable=1"), use))
    if (readDatabaseState(file).fingerprint !== before.fingerprint) continue
    if ("error" in outcome) throw outcome.error
    return outcome.value
  }
  if (scratch === undefined) throw new Error("it cannot be read in place, and there is no folder for a copy of it")
  return openCopy(makeCopy(scratch, file), use)
}

/** To be written: opening it is what takes its log in, or rolls its journal back. */
function openCopy<T>(copy: string, use: (db: ForeignDatabase) => T): T {
  return open(uri(copy, "mode=rw"), use)
}

/** BUSY, READONLY (no way into the -shm), IOERR, CANTOPEN, PROTOCOL: the file may be fine, only not shareable. */
const CANNOT_SHARE = new Set([5, 8, 10, 14, 15])

function open<T>(location: string, use: (db: ForeignDatabase) => T): T {
  const db = new (sqlite().DatabaseSync)(location)
  try {
    db.exec(
      `pragma busy_timeout = ${BUSY_MS}; pragma query_only = 1; pragma trusted_schema = 0; pragma temp_store = memory; begin`,
    )
    return use(reader(db))
  } finally {
    db.close()
  }
}

function reader(db: DatabaseSync): ForeignDatabase {
  const prepare = (sql: string): StatementSync => {
    const statement = db.prepare(sql)
    statement.setReadBigInts(true) // or one large number in a row makes the whole row unreadable
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

function uri(file: string, query: string): string {
  const slashed = process.platform === "win32" ? file.replaceAll("\\", "/") : file
  const absolute = slashed.startsWith("/") ? slashed : `/${slashed}`
  return `file://${absolute.replace(/[%?#]/g, encodeURIComponent)}?${query}`
}

/** Loaded with the first database. On Node 22 loading it warns that it is experimental, which is no news to a user. */
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

function attempted<T>(work: () => T): { value: T } | { error: unknown } {
  try {
    return { value: work() }
  } catch (error) {
    return { error } // decided by the caller: a file that moved under the reader looks corrupt
  }
}
