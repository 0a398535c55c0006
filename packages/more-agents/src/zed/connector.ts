import { join } from "node:path"
import type {
  Connector,
  Cursor,
  IsUnchanged,
  Reading,
  Scratch,
  Skipped,
  Unit,
  Unreadable,
} from "../../../../src/agents/kit/connector.ts"
import {
  type DatabaseSession,
  expectTable,
  readDatabaseUnit,
  taggedRows,
  unitsOfDatabase,
} from "../../../../src/agents/kit/database-units.ts"
import type { ForeignDatabase } from "../../../../src/agents/kit/foreign-sqlite.ts"
import { cutLongTexts, digestOf } from "../../../../src/agents/kit/messages.ts"
import { decompressZstdBytes } from "../../../../src/agents/kit/zstd.ts"
import {
  array,
  isRecord,
  number,
  parseObject,
  type RawRecord,
  record,
  string,
  time,
} from "../../../../src/core/record.ts"
import { zedRoots } from "../records.ts"
import { parseZed } from "./parse.ts"

/** Reads Zed's own agent: one database row per thread, with the content as one compressed JSON text. */
export const zedConnector: Connector = {
  source: "zed",
  version: 1,
  roots: zedRoots,
  discover: (root: string, isUnchanged: IsUnchanged, scratch?: Scratch): Iterable<Unit | Unreadable> =>
    unitsOfDatabase(join(root, "threads.db"), threadsIn, isUnchanged, scratch),
  watched: (root) => [{ folder: root, depth: 0, files: /^threads\.db(-wal)?$/ }],
  read,
  parse: parseZed,
  identify: (raw) => `${raw.table}:${raw.id}`,
  tables: ["threads"],
}

function threadsIn(db: ForeignDatabase): DatabaseSession[] {
  expectTable(db, "threads", "Zed")
  const sizes = new Map(
    db.all("select id, octet_length(data) as bytes from threads").map(({ id, bytes }) => [id, bytes]),
  )
  return taggedRows(db, "threads", ["id", "updated_at", "created_at"], "").map((row) => {
    const bornAt = time(row.created_at)
    const bytes = number(sizes.get(row.id)) ?? 0
    return {
      key: String(row.id),
      stamp: `${row.updated_at}:${bytes}`,
      bytes,
      modifiedAt: time(row.updated_at) ?? 0,
      bornAt,
    }
  })
}

const COLUMNS = ["id", "summary", "updated_at", "created_at", "parent_id", "folder_paths", "folder_paths_order"]

function read(unit: Unit, after?: Cursor, scratch?: Scratch): Reading {
  const rowsIn = (db: ForeignDatabase, skip: (skipped: Skipped) => void): RawRecord[] =>
    taggedRows(db, "threads", [...COLUMNS, "data_type", "data"], "where id = ?", unit.key).flatMap((row) => {
      const { data, data_type, ...columns } = row
      const content = contentOf(data, data_type)
      if (typeof content !== "string") return recordsOfThread(columns, content)
      skip({ reason: content, where: `thread ${unit.key}` })
      return []
    })
  return readDatabaseUnit(unit, rowsIn, stripZed, after, scratch)
}

/** Decompresses a thread's data. If that fails, returns a description of the problem. */
function contentOf(data: unknown, type: unknown): RawRecord | string {
  try {
    const isBytes = data instanceof Uint8Array
    const bytes = isBytes ? data : Buffer.from(string(data) ?? "")
    const json = type === "zstd" ? decompressZstdBytes(bytes) : bytes
    return parseObject(Buffer.from(json).toString("utf8")) ?? "damaged JSON"
  } catch (error) {
    return `not readable as ${String(type)}: ${error instanceof Error ? error.message : String(error)}`
  }
}

/** Returns one record for the thread and one per message, so that a new message does not change the earlier records. */
function recordsOfThread(columns: RawRecord, thread: RawRecord): RawRecord[] {
  const { messages, draft_prompt: _, ui_scroll_position: __, sandbox_grants: ___, ...rest } = thread
  const threadRecord = { ...columns, thread: rest }
  return [threadRecord, ...array(messages).map((message, index) => ({ table: "messages", id: index, message }))]
}

/** Removes image bytes, signatures, the project's uncommitted changes, and the contents of files before and after an edit. */
function stripZed(row: RawRecord): RawRecord {
  return cutLongTexts(withoutOmittedFields(row) as RawRecord)
}

const OMITTED_FIELDS = [
  "signature",
  "thought_signature",
  "reasoning_details",
  "RedactedThinking",
  "old_text",
  "new_text",
]

function withoutOmittedFields(value: unknown, parentKey = ""): unknown {
  if (Array.isArray(value)) return value.map((one) => withoutOmittedFields(one, parentKey))
  if (!isRecord(value)) return value
  const storedFields: RawRecord = {}
  for (const [key, field] of Object.entries(value)) {
    const image = key === "Image" ? record(field) : undefined
    const bytes = string(image?.source)
    if (bytes !== undefined) storedFields[key] = { image: digestOf(Buffer.from(bytes, "base64"), "image/png") }
    else if (parentKey === "input" || !isOmitted(key, parentKey)) storedFields[key] = withoutOmittedFields(field, key)
  }
  return storedFields
}

/** True for a field that is not stored. In the output of a call, `old_text` and `new_text` are entire files. */
function isOmitted(key: string, parentKey: string): boolean {
  if (key === "old_text" || key === "new_text") return parentKey === "output"
  return OMITTED_FIELDS.includes(key) || key === "raw_input" || (key === "diff" && parentKey === "git_state")
}
