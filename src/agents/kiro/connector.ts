import { statSync } from "node:fs"
import { join } from "node:path"
import { crc32 } from "node:zlib"
import { number, parseObject, type RawRecord, record, records, string } from "../../core/record.ts"
import type { Connector, Cursor, Reading, Scratch, Seen, Skipped, Unit, Unreadable, Watched } from "../kit/connector.ts"
import {
  type DatabaseSession,
  expectTable,
  readDatabaseUnit,
  taggedRows,
  unitsOfDatabase,
} from "../kit/database-units.ts"
import { factsFirst, type UnitWithFacts, unitWithFacts } from "../kit/facts-first.ts"
import { entriesOf, fileAt, textAt } from "../kit/folder.ts"
import { columnsOf, type ForeignDatabase } from "../kit/foreign-sqlite.ts"
import { readJsonl } from "../kit/jsonl.ts"
import { unitOfFile } from "../kit/unit-of-file.ts"
import { editorSessions, readEditorSession } from "./editor-files.ts"
import { parseKiro } from "./parse.ts"
import { kiroRoots } from "./roots.ts"
import { stripKiroLine, stripKiroTurn } from "./strip.ts"

/**
 * Kiro. The command line has had a table with one conversation for each folder (`v1:`), a table of all of them (`v2:`), and a
 * file for each (`file:`); the editor has files (`ide:`). Amazon Q's command line, which Kiro's was made of, has the tables.
 */
export const kiroConnector: Connector = {
  source: "kiro",
  version: 1,
  roots: kiroRoots,
  discover,
  watched,
  read,
  parse: parseKiro,
  identify,
  tables: [
    ...["conversations", "conversations_v2", "history", "state", "auth_kv", "migrations", "extracted_kas_versions"],
  ],
}

const DATABASE = "data.sqlite3"
const MAX_META_BYTES = 16 << 20

function watched(root: string): Watched[] {
  return [
    { folder: root, depth: 0, files: /^(data\.sqlite3(-wal)?|[^/]+\.jsonl?)$/ },
    { folder: join(root, "workspace-sessions"), depth: 1, files: /\.json$/ },
  ]
}

function* discover(root: string, seen: Seen, scratch?: Scratch): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const report = (problem: Unreadable) => void problems.push(problem)
  for (const { name } of entriesOf(root, report)) {
    const path = join(root, name)
    if (name === DATABASE) yield* unitsOfDatabase(path, (db) => conversationsIn(db, path), seen, scratch)
    else if (name === "workspace-sessions") yield* editorSessions(root, report)
    else if (name.endsWith(".jsonl")) {
      const stat = fileAt(path, report)
      const beside = path.replace(/l$/, "")
      if (stat) yield unitWithFacts(unitOfFile(path, `file:${name.slice(0, -6)}`, stat), factsAt(beside, report))
    }
  }
  yield* problems
}

function factsAt(path: string, report: (problem: Unreadable) => void): RawRecord | undefined {
  const meta = parseObject(textAt(path, MAX_META_BYTES, report) ?? "")
  if (!meta) return undefined
  const { session_id, cwd, title, created_at, updated_at } = meta
  return { type: "dex-session", session_id, cwd, title, created_at, updated_at }
}

function conversationsIn(db: ForeignDatabase, path: string): DatabaseSession[] {
  if (columnsOf(db, "conversations").size === 0) expectTable(db, "conversations_v2", "Kiro")
  return [...newerIn(db), ...olderIn(db, statSync(path).mtimeMs)]
}

/** A conversation that went on in another folder is there twice: the newest row holds it. */
function newerIn(db: ForeignDatabase): DatabaseSession[] {
  if (columnsOf(db, "conversations_v2").size === 0) return []
  const rows = db.all(
    `select conversation_id, count(*) as copies, min(created_at) as created_at, max(updated_at) as updated_at,
      sum(octet_length(value)) as bytes from conversations_v2 group by conversation_id`,
  )
  return rows.map(({ conversation_id, copies, created_at, updated_at, bytes }) => ({
    key: `v2:${conversation_id}`,
    stamp: [updated_at, copies, bytes].join(":"),
    bytes: number(bytes) ?? 0,
    modifiedAt: number(updated_at) ?? 0,
    bornAt: number(created_at),
  }))
}

function olderIn(db: ForeignDatabase, modifiedAt: number): DatabaseSession[] {
  return taggedRows(db, "conversations", ["key", "value"], "").map(({ key, value }) => {
    const text = string(value) ?? ""
    return { key: `v1:${key}`, stamp: `${text.length}:${crc32(text)}`, bytes: text.length, modifiedAt }
  })
}

function read(unit: UnitWithFacts, after?: Cursor, scratch?: Scratch): Reading {
  const [, kind, name] = /^(v1|v2|ide|file):(.*)$/s.exec(unit.key) ?? []
  if (kind === "ide") return readEditorSession(unit, after)
  if (kind === "file") return factsFirst(readJsonl(unit.path, after, { strip: stripKiroLine }), unit, after)
  const rowsOf = (db: ForeignDatabase, skip: (skipped: Skipped) => void) =>
    kind === "v2"
      ? turnsIn(taggedRows(db, "conversations_v2", V2_COLUMNS, V2_NEWEST, name!), skip)
      : turnsIn(taggedRows(db, "conversations", ["key", "value"], "where key = ?", name!), skip)
  return readDatabaseUnit(unit, rowsOf, stripKiroTurn, after, scratch)
}

const V2_COLUMNS = ["key", "conversation_id", "value", "created_at", "updated_at"]
const V2_NEWEST = "where conversation_id = ? order by updated_at desc limit 1"

/** A record about the conversation, and one for each turn: what was asked and what was answered. */
function turnsIn(rows: RawRecord[], skip: (skipped: Skipped) => void): RawRecord[] {
  return rows.flatMap(({ value, ...row }) => {
    const whole = parseObject(string(value) ?? "")
    if (!whole) {
      skip({ reason: "damaged JSON in value", where: `${row.table} ${row.key}` })
      return []
    }
    const { conversation_id, latest_summary } = whole
    const about = { conversation_id, ...row, type: "dex-conversation", latest_summary }
    return [about, ...records(whole.history).map((turn) => ({ type: "turn", ...turn }))]
  })
}

function identify(raw: RawRecord): string | undefined {
  if (raw.type === "dex-session" || raw.type === "dex-conversation") return raw.type
  const id = string(record(raw.request_metadata)?.message_id)
  return raw.type === "turn" && id !== undefined ? `turn ${id}` : undefined
}
