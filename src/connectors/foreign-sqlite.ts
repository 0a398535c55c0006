import { type BigIntStats, chmodSync, copyFileSync, mkdtempSync, realpathSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import type { DatabaseSync, StatementSync } from "node:sqlite"
import { RefusedFile, readStart } from "../files/read-file.ts"

export type Value = string | number | bigint | null
export type Row = Record<string, unknown>

/** A snapshot of somebody else's database. Good only inside the call that gave it. */
export type ForeignDatabase = {
  all(sql: string, ...params: Value[]): Row[]
  iterate(sql: string, ...params: Value[]): Iterable<Row>
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
 */
export function withForeignDatabase<T>(path: string, use: (db: ForeignDatabase) => T): T {
  try {
    return read(realpathSync(path), use)
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

function read<T>(file: string, use: (db: ForeignDatabase) => T): T {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (attempt > 0) pause(PAUSE_MS)
    const before = stateOf(file)
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
    if (stateOf(file).fingerprint !== before.fingerprint) continue
    if ("error" in outcome) throw outcome.error
    return outcome.value
  }
  return readCopy(file, use)
}

/** BUSY, READONLY (no way into the -shm), IOERR, CANTOPEN, PROTOCOL: the file may be fine, only not shareable. */
const CANNOT_SHARE = new Set([5, 8, 10, 14, 15])

function readCopy<T>(file: string, use: (db: ForeignDatabase) => T): T {
  const folder = mkdtempSync(join(tmpdir(), "dex-"))
  try {
    const copy = join(folder, basename(file))
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (attempt > 0) pause(PAUSE_MS)
      const before = stateOf(file)
      for (const suffix of ["", "-wal", "-journal"]) copyPrivately(file + suffix, copy + suffix)
      if (stateOf(file).fingerprint === before.fingerprint) return open(uri(copy, "mode=rw"), use)
    }
    throw new Error("the database changes faster than it can be copied; the next sync tries again")
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function copyPrivately(from: string, to: string): void {
  rmSync(to, { force: true })
  if (!statSync(from, { throwIfNoEntry: false })) return
  copyFileSync(from, to)
  chmodSync(to, 0o600)
}

function open<T>(location: string, use: (db: ForeignDatabase) => T): T {
  const db = new (sqlite().DatabaseSync)(location)
  try {
    db.exec(`pragma busy_timeout = ${BUSY_MS}; pragma query_only = 1; pragma trusted_schema = 0; begin`)
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

function* iterateRows(statement: StatementSync, params: Value[]): Generator<Row> {
  for (const row of statement.iterate(...params)) yield withoutBigInts(row)
}

function withoutBigInts(row: Row): Row {
  for (const key in row) {
    const value = row[key]
    if (typeof value === "bigint") row[key] = Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
  }
  return row
}

type State = { fingerprint: string; walBytes: number; hasShm: boolean; hotJournal: boolean }

function stateOf(file: string): State {
  const main = statSync(file, { bigint: true })
  if (!main.isFile()) throw new RefusedFile("not a regular file")
  const { size, mtimeNs, ino } = main
  const [wal, journal, shm] = ["-wal", "-journal", "-shm"].map((suffix) => besideOf(file, suffix))
  const walBytes = Number(wal?.size ?? 0n)
  const hotJournal = journal !== undefined && journal.size > 0n && firstBytes(`${file}-journal`, 8).some((b) => b !== 0)
  return {
    fingerprint: [size, mtimeNs, ino, walBytes, walBytes > 0 ? wal?.mtimeNs : 0, hotJournal].join(":"),
    walBytes,
    hasShm: shm !== undefined,
    hotJournal,
  }
}

/** SQLite opens what has these names, and would wait at a pipe for ever: so each is looked at first. */
function besideOf(file: string, suffix: string): BigIntStats | undefined {
  const found = statSync(file + suffix, { bigint: true, throwIfNoEntry: false })
  if (found && !found.isFile()) throw new RefusedFile(`its ${suffix} is not a regular file`)
  return found
}

/** A finished transaction leaves no journal, an empty one, or (journal_mode=persist) one that begins with zeros. */
function firstBytes(path: string, count: number): Buffer {
  try {
    return readStart(path, count)
  } catch {
    return Buffer.alloc(0) // deleted since: the transaction is over
  }
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

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
