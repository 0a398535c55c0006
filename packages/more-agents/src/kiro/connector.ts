import { createHash } from "node:crypto"
import { statSync } from "node:fs"
import { join } from "node:path"
import { crc32 } from "node:zlib"
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
} from "../../../../src/agents/kit/connector.ts"
import {
  type DatabaseSession,
  expectTable,
  readDatabaseUnit,
  readingOfRows,
  taggedRows,
  unitsOfDatabase,
} from "../../../../src/agents/kit/database-units.ts"
import {
  entriesOf,
  fileAt,
  objectAt,
  prependFacts,
  type Report,
  textAt,
  type UnitWithFacts,
  unitOfFile,
  unitWithFacts,
  withProblems,
} from "../../../../src/agents/kit/files.ts"
import { columnsOf, type ForeignDatabase } from "../../../../src/agents/kit/foreign-sqlite.ts"
import { hunksBetween } from "../../../../src/agents/kit/hunks-between.ts"
import { isSettled, readJsonl } from "../../../../src/agents/kit/jsonl.ts"
import { cutLongTexts } from "../../../../src/agents/kit/messages.ts"
import { withoutUndefined } from "../../../../src/core/defined.ts"
import { messageOf } from "../../../../src/core/error.ts"
import { readStart, readText } from "../../../../src/core/read-file.ts"
import {
  array,
  number,
  parseArray,
  parseObject,
  type RawRecord,
  record,
  records,
  string,
} from "../../../../src/core/record.ts"
import { kiroRoots } from "../records.ts"
import { parseKiro } from "./parse.ts"

/**
 * Reads Kiro's conversations. The key of a unit begins with the kind of store. Kiro's command line has used a table with one
 * conversation per folder (`v1:`), a table of all conversations (`v2:`), and one file per conversation (`file:`). Kiro's editor
 * uses files (`ide:`). Kiro's predecessor, Amazon Q's command line, uses the two tables.
 */
export const kiroConnector: Connector = {
  source: "kiro",
  version: 1,
  roots: kiroRoots,
  discover: (root, isUnchanged, scratch) => withProblems((report) => discover(root, report, isUnchanged, scratch)),
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

function* discover(
  root: string,
  report: Report,
  isUnchanged: IsUnchanged,
  scratch?: Scratch,
): Generator<Unit | Unreadable> {
  for (const { name } of entriesOf(root, report)) {
    const path = join(root, name)
    if (name === DATABASE) yield* unitsOfDatabase(path, (db) => conversationsIn(db, path), isUnchanged, scratch)
    else if (name === "workspace-sessions") yield* editorSessions(root, report)
    else if (name.endsWith(".jsonl")) {
      const stat = fileAt(path, report)
      const metaPath = path.replace(/l$/, "")
      if (stat) yield unitWithFacts(unitOfFile(path, `file:${name.slice(0, -6)}`, stat), factsAt(metaPath, report))
    }
  }
}

function factsAt(path: string, report: Report): RawRecord | undefined {
  const meta = objectAt(path, MAX_META_BYTES, report)
  if (!meta) return undefined
  const { session_id, cwd, title, created_at, updated_at } = meta
  return { type: "dex-session", session_id, cwd, title, created_at, updated_at }
}

function conversationsIn(db: ForeignDatabase, path: string): DatabaseSession[] {
  if (columnsOf(db, "conversations").size === 0) expectTable(db, "conversations_v2", "Kiro")
  return [...newerConversations(db), ...olderConversations(db, statSync(path).mtimeMs)]
}

/** Lists the conversations in the newer table. A conversation that was continued in another folder has several rows. */
function newerConversations(db: ForeignDatabase): DatabaseSession[] {
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

function olderConversations(db: ForeignDatabase, modifiedAt: number): DatabaseSession[] {
  return taggedRows(db, "conversations", ["key", "value"], "").map(({ key, value }) => {
    const text = string(value) ?? ""
    return { key: `v1:${key}`, stamp: `${text.length}:${crc32(text)}`, bytes: text.length, modifiedAt }
  })
}

function read(unit: UnitWithFacts, after?: Cursor, scratch?: Scratch): Reading {
  const [, kind, name] = /^(v1|v2|ide|file):(.*)$/s.exec(unit.key) ?? []
  if (kind === "ide") return readEditorSession(unit, after)
  if (kind === "file") return prependFacts(readJsonl(unit.path, after, { strip: stripKiroLine }), unit, after)
  const rowsOf = (db: ForeignDatabase, skip: (skipped: Skipped) => void) =>
    kind === "v2"
      ? turnsIn(taggedRows(db, "conversations_v2", V2_COLUMNS, V2_NEWEST, name!), skip)
      : turnsIn(taggedRows(db, "conversations", ["key", "value"], "where key = ?", name!), skip)
  return readDatabaseUnit(unit, rowsOf, stripKiroTurn, after, scratch)
}

const V2_COLUMNS = ["key", "conversation_id", "value", "created_at", "updated_at"]
const V2_NEWEST = "where conversation_id = ? order by updated_at desc limit 1"

/** Returns a record about the conversation, and one for each turn (a prompt and its answer). */
function turnsIn(rows: RawRecord[], skip: (skipped: Skipped) => void): RawRecord[] {
  return rows.flatMap(({ value, ...row }) => {
    const conversation = parseObject(string(value) ?? "")
    if (!conversation) {
      skip({ reason: "damaged JSON in value", where: `${row.table} ${row.key}` })
      return []
    }
    const { conversation_id, latest_summary } = conversation
    const conversationRecord = { conversation_id, ...row, type: "dex-conversation", latest_summary }
    return [conversationRecord, ...records(conversation.history).map((turn) => ({ type: "turn", ...turn }))]
  })
}

function identify(raw: RawRecord): string | undefined {
  if (raw.type === "dex-session" || raw.type === "dex-conversation") return raw.type
  const id = string(record(raw.request_metadata)?.message_id)
  return raw.type === "turn" && id !== undefined ? `turn ${id}` : undefined
}

// Reads the editor's sessions. `workspace-sessions/<folder>/<id>.json` lists the messages in order. The agent's texts and actions
// are in separate logs, one per execution: `<hash of the folder>/<LOG_FOLDER>/…`.

/** The editor gives this name to every folder of logs. */
const LOG_FOLDER = "414d1636299d2b9e4ce7e17fb11f63e9"
const MAX_INDEX_BYTES = 16 << 20
const MAX_FILE_BYTES = 256 << 20
/** The number of bytes of a log that are searched for the execution's id, which is one of the first fields. */
const ID_SEARCH_BYTES = 1024

type EditorUnit = Unit & { created?: unknown }

function* editorSessions(root: string, report: Report): Generator<Unit> {
  const sessions = join(root, "workspace-sessions")
  for (const workspace of entriesOf(sessions, report)) {
    if (!workspace.isDirectory()) continue
    const folder = join(sessions, workspace.name)
    const index = records(parseArray(textAt(join(folder, "sessions.json"), MAX_INDEX_BYTES, report) ?? ""))
    for (const { name } of entriesOf(folder, report)) {
      if (!name.endsWith(".json") || name === "sessions.json") continue
      const path = join(folder, name)
      const stat = fileAt(path, report)
      if (!stat) continue
      const id = name.slice(0, -5)
      const entry = index.find(({ sessionId }) => sessionId === id)
      const logCount = countLogs(logFolder(root, string(entry?.workspaceDirectory)))
      const unit: EditorUnit = { ...unitOfFile(path, `ide:${workspace.name}/${id}`, stat), created: entry?.dateCreated }
      yield { ...unit, stamp: `${unit.stamp}:${logCount}` }
    }
  }
}

/** Counts the logs in a folder. The count is part of a session's stamp, because a new log may belong to that session. */
function countLogs(folder: string | undefined): number {
  return folder === undefined ? 0 : entriesOf(folder, () => {}).length
}

function logFolder(root: string, workspace: string | undefined): string | undefined {
  if (workspace === undefined) return undefined
  return join(root, createHash("sha256").update(workspace).digest("hex").slice(0, 32), LOG_FOLDER)
}

function readEditorSession(unit: EditorUnit, after?: Cursor): Reading {
  const file = parseObject(readText(unit.path, MAX_FILE_BYTES))
  if (!file) return incompleteReading(unit, after)
  const { sessionId, title, workspaceDirectory, history } = file
  const skipped: Skipped[] = []
  const root = join(unit.path, "..", "..", "..")
  const logs = logsIn(logFolder(root, string(workspaceDirectory)))
  const sessionRecord = { type: "dex-editor", sessionId, title, workspaceDirectory, created: unit.created }
  const rows = records(history).flatMap((entry, place) => {
    const { message, executionId } = entry
    const log = logs.get(string(executionId) ?? "")
    return [{ type: "history", place, message, executionId }, ...(log ? actionsIn(log, skipped) : [])]
  })
  return readingOfRows([sessionRecord, ...rows], cutLongTexts, skipped, after)
}

/**
 * Returns a reading without records for a file that is not complete JSON. Unless the file is old, the agent may still be
 * writing it.
 */
function incompleteReading({ modifiedAt }: Unit, after?: Cursor): Reading {
  const isFinal = isSettled(modifiedAt, Date.now())
  const skipped = isFinal ? [{ reason: "not a complete JSON object", where: "the file" }] : []
  return {
    mode: "append",
    records: [],
    end: () => ({ cursor: after ?? { offset: 0, crc: 0 }, skipped, pending: !isFinal }),
  }
}

/** Maps the execution ids of a workspace to the paths of their logs. */
function logsIn(folder: string | undefined): Map<string, string> {
  const logs = new Map<string, string>()
  if (folder === undefined) return logs
  for (const { name } of entriesOf(folder, () => {})) {
    const path = join(folder, name)
    if (!fileAt(path, () => {})) continue
    const id = /"executionId"\s*:\s*"([^"]{1,100})"/.exec(readStart(path, ID_SEARCH_BYTES).toString("utf8"))?.[1]
    if (id !== undefined) logs.set(id, path)
  }
  return logs
}

function actionsIn(path: string, skipped: Skipped[]): RawRecord[] {
  try {
    const log = parseObject(readText(path, MAX_FILE_BYTES))
    if (!log) throw new Error("not a complete JSON object")
    return records(log.actions).map(({ actionId, actionType, emittedAt, input, output }) => {
      const { originalContent, modifiedContent, ...request } = record(input) ?? {}
      const [before, after] = [string(originalContent) ?? "", string(modifiedContent) ?? ""]
      const file = string(request.file)
      const hunks = file === undefined ? [] : hunksBetween(file, before, after)
      return { type: "action", actionId, actionType, emittedAt, input: request, output: record(output), hunks }
    })
  } catch (error) {
    skipped.push({ reason: messageOf(error), where: path })
    return []
  }
}

/** Keeps only the model, the id and the end time of a request, and the number of images in a prompt. */
function stripKiroTurn({ request_metadata, user, ...rest }: RawRecord): RawRecord {
  const [request, prompt] = [record(request_metadata), record(user)]
  const { images, ...content } = prompt ?? {}
  const { model_id, message_id, stream_end_timestamp_ms } = request ?? {}
  return cutLongTexts({
    ...rest,
    ...withoutUndefined({
      user: prompt && {
        ...content,
        ...withoutUndefined({ images: array(images).length > 0 ? array(images).length : undefined }),
      },
    }),
    ...withoutUndefined({ request_metadata: request && { model_id, message_id, stream_end_timestamp_ms } }),
  })
}

function stripKiroLine(line: RawRecord): RawRecord {
  const data = record(line.data)
  if (!Array.isArray(data?.content)) return cutLongTexts(line)
  const content = records(data.content).map((block) => (block.kind === "image" ? { kind: "image" } : block))
  return cutLongTexts({ ...line, data: { ...data, content } })
}
