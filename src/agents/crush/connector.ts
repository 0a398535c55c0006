import { isAbsolute, join } from "node:path"
import { isRecord, number, parseObject, type RawRecord, record, records, string, time } from "../../core/record.ts"
import type { Connector, Cursor, Reading, Scratch, Seen, Skipped, Unit, Unreadable, Watched } from "../kit/connector.ts"
import {
  type DatabaseSession,
  expectTable,
  readDatabaseUnit,
  taggedRows,
  unitsOfDatabase,
  withJsonColumns,
} from "../kit/database-units.ts"
import { textAt } from "../kit/folder.ts"
import type { ForeignDatabase } from "../kit/foreign-sqlite.ts"
import { digestOf, digestOfDataUri, withoutBulk } from "../kit/kept-text.ts"
import { parseCrush } from "./parse.ts"
import { crushRoots } from "./roots.ts"

/** Crush: a database in each project (`.crush/crush.db`), and a list of projects in the user's folder. */
export const crushConnector: Connector = {
  source: "crush",
  version: 1,
  roots: crushRoots,
  discover,
  watched,
  read,
  parse: parseCrush,
  identify: (raw) => `${raw.table}:${raw.id}`,
  tables: ["sessions", "messages", "files", "read_files", "goose_db_version"],
}

type Project = { path: string; database: string }
type CrushUnit = Unit & { project?: string }

const MAX_LIST_BYTES = 16 << 20

function watched(root: string): Watched[] {
  const projects = projectsOf(root, () => {})
  return [
    { folder: root, depth: 0, files: /^projects\.json$/ },
    ...projects.map(({ database }) => ({ folder: join(database, ".."), depth: 0, files: /^crush\.db(-wal)?$/ })),
  ]
}

function* discover(root: string, seen: Seen, scratch?: Scratch): Generator<CrushUnit | Unreadable> {
  const problems: Unreadable[] = []
  for (const { path, database } of projectsOf(root, (problem) => problems.push(problem)))
    for (const unit of unitsOfDatabase(database, sessionsIn, seen, scratch))
      yield "unreadable" in unit ? unit : { ...unit, project: path }
  yield* problems
}

/** As the list names them. A folder for data may be named from the project on. */
function projectsOf(root: string, report: (problem: Unreadable) => void): Project[] {
  const path = join(root, "projects.json")
  const text = textAt(path, MAX_LIST_BYTES, report)
  if (text === undefined) return []
  const list = parseObject(text)
  if (!list) report({ unreadable: "not a whole JSON object", path })
  return records(list?.projects).flatMap((project) => {
    const [folder, data = ".crush"] = [string(project.path), string(project.data_dir)]
    if (folder === undefined) return []
    return [{ path: folder, database: join(isAbsolute(data) ? data : join(folder, data), "crush.db") }]
  })
}

function sessionsIn(db: ForeignDatabase): DatabaseSession[] {
  expectTable(db, "sessions", "Crush")
  const content = new Map(db.all(CONTENT).map((row) => [row.id, row]))
  return db.all("select id, created_at, updated_at from sessions").map((row) => {
    const { count, updated, bytes } = content.get(row.id) ?? {}
    const bornAt = time(row.created_at)
    return {
      key: String(row.id),
      stamp: [row.updated_at, count, updated, bytes].join(":"),
      bytes: number(bytes) ?? 0,
      modifiedAt: time(updated) ?? time(row.updated_at) ?? 0,
      bornAt,
    }
  })
}

const CONTENT = `select session_id as id, count(*) as count, max(updated_at) as updated, sum(octet_length(parts)) as bytes
  from messages group by session_id`

function read(unit: CrushUnit, after?: Cursor, scratch?: Scratch): Reading {
  const rowsIn = (db: ForeignDatabase, skip: (skipped: Skipped) => void): RawRecord[] => [
    ...(unit.project === undefined ? [] : [{ table: "project", id: unit.project }]),
    ...taggedRows(db, "sessions", SESSION_COLUMNS, "where id = ?", unit.key),
    ...withJsonColumns(
      taggedRows(db, "messages", MESSAGE_COLUMNS, "where session_id = ? order by created_at, rowid", unit.key),
      ["parts"],
      skip,
    ),
  ]
  return readDatabaseUnit(unit, rowsIn, stripCrush, after, scratch)
}

const SESSION_COLUMNS = [
  ...["id", "parent_session_id", "title", "prompt_tokens", "completion_tokens", "cost", "summary_message_id"],
  ...["created_at", "updated_at"],
]
const MESSAGE_COLUMNS = ["id", "role", "parts", "model", "provider", "is_summary_message", "created_at", "finished_at"]

/** Without bytes of images and files, signatures, and whole files before and after an edit. */
function stripCrush(row: RawRecord): RawRecord {
  if (!Array.isArray(row.parts)) return withoutBulk(row)
  return withoutBulk({ ...row, parts: row.parts.map(stripPart) })
}

function stripPart(part: unknown): unknown {
  const data = record(record(part)?.data)
  if (!isRecord(part) || !data) return part
  const { signature: _, thought_signature: __, responses_data: ___, metadata: ____, ...kept } = data
  const image = string(kept.url) === undefined ? undefined : digestOfDataUri(string(kept.url)!)
  if (image) return { ...part, data: { image } }
  const [bytes, mime] = [string(kept.Data) ?? string(kept.data), string(kept.MIMEType) ?? string(kept.mime_type)]
  if (bytes === undefined) return { ...part, data: kept }
  const { Data: _____, data: ______, ...rest } = kept
  return { ...part, data: { ...rest, image: digestOf(Buffer.from(bytes, "base64"), mime) } }
}
