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

/** Zed's own agent: a row per thread, whose content is one compressed JSON text. */
export const zedConnector: Connector = {
  source: "zed",
  version: 1,
  roots: zedRoots,
  discover: (root: string, seen: IsUnchanged, scratch?: Scratch): Iterable<Unit | Unreadable> =>
    unitsOfDatabase(join(root, "threads.db"), threadsIn, seen, scratch),
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
      const { data, data_type, ...about } = row
      const content = contentOf(data, data_type)
      if (typeof content !== "string") return recordsOfThread(about, content)
      skip({ reason: content, where: `thread ${unit.key}` })
      return []
    })
  return readDatabaseUnit(unit, rowsIn, stripZed, after, scratch)
}

/** Decompresses a thread's data. Returns a string that describes the problem if that fails. */
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

/** Returns one record for the thread and one per message, so that a new message does not change all of them. */
function recordsOfThread(about: RawRecord, thread: RawRecord): RawRecord[] {
  const { messages, draft_prompt: _, ui_scroll_position: __, sandbox_grants: ___, ...rest } = thread
  const first = { ...about, thread: rest }
  return [first, ...array(messages).map((message, index) => ({ table: "messages", id: index, message }))]
}

/** Removes image bytes, signatures, the project's uncommitted changes, and the files before and after an edit. */
function stripZed(row: RawRecord): RawRecord {
  return cutLongTexts(withoutCopies(row) as RawRecord)
}

const NOT_STORED = ["signature", "thought_signature", "reasoning_details", "RedactedThinking", "old_text", "new_text"]

function withoutCopies(value: unknown, within = ""): unknown {
  if (Array.isArray(value)) return value.map((one) => withoutCopies(one, within))
  if (!isRecord(value)) return value
  const kept: RawRecord = {}
  for (const [key, field] of Object.entries(value)) {
    const image = key === "Image" ? record(field) : undefined
    const bytes = string(image?.source)
    if (bytes !== undefined) kept[key] = { image: digestOf(Buffer.from(bytes, "base64"), "image/png") }
    else if (within === "input" || !isCopy(key, within)) kept[key] = withoutCopies(field, key)
  }
  return kept
}

/**
 * Whether a field is a copy of a file. The input of a call is stored; `old_text` and `new_text` are entire files only in its
 * output.
 */
function isCopy(key: string, within: string): boolean {
  if (key === "old_text" || key === "new_text") return within === "output"
  return NOT_STORED.includes(key) || key === "raw_input" || (key === "diff" && within === "git_state")
}
