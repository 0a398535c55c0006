import { basename, dirname, join } from "node:path"
import type { RawRecord } from "../../core/record.ts"
import { number, parseObject, string } from "../../core/record.ts"
import { lookAt } from "../../files/look-at.ts"
import type { Connector, Cursor, Reading, Scratch, Seen, Skipped, Unit, Unreadable, Watched } from "../kit/connector.ts"
import { type DatabaseSession, readingOfRows, unitsOfDatabase } from "../kit/database-units.ts"
import { entriesOf } from "../kit/folder.ts"
import { columnsOf, type ForeignDatabase, type ForeignRow, withFoundDatabase } from "../kit/foreign-sqlite.ts"
import { parseOpencode } from "./parse.ts"
import { OPENCODE_DATABASE, opencodeRoots } from "./roots.ts"
import { stripOpencode } from "./strip.ts"
import { rowsOfTree, sessionsOfTrees } from "./tree.ts"

/**
 * OpenCode. Since 1.2 a database; before that a tree of JSON files, which stays on disk and is not always imported, so
 * both are read and the database wins where it has the same session.
 */
export const opencodeConnector: Connector = {
  source: "opencode",
  version: 4,
  roots: opencodeRoots,
  discover,
  watched,
  read,
  parse: parseOpencode,
  identify: (raw) => `${string(raw.table)}:${string(raw.id)}`,
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
  for (const entry of entriesOf(root, (problem) => problems.push(problem))) {
    if (OPENCODE_DATABASE.test(entry.name)) yield* unitsOfDatabase(join(root, entry.name), sessionsIn, seen, scratch)
  }
  yield* sessionsOfTrees(root, (problem) => problems.push(problem))
  yield* problems
}

function isFile(path: string): boolean {
  const found = lookAt(path)
  return found !== undefined && found !== "unknown" && found.isFile()
}

function sessionsIn(db: ForeignDatabase): DatabaseSession[] {
  if (!columnsOf(db, "session").has("id"))
    throw new Error("no session table: not a database of OpenCode, or a new kind")
  const content = new Map<unknown, string[]>()
  const bytes = new Map<unknown, number>()
  const touched = new Map<unknown, number>()
  for (const table of ["message", "part", "session_message"] as const) {
    if (!columnsOf(db, table).has("session_id")) continue
    for (const row of db.iterate(CONTENT_OF[table])) {
      content.set(row.id, [...(content.get(row.id) ?? []), `${row.count},${row.updated},${row.bytes}`])
      bytes.set(row.id, (bytes.get(row.id) ?? 0) + (number(row.bytes) ?? 0))
      touched.set(row.id, Math.max(touched.get(row.id) ?? 0, number(row.updated) ?? 0))
    }
  }
  return db.all("select id, time_created, time_updated from session").map((row) => {
    const modifiedAt = Math.max(number(row.time_updated) ?? 0, touched.get(row.id) ?? 0)
    const bornAt = number(row.time_created)
    return {
      key: `db:${row.id}`,
      stamp: [row.time_updated, ...(content.get(row.id) ?? [])].join(":"),
      bytes: bytes.get(row.id) ?? 0,
      modifiedAt,
      ...(bornAt !== undefined && { bornAt }),
    }
  })
}

/** octet_length reads a row's header only, where length would read the text. */
const CONTENT_OF = {
  message: `select session_id as id, count(*) as count, max(time_updated) as updated, sum(octet_length(data)) as bytes
    from message group by session_id`,
  part: `select session_id as id, count(*) as count, max(time_updated) as updated, sum(octet_length(data)) as bytes
    from part group by session_id`,
  session_message: `select session_id as id, count(*) as count, max(time_updated) as updated,
    sum(octet_length(data)) as bytes from session_message group by session_id`,
}

function read(unit: Unit, after?: Cursor, scratch?: Scratch): Reading {
  const skipped: Skipped[] = []
  const rows = unit.key.startsWith("db:") ? rowsOfDatabase(unit, scratch) : rowsOfTree(unit, skipped)
  const whole: RawRecord[] = []
  for (const row of rows) {
    const parsed = withData(row)
    if (parsed) whole.push(parsed)
    else skipped.push({ reason: "damaged JSON", where: `${row.table} ${row.id}` })
  }
  return readingOfRows(whole, stripOpencode, skipped, after)
}

/** Named one by one: other columns hold secrets (share links), permissions and copies of whole files. */
const SESSION_COLUMNS = [
  ...["id", "project_id", "parent_id", "slug", "directory", "title", "version", "agent", "model", "revert"],
  ...["time_created", "time_updated", "time_archived"],
]

function rowsOfDatabase(unit: Unit, scratch: Scratch | undefined): RawRecord[] {
  const id = unit.key.slice("db:".length)
  const read = (db: ForeignDatabase): RawRecord[] => {
    const has = columnsOf(db, "session")
    const columns = SESSION_COLUMNS.filter((name) => has.has(name)).join(", ")
    const [session] = db.all(`select ${columns} from session where id = ?`, id)
    if (!session) return []
    const rows = [tagged("session", session)]
    if (columnsOf(db, "project").has("worktree")) {
      const projects = db.all("select id, worktree, vcs, name from project where id = ?", String(session.project_id))
      rows.push(...projects.map((row) => tagged("project", row)))
    }
    const messages = db.all(
      "select id, session_id, time_created, time_updated, data from message where session_id = ? order by time_created, id",
      id,
    )
    rows.push(...messages.map((row) => tagged("message", row)))
    const parts = db.all("select id, message_id, session_id, data from part where session_id = ? order by id", id)
    rows.push(...parts.map((row) => tagged("part", row)))
    if (messages.length === 0) rows.push(...eventRows(db, id))
    return rows
  }
  return withFoundDatabase(unit.path, read, scratch)
}

/** The tables that are to replace message and part; filled instead of them by some builds, beside them by none. */
function eventRows(db: ForeignDatabase, id: string): RawRecord[] {
  const has = columnsOf(db, "session_message")
  if (!has.has("data")) return []
  const rows = has.has("seq")
    ? db.all("select id, type, seq, time_created, data from session_message where session_id = ? order by seq", id)
    : db.all(
        "select id, type, time_created, data from session_message where session_id = ? order by time_created, id",
        id,
      )
  return rows.map((row, index) => ({ seq: index, ...tagged("session_message", row) }))
}

function tagged(table: string, row: ForeignRow): RawRecord {
  return { table, ...row }
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
