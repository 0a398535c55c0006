import { join } from "node:path"
import type {
  Connector,
  Cursor,
  IsUnchanged,
  Reading,
  Scratch,
  Unit,
  Unreadable,
  Watched,
} from "../../../../src/agents/kit/connector.ts"
import {
  type DatabaseSession,
  expectTable,
  parseJsonColumns,
  readDatabaseUnit,
  taggedRows,
  unitsOfDatabase,
} from "../../../../src/agents/kit/database-units.ts"
import { entriesOf, type Report, unitAt, withProblems } from "../../../../src/agents/kit/files.ts"
import { columnsOf, type ForeignDatabase } from "../../../../src/agents/kit/foreign-sqlite.ts"
import { readJsonl } from "../../../../src/agents/kit/jsonl.ts"
import { cutLongTexts, digestOf, utcTime } from "../../../../src/agents/kit/messages.ts"
import { withoutUndefined } from "../../../../src/core/defined.ts"
import { array, isRecord, number, type RawRecord, record, string } from "../../../../src/core/record.ts"
import { gooseRoots } from "../records.ts"
import { parseGoose } from "./parse.ts"

/**
 * Reads Goose. Since version 1.10 it uses a database; before that, it used one file of JSON lines per session. Goose imports
 * these files but leaves them on disk, so dex reads both, and the database takes precedence if both have the same session.
 */
export const gooseConnector: Connector = {
  source: "goose",
  version: 1,
  roots: gooseRoots,
  discover: (root, isUnchanged, scratch) => withProblems((report) => discover(root, report, isUnchanged, scratch)),
  watched: (root): Watched[] => [{ folder: root, depth: 0, files: /^sessions\.db(-wal)?$|\.jsonl$/ }],
  read,
  parse: parseGoose,
  identify: (raw) => (raw.table === undefined ? undefined : `${raw.table}:${raw.id}`),
  tables: ["sessions", "messages", "schema_version"],
}

function* discover(
  root: string,
  report: Report,
  isUnchanged: IsUnchanged,
  scratch?: Scratch,
): Generator<Unit | Unreadable> {
  for (const { name } of entriesOf(root, report)) {
    const path = join(root, name)
    if (name === "sessions.db") yield* unitsOfDatabase(path, sessionsIn, isUnchanged, scratch)
    else if (name.endsWith(".jsonl")) {
      const unit = unitAt(path, `file:${name}`, report)
      if (unit) yield unit
    }
  }
}

function sessionsIn(db: ForeignDatabase): DatabaseSession[] {
  expectTable(db, "sessions", "Goose")
  const hasMetadata = columnsOf(db, "messages").has("metadata_json")
  const contentStats = new Map(
    db.all(hasMetadata ? CONTENT_AND_METADATA_STATS : CONTENT_STATS).map((row) => [row.id, row]),
  )
  return db.all("select id, created_at, updated_at from sessions").map((row) => {
    const { count, last, bytes, about } = contentStats.get(row.id) ?? {}
    const bornAt = utcTime(row.created_at)
    return {
      key: `db:${row.id}`,
      stamp: [row.updated_at, count, last, bytes, about].join(":"),
      bytes: number(bytes) ?? 0,
      modifiedAt: utcTime(row.updated_at) ?? 0,
      bornAt,
    }
  })
}

const CONTENT_STATS = `select session_id as id, count(*) as count, max(id) as last, sum(octet_length(content_json)) as bytes
  from messages group by session_id`
const CONTENT_AND_METADATA_STATS = `select session_id as id, count(*) as count, max(id) as last,
  sum(octet_length(content_json)) as bytes, sum(octet_length(metadata_json)) as about from messages group by session_id`

function read(unit: Unit, after?: Cursor, scratch?: Scratch): Reading {
  if (!unit.key.startsWith("db:")) return readJsonl(unit.path, after, { strip: stripGoose })
  const id = unit.key.slice("db:".length)
  return readDatabaseUnit(
    unit,
    (db, skip) => [
      ...parseJsonColumns(taggedRows(db, "sessions", SESSION_COLUMNS, "where id = ?", id), ["model_config_json"], skip),
      ...parseJsonColumns(
        taggedRows(db, "messages", MESSAGE_COLUMNS, "where session_id = ? order by id", id),
        ["content_json", "metadata_json"],
        skip,
      ),
    ],
    stripGoose,
    after,
    scratch,
  )
}

/**
 * The columns of a session that are read. Recipes and the data of extensions are not read, because they may contain secrets.
 */
const SESSION_COLUMNS = [
  ...["id", "name", "description", "user_set_name", "session_type", "working_dir", "created_at", "updated_at"],
  ...["input_tokens", "output_tokens", "accumulated_input_tokens", "accumulated_output_tokens", "accumulated_cost"],
  ...["schedule_id", "provider_name", "model_config_json", "goose_mode", "archived_at", "parent_session_id"],
]
const MESSAGE_COLUMNS = [
  ...["id", "message_id", "session_id", "role", "content_json", "created_timestamp", "tokens", "metadata_json"],
]

/** Removes image bytes and signatures; keeps only the name of a model's settings. */
function stripGoose(row: RawRecord): RawRecord {
  const content = row.table === undefined ? "content" : "content_json"
  const settings = record(row.model_config_json)
  return cutLongTexts({
    ...row,
    ...withoutUndefined({ model_config_json: settings && { model_name: settings.model_name } }),
    ...(Array.isArray(row[content]) && { [content]: row[content].map(stripBlock) }),
  })
}

function stripBlock(value: unknown): unknown {
  if (!isRecord(value)) return value
  const { signature: _, metadata: __, _meta: ___, ...block } = value
  if (block.type === "redactedThinking") return { type: block.type }
  if (block.type === "image") return withoutImageBytes(block)
  const result = record(block.toolResult)
  const answer = record(result?.value)
  if (!result || !answer) return block
  const pieces = array(answer.content).map((piece) => (isRecord(piece) ? withoutImageBytes(piece) : piece))
  return { ...block, toolResult: { ...result, value: { ...answer, content: pieces } } }
}

function withoutImageBytes(piece: RawRecord): RawRecord {
  if (piece.type !== "image" || typeof piece.data !== "string") return piece
  const { data, ...rest } = piece
  return { ...rest, image: digestOf(Buffer.from(data, "base64"), string(piece.mimeType)) }
}
