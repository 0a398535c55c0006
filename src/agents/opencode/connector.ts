import { basename, dirname, join } from "node:path"
import { messageOf } from "../../core/error.ts"
import { isAbsent, lookAt } from "../../core/look-at.ts"
import { readText } from "../../core/read-file.ts"
import { parseObject, type RawRecord, record, records, string } from "../../core/record.ts"
import type {
  Connector,
  Cursor,
  IsUnchanged,
  Reading,
  Scratch,
  Skipped,
  Unit,
  Unreadable,
  Watched,
} from "../kit/connector.ts"
import { type DatabaseSession, readingOfRows, unitsOfDatabase } from "../kit/database-units.ts"
import { entriesOf, fileAt, type Report } from "../kit/files.ts"
import { columnsOf, type ForeignDatabase, withForeignDatabase, withFoundDatabase } from "../kit/foreign-sqlite.ts"
import { OPENCODE_DATABASE, opencodeRoots } from "../registry.ts"
import {
  OPENCODE_TABLES,
  rowsOfSession,
  sessionsIn,
  stripOpencode,
  UNIT_PREFIX,
  upgradeOf,
  wasSessionDeleted,
} from "./database.ts"
import { parseOpencode } from "./parse.ts"

/**
 * Reads OpenCode's sessions. Since 1.2, OpenCode has used a database, with other tables since 2.0. Before that it used a tree of
 * JSON files, which remains on disk and is not always imported. So dex reads both; if both have the same session, the database
 * counts.
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

/**
 * The folders to watch. In the older trees every message has a folder for its parts. These need not be watched, because the
 * message's own file changes with them.
 */
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

/** Finds sessions in a root, which is the data folder, or the single database that $OPENCODE_DB names. */
function* discover(root: string, isUnchanged: IsUnchanged, scratch?: Scratch): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  if (isFile(root)) {
    yield* unitsOfDatabase(root, sessionsIn, isUnchanged, scratch)
    return
  }
  const names = entriesOf(root, (problem) => problems.push(problem)).map(({ name }) => name)
  const databases = names.filter((name) => OPENCODE_DATABASE.test(name))
  for (const name of databases) {
    const mainDatabase = databases.find((other) => name === other.replace(/\.db$/, "-next.db"))
    const sessions =
      mainDatabase === undefined
        ? sessionsIn
        : (db: ForeignDatabase) => sessionsOfBeta(db, join(root, mainDatabase), scratch)
    yield* unitsOfDatabase(join(root, name), sessions, isUnchanged, scratch)
  }
  yield* sessionsOfTrees(root, (problem) => problems.push(problem))
  yield* problems
}

/**
 * Finds the sessions in the beta's database. If the upgrade to 2.0 can read that database, it copies the sessions into the main
 * database and leaves the originals in place. Sessions that were then deleted in the main database are left out.
 */
function sessionsOfBeta(db: ForeignDatabase, mainDatabase: string, scratch: Scratch | undefined): DatabaseSession[] {
  const sessions = sessionsIn(db)
  const isImportable = ["project", "session", "session_message"].every((table) => columnsOf(db, table).size > 0)
  const upgrade = isImportable && ignoreErrors(() => withForeignDatabase(mainDatabase, upgradeOf, scratch))
  return upgrade ? sessions.filter((session) => !wasSessionDeleted(upgrade, session)) : sessions
}

/** Returns undefined on failure. A problem with the main database is reported when that database is read. */
function ignoreErrors<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

function isFile(path: string): boolean {
  const stat = lookAt(path)
  return stat !== undefined && stat !== "unknown" && stat.isFile()
}

function read(unit: Unit, after?: Cursor, scratch?: Scratch): Reading {
  const skipped: Skipped[] = []
  const rows = unit.key.startsWith(UNIT_PREFIX)
    ? withFoundDatabase(unit.path, (db) => rowsOfSession(db, unit.key.slice(UNIT_PREFIX.length)), scratch)
    : rowsOfTree(unit, skipped)
  const parsedRows: RawRecord[] = []
  for (const row of rows) {
    const parsed = withData(row)
    if (parsed) parsedRows.push(parsed)
    else skipped.push({ reason: "damaged JSON", where: `${row.table} ${row.id}` })
  }
  return readingOfRows(parsedRows, stripOpencode, skipped, after)
}

function withData(row: RawRecord): RawRecord | undefined {
  const parsed: RawRecord = { ...row }
  for (const column of ["data", "revert", "model"]) {
    if (typeof parsed[column] !== "string") continue
    const value = parseObject(parsed[column])
    if (value) parsed[column] = value
    else if (column === "data") return undefined
  }
  return parsed
}

/** The size of the largest JSON file that dex reads, in bytes. A session, a message or a part is one file. */
const MAX_FILE_BYTES = 64 << 20

// OpenCode's JSON trees: storage/ (0.6 to 1.1), and project/<name>/storage/ before that.

/** Yields every session once, although two trees may contain it: 0.6 copied the older tree and left it in place. */
function* sessionsOfTrees(root: string, report: Report): Generator<Unit> {
  const yieldedKeys = new Set<string>()
  for (const tree of treesOf(root, report)) {
    for (const unit of sessionsOfTree(tree, report)) {
      if (yieldedKeys.has(unit.key)) continue
      yieldedKeys.add(unit.key)
      yield unit
    }
  }
}

/** Reads the files of a session. The records have the same fields as the rows of the later databases. */
function rowsOfTree(unit: Unit, skipped: Skipped[]): RawRecord[] {
  const folder = dirname(unit.path)
  const isOldest = basename(folder) === "info"
  const session = readObject(unit.path, skipped)
  if (!session) return []
  const idInFile = string(session.id)
  const id = idInFile && isPlainName(idInFile) ? idInFile : basename(unit.path, ".json")
  const storage = isOldest ? dirname(folder) : dirname(dirname(folder))
  const report = ({ unreadable, path }: Unreadable) => void skipped.push({ reason: unreadable, where: path })
  const rows: RawRecord[] = [sessionRow(id, session)]
  if (!isOldest && /^\w+$/.test(basename(folder))) {
    const project = readObject(join(storage, "project", `${basename(folder)}.json`), skipped)
    if (project) rows.push({ table: "project", id: project.id, worktree: project.worktree, vcs: project.vcs })
  }
  for (const entry of entriesOf(join(storage, "message", id), report)) {
    if (!isJson(entry.name)) continue
    const data = readObject(join(storage, "message", id, entry.name), skipped)
    if (!data) continue
    const messageId = string(data.id) ?? basename(entry.name, ".json")
    const time = record(data.time) ?? record(record(data.metadata)?.time)
    const { parts: inlineParts, ...rest } = withoutIds(data)
    rows.push({ table: "message", id: messageId, session_id: id, time_created: time?.created, data: rest })
    // before 0.3 the parts were inside the message
    records(inlineParts).forEach((part, index) => {
      rows.push({
        table: "part",
        id: `${messageId}:${String(index).padStart(4, "0")}`,
        message_id: messageId,
        data: part,
      })
    })
    if (!isPlainName(messageId)) continue
    const parts = isOldest ? join(storage, "part", id, messageId) : join(storage, "part", messageId)
    for (const part of entriesOf(parts, report)) {
      if (!isJson(part.name)) continue
      const partData = readObject(join(parts, part.name), skipped)
      if (!partData) continue
      const partId = string(partData.id) ?? basename(part.name, ".json")
      rows.push({ table: "part", id: partId, message_id: messageId, data: withoutIds(partData) })
    }
  }
  return rows
}

/** The folders of a tree of JSON files. */
type Tree = { sessions: string[]; messages: string; parts: (session: string, message: string) => string }

function* treesOf(root: string, report: Report): Generator<Tree> {
  const storage = join(root, "storage")
  const projects = entriesOf(join(storage, "session"), report).filter((entry) => entry.isDirectory())
  yield {
    sessions: projects.map((entry) => join(storage, "session", entry.name)),
    messages: join(storage, "message"),
    parts: (_, message) => join(storage, "part", message),
  }
  for (const project of entriesOf(join(root, "project"), report)) {
    if (!project.isDirectory()) continue
    const session = join(root, "project", project.name, "storage", "session")
    yield {
      sessions: [join(session, "info")],
      messages: join(session, "message"),
      parts: (id, message) => join(session, "part", id, message),
    }
  }
}

/**
 * The number of newest messages that may still change. Their parts are rewritten in place, which does not change a folder's time.
 */
const LIVE_MESSAGES = 2
const BYTES_PER_MESSAGE = 4_000

function* sessionsOfTree(tree: Tree, report: Report): Generator<Unit> {
  for (const folder of tree.sessions) {
    for (const entry of entriesOf(folder, report)) {
      if (!entry.name.endsWith(".json")) continue
      const path = join(folder, entry.name)
      const file = fileAt(path, report)
      if (!file) continue
      const id = basename(entry.name, ".json")
      const messages = entriesOf(join(tree.messages, id), report).filter((message) => isJson(message.name))
      const livePaths = messages.slice(-LIVE_MESSAGES).flatMap((message) => {
        const parts = tree.parts(id, basename(message.name, ".json"))
        const files = entriesOf(parts, report).map((part) => join(parts, part.name))
        return [join(tree.messages, id, message.name), ...files]
      })
      const stats = livePaths.map((path) => lookAt(path)).filter((stat) => stat !== undefined && stat !== "unknown")
      const newest = Math.max(file.mtimeMs, ...stats.map((stat) => stat.mtimeMs))
      const size = stats.reduce((sum, stat) => sum + stat.size, file.size)
      yield {
        key: `json:${id}`,
        path,
        stamp: `${size}:${newest}:${messages.length}:${stats.length}`,
        bytes: size + messages.length * BYTES_PER_MESSAGE,
        modifiedAt: newest,
        bornAt: file.birthtimeMs || file.mtimeMs,
      }
    }
  }
}

function sessionRow(id: string, session: RawRecord): RawRecord {
  const time = record(session.time)
  return {
    table: "session",
    id,
    project_id: session.projectID,
    parent_id: session.parentID,
    directory: session.directory,
    title: session.title,
    version: session.version,
    revert: session.revert,
    time_created: time?.created,
    time_updated: time?.updated,
  }
}

function withoutIds({ id: _, sessionID: __, messageID: ___, ...rest }: RawRecord): RawRecord {
  return rest
}

function readObject(path: string, skipped: Skipped[]): RawRecord | undefined {
  let text: string
  try {
    text = readText(path, MAX_FILE_BYTES, { follow: false })
  } catch (error) {
    if (!isAbsent(error)) skipped.push({ reason: messageOf(error), where: path })
    return undefined
  }
  const value = parseObject(text)
  if (!value) skipped.push({ reason: "damaged JSON", where: path })
  return value
}

/** Whether a name that comes from a file's content cannot lead out of the folder if it is used in a path. */
function isPlainName(name: string): boolean {
  return /^[\w-]+$/.test(name)
}

function isJson(name: string): boolean {
  return name.endsWith(".json") && !name.startsWith(".")
}
