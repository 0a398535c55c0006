import { join } from "node:path"
import { number, parseArray, type RawRecord, record, records, string, time } from "../../core/record.ts"
import type { Connector, Cursor, Reading, Scratch, Seen, Skipped, Unit, Unreadable, Watched } from "../kit/connector.ts"
import {
  type DatabaseSession,
  expectTable,
  readDatabaseUnit,
  taggedRows,
  unitsOfDatabase,
  withJsonColumns,
} from "../kit/database-units.ts"
import { entriesOf, fileAt } from "../kit/folder.ts"
import type { ForeignDatabase } from "../kit/foreign-sqlite.ts"
import { readJsonFile } from "../kit/json-file.ts"
import { readJsonl } from "../kit/jsonl.ts"
import { digestOfDataUri, withoutBulk } from "../kit/kept-text.ts"
import { unitOfFile } from "../kit/unit-of-file.ts"
import { parseHermes } from "./parse.ts"
import { hermesRoots } from "./roots.ts"

/**
 * Hermes Agent: a database, and files of the same sessions in `sessions/`, which older versions had alone; the database wins.
 * Each profile has a folder of its own with both.
 */
export const hermesConnector: Connector = {
  source: "hermes",
  version: 1,
  roots: hermesRoots,
  discover,
  watched,
  read,
  parse: parseHermes,
  identify: (raw) => (raw.table === undefined ? undefined : `${raw.table}:${raw.id}`),
  tables: [
    ...["sessions", "messages", "system_prompts", "session_model_usage", "schema_version", "state_meta"],
    ...["gateway_routing", "gateway_hygiene_state", "gateway_heartbeats", "conversation_generations"],
    ...["compression_locks", "session_turn_leases", "async_delegations"],
  ],
}

function watched(root: string): Watched[] {
  return [
    { folder: root, depth: 0, files: /^state\.db(-wal)?$/ },
    { folder: join(root, "sessions"), depth: 0, files: /\.jsonl?$/ },
    { folder: join(root, "profiles"), depth: 2, files: /^[^/]+\/(state\.db(-wal)?|sessions\/[^/]+\.jsonl?)$/ },
  ]
}

function* discover(root: string, seen: Seen, scratch?: Scratch): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const report = (problem: Unreadable) => void problems.push(problem)
  yield* unitsIn(root, "", seen, report, scratch)
  for (const profile of entriesOf(join(root, "profiles"), report))
    if (profile.isDirectory())
      yield* unitsIn(join(root, "profiles", profile.name), `${profile.name}/`, seen, report, scratch)
  yield* problems
}

function* unitsIn(
  folder: string,
  profile: string,
  seen: Seen,
  report: (problem: Unreadable) => void,
  scratch?: Scratch,
): Generator<Unit | Unreadable> {
  yield* unitsOfDatabase(join(folder, "state.db"), (db) => sessionsIn(db, profile), seen, scratch)
  for (const { name } of entriesOf(join(folder, "sessions"), report)) {
    if (!/^(session_)?\d{8}_.*\.jsonl?$/.test(name)) continue
    const path = join(folder, "sessions", name)
    const stat = fileAt(path, report)
    if (stat) yield unitOfFile(path, `file:${profile}${name}`, stat)
  }
}

function sessionsIn(db: ForeignDatabase, profile: string): DatabaseSession[] {
  expectTable(db, "sessions", "Hermes")
  const said = new Map(db.all(SAID).map((row) => [row.id, row]))
  return taggedRows(db, "sessions", SESSION_COLUMNS, "").map((row) => {
    const { count, last, bytes, latest } = said.get(string(row.id) ?? "") ?? {}
    const bornAt = time(row.started_at)
    return {
      key: `db:${profile}${row.id}`,
      stamp: [row.title, row.ended_at, row.output_tokens, count, last, bytes].join(":"),
      bytes: number(bytes) ?? 0,
      modifiedAt: time(latest) ?? time(row.ended_at) ?? bornAt ?? 0,
      bornAt,
    }
  })
}

const SAID = `select session_id as id, count(*) as count, max(id) as last, max(timestamp) as latest,
  sum(octet_length(content)) as bytes from messages group by session_id`

/** Named one by one: the table also has the system prompt and who the person is. */
const SESSION_COLUMNS = [
  ...["id", "source", "model", "parent_session_id", "started_at", "ended_at", "end_reason", "title", "title_source"],
  ...["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"],
  ...["estimated_cost_usd", "actual_cost_usd", "cwd", "git_branch"],
]
const MESSAGE_COLUMNS = [
  ...["id", "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp", "finish_reason"],
  ...["reasoning", "reasoning_content", "active"],
]

function read(unit: Unit, after?: Cursor, scratch?: Scratch): Reading {
  if (unit.path.endsWith(".jsonl")) return readJsonl(unit.path, after, { strip: stripMessage })
  if (unit.path.endsWith(".json")) return readJsonFile(unit.path, after, recordsOfFile)
  const id = unit.key.replace(/^db:(.*\/)?/s, "")
  return readDatabaseUnit(unit, (db, skip) => rowsOf(db, id, skip), stripMessage, after, scratch)
}

function rowsOf(db: ForeignDatabase, id: string, skip: (skipped: Skipped) => void): RawRecord[] {
  const about = taggedRows(db, "sessions", SESSION_COLUMNS, "where id = ?", id)
  const parent = string(about[0]?.parent_session_id)
  const ended = parent === undefined ? [] : taggedRows(db, "sessions", ["end_reason"], "where id = ?", parent)
  const messages = taggedRows(db, "messages", MESSAGE_COLUMNS, "where session_id = ? order by id", id)
  return [
    ...about.map((row) => ({ ...row, parent_ended: ended[0]?.end_reason })),
    ...withJsonColumns(messages, ["tool_calls"], skip),
  ]
}

/** Named fields only: the rest are the system prompt, tools' descriptions and addresses. */
function* recordsOfFile(whole: RawRecord): Generator<RawRecord> {
  const { session_id, model, platform, session_start, last_updated, title } = whole
  const cwd = string(whole.cwd) ?? record(whole.model_config)?.cwd
  yield { type: "dex-session", session_id, model, platform, session_start, last_updated, title, cwd }
  for (const message of records(whole.messages)) yield stripMessage(message)
}

/** Without what only the provider can read, and image bytes. Content that is no text is stored as text with a mark. */
function stripMessage(message: RawRecord): RawRecord {
  const { codex_reasoning_items: _, codex_message_items: __, reasoning_details: ___, tools: ____, ...kept } = message
  const text = string(kept.content)
  const listed = text?.startsWith(LIST_MARK) ? parseArray(text.slice(LIST_MARK.length)) : kept.content
  const content = Array.isArray(listed) ? { content: records(listed).map(stripPiece) } : {}
  return withoutBulk({ ...kept, ...content })
}

const LIST_MARK = "\u0000json:"

function stripPiece(piece: RawRecord): RawRecord {
  const digest = digestOfDataUri(string(record(piece.image_url)?.url) ?? "")
  return digest ? { type: "image", image: digest } : piece
}
