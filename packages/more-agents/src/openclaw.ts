import { dirname, join } from "node:path"
import type {
  Connector,
  Cursor,
  IsUnchanged,
  Parsed,
  Reading,
  Scratch,
  Skipped,
  Unit,
  UnitName,
  Unreadable,
} from "../../../src/agents/kit/connector.ts"
import {
  type DatabaseSession,
  readDatabaseUnit,
  taggedRows,
  unitsOfDatabase,
} from "../../../src/agents/kit/database-units.ts"
import {
  entriesOf,
  type Report,
  readLines,
  textAt,
  unitAt,
  unitWithFacts,
  withProblems,
} from "../../../src/agents/kit/files.ts"
import { columnsOf, type ForeignDatabase } from "../../../src/agents/kit/foreign-sqlite.ts"
import { openSkill, serverStart, type Wiring } from "../../../src/agents/kit/wiring.ts"
import { decompressZstdBytes } from "../../../src/agents/kit/zstd.ts"
import type { Conversation, Kind, Part } from "../../../src/core/conversation.ts"
import { withoutUndefined } from "../../../src/core/defined.ts"
import { messageOf } from "../../../src/core/error.ts"
import { number, parseObject, type RawRecord, record, string } from "../../../src/core/record.ts"
import { type PiDialect, parsePi, piConnector, stripPiEntry } from "./pi.ts"
import { openclawRoots } from "./records.ts"

/**
 * The known tables. Those with archived transcripts (`session_transcript_archives`, `session_transcript_cold_archives`) are not
 * among them, because what is in them is no longer in `transcript_events`, and dex does not read it.
 */
const OPENCLAW_TABLES = [
  ...["transcript_events", "transcript_event_identities", "transcript_rewrite_watermarks", "trajectory_runtime_events"],
  ...["session_nodes", "session_windows", "session_participants", "session_members", "session_conversations"],
  ...["session_key_contract", "session_canonical_validation_pending", "session_goal_operations", "session_suggestions"],
  ...["session_progress_cards", "session_pending_inputs", "session_input_completions", "session_transcript_fts_rows"],
  ...["session_transcript_index_state", "session_transcript_active_events", "schema_meta", "cache_entries"],
  ...["conversations", "conversation_deliveries", "board_tabs", "board_widgets", "heartbeat_outcomes"],
  ...["message_tool_run_outcomes", "acp_parent_stream_events", "context_engine_turn_outbox", "standing_intents"],
  ...["auth_profile_store", "auth_profile_state", "memory_index_meta", "memory_index_sources", "memory_index_chunks"],
  ...["memory_index_chunk_recall_metadata", "memory_index_chunk_provenance", "memory_index_state"],
  ...["memory_entry_origins", "memory_session_tombstones", "memory_embedding_cache"],
]

const DATABASE_PREFIX = "db:"

/**
 * Reads OpenClaw: entries in Pi's format, in one folder per agent. Since 2026.9 they are in a database, before that in files with
 * an index.
 */
export const openclawConnector: Connector = {
  source: "openclaw",
  version: 2,
  roots: openclawRoots,
  discover: (root, isUnchanged, scratch) => withProblems((report) => discover(root, report, isUnchanged, scratch)),
  watched: (root) => [
    { folder: root, depth: 2, files: /^[^/]+\/sessions\/(.*\.jsonl.*|sessions\.json)$/ },
    { folder: root, depth: 2, files: /^[^/]+\/agent\/openclaw-agent\.sqlite(-wal)?$/ },
  ],
  read,
  parse: parseOpenclaw,
  tables: OPENCLAW_TABLES,
  identify: (entry) => (entry.type === "dex-session" ? "dex-session" : piConnector.identify?.(entry)),
}

/**
 * Matches the files of sessions. OpenClaw renames a file when its session is reset or deleted. `.full.bak` is the file before
 * it was shortened.
 */
const TRANSCRIPT = /^(.+?)\.jsonl(?:\.(?:reset|deleted)\..+|\.full\.bak)?$/
/** Matches the ids of files that only look like transcripts: copies of transcripts, and logs of the requests to the model. */
const NOT_TRANSCRIPT = /\.(?:checkpoint\.[^/]*|trajectory)$/
const MAX_INDEX_BYTES = 64 << 20

function* discover(
  root: string,
  report: Report,
  isUnchanged: IsUnchanged,
  scratch?: Scratch,
): Generator<Unit | Unreadable> {
  for (const agent of entriesOf(root, report)) {
    if (!agent.isDirectory()) continue
    const database = join(root, agent.name, "agent", "openclaw-agent.sqlite")
    yield* unitsOfDatabase(database, openclawSessions(agent.name), isUnchanged, scratch)
    const folder = join(root, agent.name, "sessions")
    const facts = factsIn(join(folder, "sessions.json"), report)
    for (const [id, unit] of transcriptsIn(folder, agent.name, report)) yield unitWithFacts(unit, facts.get(id))
  }
}

const readFile = readLines(stripPiEntry)

function read(unit: Unit, after?: Cursor, scratch?: Scratch): Reading {
  if (!unit.key.startsWith(DATABASE_PREFIX)) return readFile(unit, after)
  const id = unit.key.slice(unit.key.indexOf("/") + 1)
  return readDatabaseUnit(unit, (db, skip) => openclawRows(db, id, skip), stripPiEntry, after, scratch)
}

/** Finds one unit per session. If a session has several files, OpenClaw's current file is used, or else the latest file. */
function transcriptsIn(folder: string, agent: string, report: Report): Map<string, Unit> {
  const units = new Map<string, Unit>()
  for (const { name } of entriesOf(folder, report)) {
    const id = TRANSCRIPT.exec(name)?.[1]
    if (id === undefined || NOT_TRANSCRIPT.test(id)) continue
    const path = join(folder, name)
    const unit = unitAt(path, `${agent}/${id}`, report)
    if (!unit) continue
    const earlier = units.get(id)
    if (!earlier || rank(unit) > rank(earlier)) units.set(id, unit)
  }
  return units
}

function rank({ path, modifiedAt }: Unit): number {
  return path.endsWith(".jsonl") ? Number.POSITIVE_INFINITY : modifiedAt
}

/** Maps each session id to its facts in the index. */
function factsIn(path: string, report: Report): Map<string, OpenclawFacts> {
  const index = parseObject(textAt(path, MAX_INDEX_BYTES, report) ?? "{}") ?? {}
  const idOf = (key: unknown) => string(record(index[String(key)])?.sessionId)
  return new Map(
    Object.entries(index).flatMap(([key, value]) => {
      const entry: RawRecord = record(value) ?? {}
      const [id, label, parent] = [string(entry.sessionId), string(entry.label), idOf(entry.spawnedBy)]
      if (id === undefined) return []
      return [[id, { type: "dex-session", key, label: label || undefined, parent: parent || undefined }] as const]
    }),
  )
}

/** The facts about a session in OpenClaw's index. They are stored as the first record of the unit. */
type OpenclawFacts = { type: "dex-session"; key: string; label?: string; parent?: string }

const OPENCLAW: PiDialect = {
  tools: {
    command: ["exec", "bash", "shell_exec", "run_terminal"],
    read: ["read"],
    write: ["write"],
    edit: ["edit", "edit_file"],
  },
  promptParts,
}

/** OpenClaw moved the files into the database, and continues the sessions there. */
const AUTHORITY = { database: 2, file: 1 }

function parseOpenclaw(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const entries: RawRecord[] = []
  let facts: RawRecord = {}
  for (const entry of raw) {
    if (entry.type === "dex-session") facts = entry
    else entries.push(entry)
  }
  const parsed = parsePi(entries, unit, OPENCLAW)
  const authority = unit.key.startsWith(DATABASE_PREFIX) ? AUTHORITY.database : AUTHORITY.file
  return {
    ...parsed,
    conversations: parsed.conversations.map((conversation) => ({ ...withFacts(conversation, facts), authority })),
  }
}

function withFacts(conversation: Conversation, { key, label, parent }: RawRecord): Conversation {
  const kind = kindOf(string(key) ?? "")
  const text = string(label)
  const parentId = string(parent)
  return {
    ...withoutUndefined(conversation),
    kind,
    title: text === undefined ? conversation.title : { text, from: kind === "person" ? "person" : "agent" },
    parent: kind === "subagent" && parentId !== undefined ? { id: parentId } : conversation.parent,
  }
}

/**
 * Returns the kind of a session. Its key shows who started it: `agent:main:main`, `agent:main:subagent:<id>`, `cron:<job>`,
 * `hook:<id>`.
 */
function kindOf(key: string): Kind {
  if (key.includes(":subagent:")) return "subagent"
  return /(?:^|:)(?:cron|hook):/.test(key) ? "automation" : "person"
}

const CLOSING_FENCE = "\n```"
/** Matches the time stamp at the beginning of a message that came over a channel. */
const TIME_STAMP = /^\[(?:[A-Z][a-z]{2} )?\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}[^\]\n]{0,24}\]\s+/

/**
 * Splits a prompt into the person's text and the text that the gateway inserts before it: blocks about the author and the
 * channel, and the time.
 */
function promptParts(text: string): Part[] {
  const start = bodyStart(text)
  const injectedParts: Part[] =
    start === 0 ? [] : [{ type: "text", text: text.slice(0, start).trim(), origin: "injected" }]
  const typedText = text.slice(start).trim()
  return typedText === "" ? injectedParts : [...injectedParts, { type: "text", text: typedText, origin: "person" }]
}

function bodyStart(text: string): number {
  let start = 0
  for (;;) {
    const opening = /^[A-Z][^\n(]{0,60}\(untrusted[^)\n]{0,40}\):\n```json\n/.exec(text.slice(start, start + 200))
    const close = opening ? text.indexOf(CLOSING_FENCE, start + opening[0].length - 1) : -1
    if (close === -1) break
    start = close + CLOSING_FENCE.length
    while (text[start] === "\n") start++
  }
  return start + (TIME_STAMP.exec(text.slice(start, start + 80))?.[0].length ?? 0)
}

// OpenClaw's database of an agent. It has replaced the files: the entries of a session are rows with the same JSON.

/** Lists the sessions of an agent's database. Their keys contain the agent, as those of files do. */
function openclawSessions(agent: string): (db: ForeignDatabase) => DatabaseSession[] {
  return (db) => {
    const columns = columnsOf(db, "transcript_events")
    if (!columns.has("event_json")) return [] // OpenClaw still keeps the transcripts in files, and here only its memory
    const labels = new Map(
      taggedRows(db, "session_nodes", ["session_key", "label"], "").map((row) => [row.session_key, row.label]),
    )
    const windows = new Map(
      taggedRows(db, "session_windows", WINDOW_COLUMNS, "").map((row) => [
        row.session_id,
        [row.session_key, row.spawned_by, labels.get(row.session_key)].join(":"),
      ]),
    )
    const generations = new Map(
      taggedRows(db, "transcript_rewrite_watermarks", ["session_id", "generation"], "").map((row) => [
        row.session_id,
        row.generation,
      ]),
    )
    return db
      .all(columns.has("event_zstd") ? PACKED_STATS : STATS)
      .map(({ id, count, last, born, modified, bytes }) => ({
        key: `${DATABASE_PREFIX}${agent}/${id}`,
        stamp: [count, last, bytes, modified, generations.get(id), windows.get(id)].join(":"),
        bytes: number(bytes) ?? 0,
        modifiedAt: number(modified) ?? 0,
        bornAt: number(born),
      }))
  }
}

const STATS = `select session_id as id, count(*) as count, max(seq) as last, min(created_at) as born,
  max(created_at) as modified, sum(octet_length(event_json)) as bytes from transcript_events group by session_id`
const PACKED_STATS = `select session_id as id, count(*) as count, max(seq) as last, min(created_at) as born,
  max(created_at) as modified, sum(coalesce(octet_length(event_json), octet_length(event_zstd))) as bytes
  from transcript_events group by session_id`
const WINDOW_COLUMNS = ["session_id", "session_key", "spawned_by"]

/** Reads what OpenClaw's list says about a session, then the session's entries. */
function openclawRows(db: ForeignDatabase, id: string, skip: (skipped: Skipped) => void): RawRecord[] {
  const [window] = taggedRows(db, "session_windows", WINDOW_COLUMNS, "where session_id = ?", id)
  const nodeOf = (key: unknown): RawRecord | undefined =>
    string(key) === undefined
      ? undefined
      : taggedRows(db, "session_nodes", NODE_COLUMNS, "where session_key = ?", string(key)!)[0]
  const node = nodeOf(window?.session_key)
  const facts = {
    type: "dex-session",
    key: string(window?.session_key),
    label: string(node?.label) || undefined,
    parent: string(nodeOf(window?.spawned_by ?? node?.spawned_by)?.current_session_id),
  }
  const entries = taggedRows(db, "transcript_events", EVENT_COLUMNS, "where session_id = ? order by seq", id)
  return [facts, ...entries.map((row) => entryOf(row, skip)).filter((entry) => entry !== undefined)]
}

/** Not the entry of a session as a whole, because that also contains its instructions. */
const NODE_COLUMNS = ["label", "current_session_id", "spawned_by"]
const EVENT_COLUMNS = ["seq", "event_json", "event_zstd"]

/** An entry is text, or compressed. A damaged one is skipped. */
function entryOf({ seq, event_json, event_zstd }: RawRecord, skip: (skipped: Skipped) => void): RawRecord | undefined {
  const where = `transcript_events ${seq}`
  try {
    const text = event_zstd instanceof Uint8Array ? decompressZstdBytes(event_zstd).toString("utf8") : event_json
    const entry = parseObject(string(text) ?? "")
    if (entry) return entry
    skip({ reason: "damaged JSON", where })
  } catch (error) {
    skip({ reason: `not readable as zstd: ${messageOf(error)}`, where })
  }
  return undefined
}

/** A plugin could add text for the model, but only if the person allows it to read all conversations. */
export const openclawWiring: Wiring = {
  signs: (machine) => ({ paths: openclawRoots(machine).map(dirname), program: "openclaw" }),
  files: (machine, bin) => [
    {
      path: machine.env.OPENCLAW_CONFIG_PATH || join(dirname(openclawRoots(machine)[0]!), "openclaw.json"),
      additions: [{ type: "property", path: ["mcp", "servers", "dex"], value: serverStart(bin) }],
    },
    openSkill(machine),
  ],
  note: () => "no hooks and no sub-agent: OpenClaw gets dex's tools and the skill",
}
