import { basename, dirname, join } from "node:path"
import type { RawRecord } from "../../core/record.ts"
import { parseObject, string } from "../../core/record.ts"
import { lookAt } from "../../files/look-at.ts"
import type { Connector, Cursor, Reading, Scratch, Seen, Skipped, Unit, Unreadable, Watched } from "../kit/connector.ts"
import { type DatabaseSession, readingOfRows, unitsOfDatabase } from "../kit/database-units.ts"
import { entriesOf } from "../kit/folder.ts"
import { columnsOf, type ForeignDatabase, withForeignDatabase, withFoundDatabase } from "../kit/foreign-sqlite.ts"
import { OPENCODE_TABLES, rowsOfSession, sessionsIn, UNIT_PREFIX, upgradeOf, wasDeleted } from "./database.ts"
import { parseOpencode } from "./parse.ts"
import { OPENCODE_DATABASE, opencodeRoots } from "./roots.ts"
import { stripOpencode } from "./strip.ts"
import { rowsOfTree, sessionsOfTrees } from "./tree.ts"

/**
 * OpenCode. Since 1.2 a database, with other tables since 2.0; before that a tree of JSON files, which stays on disk and is
 * not always imported, so both are read and the database wins where it has the same session.
 */
export const opencodeConnector: Connector = {
  source: "opencode",
  version: 5,
  roots: opencodeRoots,
  discover,
  watched,
  read,
  parse: parseOpencode,
  identify: (raw) => `${string(raw.table)}:${string(raw.id)}`,
  tables: OPENCODE_TABLES,
}

/** In the older trees every message has a folder for its parts; the message's own file changes with them. */
function watched(root: string): Watched[] {
  if (isFile(root)) {
    const name = basename(root).replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
    return [{ folder: dirname(root), depth: 0, files: new RegExp(`^${name}(-wal)?$`) }]
  }
  return [
    { folder: root, depth: 0, files: /^(?:opencode|kilo|mimocode).*\.db(-wal)?$/ },
    { folder: join(root, "storage"), depth: Infinity, skip: ["part"], files: /^(session|message)\// },
    { folder: join(root, "project"), depth: Infinity, skip: ["part"], files: /^[^/]+\/storage\/session\// },
  ]
}

/** A root is the data folder, or the one database that $OPENCODE_DB names. */
function* discover(root: string, seen: Seen, scratch?: Scratch): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  if (isFile(root)) {
    yield* unitsOfDatabase(root, sessionsIn, seen, scratch)
    return
  }
  const names = entriesOf(root, (problem) => problems.push(problem)).map(({ name }) => name)
  const databases = names.filter((name) => OPENCODE_DATABASE.test(name))
  for (const name of databases) {
    const into = databases.find((other) => name === other.replace(/\.db$/, "-next.db"))
    const sessions =
      into === undefined ? sessionsIn : (db: ForeignDatabase) => notImported(db, join(root, into), scratch)
    yield* unitsOfDatabase(join(root, name), sessions, seen, scratch)
  }
  yield* sessionsOfTrees(root, (problem) => problems.push(problem))
  yield* problems
}

/**
 * The sessions of the beta's database. The upgrade to 2.0 copies them to the main one, if it can read it, and leaves it as it is: a
 * session that was deleted in the main one since does not come back from here.
 */
function notImported(db: ForeignDatabase, into: string, scratch: Scratch | undefined): DatabaseSession[] {
  const found = sessionsIn(db)
  const isImportable = ["project", "session", "session_message"].every((table) => columnsOf(db, table).size > 0)
  const upgrade = isImportable && attempted(() => withForeignDatabase(into, upgradeOf, scratch))
  return upgrade ? found.filter((session) => !wasDeleted(upgrade, session)) : found
}

/** Undefined where it fails: the main database is reported by itself. */
function attempted<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

function isFile(path: string): boolean {
  const found = lookAt(path)
  return found !== undefined && found !== "unknown" && found.isFile()
}

function read(unit: Unit, after?: Cursor, scratch?: Scratch): Reading {
  const skipped: Skipped[] = []
  const rows = unit.key.startsWith(UNIT_PREFIX)
    ? withFoundDatabase(unit.path, (db) => rowsOfSession(db, unit.key.slice(UNIT_PREFIX.length)), scratch)
    : rowsOfTree(unit, skipped)
  const whole: RawRecord[] = []
  for (const row of rows) {
    const parsed = withData(row)
    if (parsed) whole.push(parsed)
    else skipped.push({ reason: "damaged JSON", where: `${row.table} ${row.id}` })
  }
  return readingOfRows(whole, stripOpencode, skipped, after)
}

function withData(row: RawRecord): RawRecord | undefined {
  const whole: RawRecord = { ...row }
  for (const column of ["data", "revert", "model"]) {
    if (typeof whole[column] !== "string") continue
    const value = parseObject(whole[column])
    if (value) whole[column] = value
    else if (column === "data") return undefined
  }
  return whole
}
