import { lstatSync, statSync } from "node:fs"
import { crc32 } from "node:zlib"
import { messageOf } from "../../core/error.ts"
import { isAbsent } from "../../core/look-at.ts"
import { isDeeperThan, MAX_DEPTH, parseArray, parseObject, type RawRecord } from "../../core/record.ts"
import type { Cursor, IsUnchanged, Reading, Scratch, Skipped, Unit, Unreadable } from "./connector.ts"
import {
  columnsOf,
  databaseStamp,
  type ForeignDatabase,
  type ForeignValue,
  withForeignDatabase,
  withFoundDatabase,
} from "./foreign-sqlite.ts"

// Finds and reads units in another program's database: one per session.

/** The entry of one session in a database. `stamp` differs whenever its rows may differ. */
export type DatabaseSession = { key: string; stamp: string; bytes: number; modifiedAt: number; bornAt?: number }

/** Yields the units of a database, or nothing if the database is missing or has not changed since it was last read. */
export function* unitsOfDatabase(
  path: string,
  sessionsIn: (db: ForeignDatabase) => DatabaseSession[],
  isUnchanged: IsUnchanged,
  scratch?: Scratch,
): Generator<Unit | Unreadable> {
  let units: Unit[]
  try {
    if (lstatSync(path).isSymbolicLink()) throw new Error("a symbolic link, not followed")
    if (isUnchanged(path, databaseStamp(path))) return
    const { birthtimeMs, mtimeMs } = statSync(path)
    const sessions = withForeignDatabase(path, sessionsIn, scratch)
    units = sessions.map((session) => ({ path, ...session, bornAt: session.bornAt ?? (birthtimeMs || mtimeMs) }))
  } catch (error) {
    if (!isAbsent(error)) yield { unreadable: messageOf(error), path }
    return
  }
  yield* units
}

/** Throws if the table is missing, because the database belongs to another program, or to a version that dex does not know. */
export function expectTable(db: ForeignDatabase, table: string, agent: string): void {
  if (columnsOf(db, table).size === 0)
    throw new Error(`there is no table ${table}: this is not ${agent}'s database, or dex does not know its format`)
}

/**
 * Reads all records of a session if any of them has changed, otherwise none. `rowsIn` must read all its rows before it returns;
 * `strip` removes the parts of a row that are not stored.
 */
export function readDatabaseUnit(
  unit: Unit,
  rowsIn: (db: ForeignDatabase, skip: (skipped: Skipped) => void) => RawRecord[],
  strip: (row: RawRecord) => RawRecord,
  after?: Cursor,
  scratch?: Scratch,
): Reading {
  let skipped: Skipped[] = []
  const rows = withFoundDatabase(
    unit.path,
    (db) => {
      skipped = [] // the function is called again if the file changed
      return rowsIn(db, (problem) => void skipped.push(problem))
    },
    scratch,
  )
  return readingOfRows(rows, strip, skipped, after)
}

export function readingOfRows(
  rows: RawRecord[],
  strip: (row: RawRecord) => RawRecord,
  skipped: Skipped[],
  after?: Cursor,
): Reading {
  const stripped: RawRecord[] = []
  let crc = 0
  for (const row of rows) {
    if (isDeeperThan(row, MAX_DEPTH))
      skipped.push({ reason: `nested deeper than ${MAX_DEPTH} levels`, where: `${row.table} ${row.id}` })
    else {
      const record = strip(row)
      crc = crc32(JSON.stringify(record), crc)
      stripped.push(record)
    }
  }
  const isUnchanged = after !== undefined && after.crc === crc
  return {
    mode: isUnchanged ? "append" : "replace",
    records: isUnchanged ? [] : stripped,
    end: () => ({ cursor: { offset: 0, crc }, skipped, pending: false }),
  }
}

/**
 * Returns the rows of a table, each tagged with the table's name. Only existing columns are selected, since schemas differ by
 * version; no rows if the table is missing. `rest` is the SQL that follows the table's name.
 */
export function taggedRows(
  db: ForeignDatabase,
  table: string,
  columns: readonly string[],
  rest: string,
  ...params: ForeignValue[]
): RawRecord[] {
  const existing = columnsOf(db, table)
  const present = columns.filter((name) => existing.has(name)).join(", ")
  return present === ""
    ? []
    : db.all(`select ${present} from ${table} ${rest}`, ...params).map((row) => ({ table, ...row }))
}

/** Parses these columns as JSON objects or lists. A row with damaged JSON is skipped. */
export function parseJsonColumns(
  rows: RawRecord[],
  columns: readonly string[],
  skip: (skipped: Skipped) => void,
): RawRecord[] {
  return rows.flatMap((row) => {
    const parsed: RawRecord = { ...row }
    for (const column of columns) {
      const text = row[column]
      if (typeof text !== "string" || text === "") continue
      const value = parseObject(text) ?? parseArray(text)
      if (value === undefined) {
        skip({ reason: `damaged JSON in ${column}`, where: `${row.table} ${row.id}` })
        return []
      }
      parsed[column] = value
    }
    return [parsed]
  })
}
