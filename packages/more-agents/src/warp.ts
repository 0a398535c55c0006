import { join } from "node:path"
import { type CallAction, resultOfCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
import type {
  Connector,
  Cursor,
  Parsed,
  Reading,
  Scratch,
  Skipped,
  Unit,
  UnitName,
} from "../../../src/agents/kit/connector.ts"
import {
  type DatabaseSession,
  expectTable,
  parseJsonColumns,
  readDatabaseUnit,
  taggedRows,
  unitsOfDatabase,
} from "../../../src/agents/kit/database-units.ts"
import { hunkOfNewFile, hunksOfReplacement } from "../../../src/agents/kit/effects.ts"
import { columnsOf, type ForeignDatabase } from "../../../src/agents/kit/foreign-sqlite.ts"
import { conversationFrom, cutLongTexts, uniqueKeys, utcTime } from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Conversation, Effect, Message, Origin, Part } from "../../../src/core/conversation.ts"
import { array, number, type RawRecord, record, records, string, time } from "../../../src/core/record.ts"
import { warpRoots } from "./records.ts"

/** Reads Warp's agent: tasks with their messages, as protobuf in a database, and the list of prompts next to them. */
export const warpConnector: Connector = {
  source: "warp",
  version: 1,
  roots: warpRoots,
  *discover(root, isUnchanged, scratch) {
    for (const name of DATABASES) yield* unitsOfDatabase(join(root, name), sessionsIn, isUnchanged, scratch)
  },
  watched: (root) => [{ folder: root, depth: 1, files: /^(?:tui\/)?warp\.sqlite(-wal)?$/ }],
  read,
  parse: parseWarp,
  identify: (raw) => (raw.table === "message" ? `message:${raw.id}` : undefined),
}

/** The window's database, and the one of Warp in another terminal. */
const DATABASES = ["warp.sqlite", join("tui", "warp.sqlite")]

function sessionsIn(db: ForeignDatabase): DatabaseSession[] {
  expectTable(db, "ai_queries", "Warp")
  const sessions = new Map<string, DatabaseSession>()
  for (const sql of [QUERY_STATS, ...(columnsOf(db, "agent_tasks").size > 0 ? [TASK_STATS] : [])])
    for (const { key, born, changed, count, bytes } of db.all(sql)) {
      const earlier = sessions.get(String(key))
      const [bornAt, modifiedAt] = [utcTime(born), utcTime(changed) ?? 0]
      sessions.set(String(key), {
        key: String(key),
        stamp: [earlier?.stamp, changed, count, bytes].join(":"),
        bytes: (earlier?.bytes ?? 0) + (number(bytes) ?? 0),
        modifiedAt: Math.max(earlier?.modifiedAt ?? 0, modifiedAt),
        bornAt: earlier?.bornAt ?? bornAt,
      })
    }
  return [...sessions.values()]
}

const QUERY_STATS = `select conversation_id as key, min(start_ts) as born, max(start_ts) as changed, count(*) as count,
  sum(octet_length(input)) as bytes from ai_queries group by conversation_id`
const TASK_STATS = `select conversation_id as key, min(last_modified_at) as born, max(last_modified_at) as changed, count(*) as count,
  sum(octet_length(task)) as bytes from agent_tasks group by conversation_id`

/** A conversation's own row contains tokens of Warp's server, and is not read. */
function read(unit: Unit, after?: Cursor, scratch?: Scratch): Reading {
  const rowsIn = (db: ForeignDatabase, skip: (skipped: Skipped) => void): RawRecord[] => [
    ...parseJsonColumns(
      taggedRows(db, "ai_queries", QUERY_COLUMNS, "where conversation_id = ? order by start_ts, id", unit.key),
      ["input"],
      skip,
    ),
    ...taggedRows(db, "agent_tasks", ["task_id", "task"], "where conversation_id = ? order by id", unit.key).flatMap(
      ({ task_id, task }) => {
        const decoded = task instanceof Uint8Array ? decode(TASK, task) : undefined
        if (!decoded) skip({ reason: "not readable as protobuf", where: `agent_tasks ${task_id}` })
        return decoded ? [...recordsOfTask(decoded)] : []
      },
    ),
  ]
  return readDatabaseUnit(unit, rowsIn, stripRow, after, scratch)
}

const QUERY_COLUMNS = ["id", "exchange_id", "start_ts", "input", "working_directory", "model_id"]

/** Keeps of a query only what the person typed. */
function stripRow(row: RawRecord): RawRecord {
  if (row.table !== "ai_queries") return cutLongTexts(row)
  const prompts = records(row.input).flatMap(({ Query }) => string(record(Query)?.text) ?? [])
  return cutLongTexts({ ...row, input: prompts })
}

function* recordsOfTask({ messages, ...task }: RawRecord): Generator<RawRecord> {
  yield { table: "task", ...task }
  for (const message of records(messages)) yield { table: "message", task: task.id, ...message }
}

// The numbers of the fields in Warp's published schema (apis/multi_agent/v1). Fields that are not listed are left out.

type Shape = {
  [field: number]: readonly [name: string, kind?: "texts" | "number" | "struct" | Shape | readonly [Shape]]
}

const FINISHED: Shape = { 1: ["output"], 2: ["exit_code", "number"] }
const FAILURE: Shape = { 1: ["message"] }
const FILE: Shape = { 1: ["path"], 2: ["content"] }
const PATH: Shape = { 1: ["path"] }
const TIME: Shape = { 1: ["seconds", "number"], 2: ["nanos", "number"] }

const CALL: Shape = {
  1: ["id"],
  2: ["run_shell_command", { 1: ["command"] }],
  3: ["search_codebase", { 1: ["query"], 2: ["path_filters", "texts"], 3: ["codebase_path"] }],
  4: ["server", { 1: ["payload"] }],
  5: ["read_files", { 1: ["files", [PATH]] }],
  6: [
    "apply_file_diffs",
    {
      1: ["summary"],
      2: ["diffs", [{ 1: ["path"], 2: ["search"], 3: ["replace"] }]],
      3: ["new_files", [FILE]],
      4: ["deleted_files", [PATH]],
      5: ["updates", [{ 1: ["path"], 2: ["move_to"], 3: ["hunks", [{ 3: ["old"], 4: ["new"] }]] }]],
    },
  ],
  7: ["suggest_plan", { 1: ["summary"] }],
  8: ["suggest_create_plan", {}],
  9: ["grep", { 1: ["queries", "texts"], 2: ["path"] }],
  10: ["file_glob", { 1: ["patterns", "texts"], 2: ["path"] }],
  11: ["read_mcp_resource", { 1: ["uri"], 2: ["server_id"] }],
  12: ["call_mcp_tool", { 1: ["name"], 2: ["args", "struct"], 3: ["server_id"] }],
  13: ["write_to_long_running_shell_command", { 1: ["input"], 3: ["command_id"] }],
  14: ["suggest_new_conversation", {}],
  15: ["file_glob", { 1: ["patterns", "texts"], 2: ["path"] }],
  16: ["suggest_prompt", { 1: ["banner", { 3: ["query"] }], 2: ["chip", { 1: ["prompt"] }] }],
  17: ["open_code_review", {}],
  18: ["init_project", {}],
  19: ["subagent", { 1: ["task_id"], 2: ["payload"] }],
  20: ["read_documents", { 1: ["documents", [{ 1: ["document_id"] }]] }],
  21: ["edit_documents", { 1: ["diffs", [{ 1: ["document_id"], 2: ["search"], 3: ["replace"] }]] }],
  22: ["create_documents", { 1: ["new_documents", [{ 1: ["content"], 2: ["title"] }]] }],
  23: ["read_shell_command_output", { 1: ["command_id"] }],
  24: ["use_computer", { 3: ["action_summary"] }],
  26: ["read_skill", { 1: ["skill_path"], 2: ["bundled_skill_id"], 3: ["name"] }],
  28: ["fetch_conversation", { 1: ["conversation_id"] }],
  29: ["start_agent", { 1: ["name"], 2: ["prompt"] }],
  30: ["send_message_to_agent", { 1: ["addresses", "texts"], 2: ["subject"], 3: ["message"] }],
}

/** Of an edit's result only the paths are kept: it contains the whole files. */
const RESULT: Shape = {
  1: ["id"],
  2: [
    "run_shell_command",
    {
      1: ["output"],
      2: ["exit_code", "number"],
      3: ["command"],
      4: ["running", {}],
      5: ["finished", FINISHED],
      6: ["denied", {}],
    },
  ],
  3: ["search_codebase", { 1: ["success", { 1: ["files", [FILE]] }], 2: ["error", FAILURE] }],
  4: ["server", { 1: ["output"] }],
  5: [
    "read_files",
    {
      1: ["success", { 1: ["files", [FILE]] }],
      2: ["error", FAILURE],
      3: ["any", { 1: ["files", [{ 6: ["text", FILE] }]] }],
    },
  ],
  6: [
    "apply_file_diffs",
    { 1: ["success", { 2: ["files", [{ 1: ["text", PATH] }]], 3: ["deleted", [PATH]] }], 2: ["error", FAILURE] },
  ],
  7: ["suggest_plan", { 2: ["edited", { 1: ["message"] }] }],
  9: ["grep", { 1: ["success", { 1: ["files", [PATH]] }], 2: ["error", FAILURE] }],
  10: ["file_glob", { 1: ["success", { 1: ["output"] }], 2: ["error", FAILURE] }],
  14: ["cancel", {}],
  15: [
    "read_mcp_resource",
    { 1: ["success", { 1: ["files", [{ 2: ["text", { 1: ["content"] }] }]] }], 2: ["error", FAILURE] },
  ],
  16: [
    "call_mcp_tool",
    {
      1: [
        "success",
        { 1: ["files", [{ 1: ["text", { 1: ["content"] }], 3: ["resource", { 2: ["text", { 1: ["content"] }] }] }]] },
      ],
      2: ["error", FAILURE],
    },
  ],
  17: ["write_to_long_running_shell_command", { 2: ["finished", FINISHED], 3: ["error", {}] }],
  19: ["file_glob", { 1: ["success", { 1: ["files", [PATH]] }], 2: ["error", FAILURE] }],
  23: ["subagent", { 1: ["output"] }],
  24: ["read_documents", { 2: ["error", FAILURE] }],
  27: ["read_shell_command_output", { 3: ["finished", FINISHED], 4: ["error", {}] }],
  30: ["read_skill", { 1: ["success", { 1: ["text", FILE] }], 2: ["error", FAILURE] }],
  33: ["start_agent", { 2: ["error", FAILURE] }],
  34: ["send_message_to_agent", { 2: ["error", FAILURE] }],
}

const MESSAGE: Shape = {
  1: ["id"],
  14: ["at", TIME],
  2: ["user_query", { 1: ["query"], 2: ["context", { 1: ["directory", { 1: ["pwd"] }] }] }],
  3: ["agent_output", { 1: ["text"] }],
  4: ["tool_call", CALL],
  5: ["tool_call_result", RESULT],
  9: [
    "system_query",
    { 1: ["diff", { 1: ["query"] }], 5: ["project", { 1: ["query"] }], 7: ["summarize", { 1: ["query"] }] },
  ],
  15: ["agent_reasoning", { 1: ["text"] }],
  16: ["summarization", { 1: ["conversation", { 1: ["summary"] }] }],
  24: ["received", { 1: ["messages", [{ 4: ["subject"], 5: ["body"] }]] }],
  25: ["model_used", { 1: ["model_id"] }],
}
/** Fields of a message that say nothing about the conversation: its task, its request, the server's own data, lists to be done. */
const SILENT = new Set([6, 7, 8, 10, 11, 13, 17, 18, 19, 20, 21, 22, 23, 26])
const TASK: Shape = {
  1: ["id"],
  2: ["description"],
  3: ["dependencies", { 1: ["parent_task_id"] }],
  5: ["messages", [MESSAGE]],
  6: ["summary"],
}

const MAX_DEPTH = 40
const MAX_UNKNOWN_BYTES = 64 << 10

type Value = number | Uint8Array

/** Decodes the listed fields of a message. Returns undefined if the bytes are not a message. Fields repeat: the last value counts. */
function decode(shape: Shape, bytes: Uint8Array, depth = 0): RawRecord | undefined {
  const fields = depth > MAX_DEPTH ? undefined : fieldsIn(bytes)
  if (!fields) return undefined
  const decoded: RawRecord = {}
  for (const [field, value] of fields) {
    const [name, kind] = shape[field] ?? []
    if (name === undefined) {
      if (shape === MESSAGE && !SILENT.has(field) && typeof value !== "number")
        decoded.unknown = { field, bytes: Buffer.from(value.subarray(0, MAX_UNKNOWN_BYTES)).toString("base64") }
    } else if (kind === "number") {
      if (typeof value === "number") decoded[name] = value
    } else if (typeof value === "number") continue
    else if (kind === undefined) decoded[name] = Buffer.from(value).toString("utf8")
    else if (kind === "texts") appendTo(decoded, name, Buffer.from(value).toString("utf8"))
    else if (kind === "struct") decoded[name] = { ...record(decoded[name]), ...structIn(value, depth + 1) }
    else if (Array.isArray(kind)) {
      const item = decode(kind[0], value, depth + 1)
      if (item) appendTo(decoded, name, item)
      else if (shape === TASK) appendTo(decoded, name, { unknown: { field: "damaged message" } })
    } else decoded[name] = { ...record(decoded[name]), ...decode(kind as Shape, value, depth + 1) }
  }
  return decoded
}

function appendTo(decoded: RawRecord, name: string, item: unknown): void {
  if (Array.isArray(decoded[name])) decoded[name].push(item)
  else decoded[name] = [item]
}

/** Decodes a `google.protobuf.Struct`: JSON with typed values. */
function structIn(bytes: Uint8Array, depth: number): RawRecord {
  const entries = (depth > MAX_DEPTH ? [] : (fieldsIn(bytes) ?? [])).flatMap(([field, entry]) => {
    if (field !== 1 || typeof entry === "number") return []
    const [key, value] = [1, 2].map((wanted) => fieldsIn(entry)?.findLast(([at]) => at === wanted)?.[1])
    if (key === undefined || typeof key === "number") return []
    const json = value === undefined || typeof value === "number" ? null : structValue(value, depth + 1)
    return [[Buffer.from(key).toString("utf8"), json] as const]
  })
  return Object.fromEntries(entries)
}

function structValue(bytes: Uint8Array, depth: number): unknown {
  const [field, value] = fieldsIn(bytes)?.at(-1) ?? []
  if (field === 2) return value
  if (field === 4) return value === 1
  if (value === undefined || typeof value === "number") return null
  if (field === 3) return Buffer.from(value).toString("utf8")
  if (field === 5) return structIn(value, depth)
  if (field !== 6 || depth > MAX_DEPTH) return null
  return (fieldsIn(value) ?? []).map(([, item]) => (typeof item === "number" ? null : structValue(item, depth + 1)))
}

const VARINT = 0
const FIXED_64 = 1
const BYTES = 2
const FIXED_32 = 5
const MAX_VARINT_BYTES = 10

/** Splits the bytes of a message into its fields. Returns undefined if they are not a message. */
function fieldsIn(bytes: Uint8Array): [field: number, value: Value][] | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const fields: [number, Value][] = []
  let position = 0
  const varint = (): number => {
    let value = 0n
    for (let index = 0; index < MAX_VARINT_BYTES && position < bytes.length; index++) {
      const byte = bytes[position++]!
      value |= BigInt(byte & 127) << BigInt(7 * index)
      if (byte < 128) return Number(BigInt.asIntN(64, value))
    }
    return Number.NaN
  }
  while (position < bytes.length) {
    const tag = varint()
    const [field, wire] = [Math.floor(tag / 8), tag % 8]
    if (!(field > 0)) return undefined
    if (wire === VARINT) fields.push([field, varint()])
    else {
      const length = wire === BYTES ? varint() : wire === FIXED_64 ? 8 : wire === FIXED_32 ? 4 : Number.NaN
      if (!(length >= 0 && length <= bytes.length - position)) return undefined
      if (wire === BYTES) fields.push([field, bytes.subarray(position, position + length)])
      else fields.push([field, wire === FIXED_64 ? view.getFloat64(position, true) : view.getFloat32(position, true)])
      position += length
    }
  }
  return fields
}

type Call = { name: string; input: RawRecord }
type Query = { at: number | undefined; model: string | undefined; cwd: string | undefined }

function parseWarp(rows: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const uniqueKey = uniqueKeys()
  const calls = new Map<string, Call>()
  const parentCalls = new Map<string, string>()
  const tasks = new Map<string, RawRecord>()
  const messages = new Map<string, Message[]>()
  const queries: Query[] = []
  const prompts: Message[] = []
  let model: string | undefined
  for (const row of rows) {
    if (row.table === "ai_queries") {
      const query = { at: utcTime(row.start_ts), model: string(row.model_id), cwd: string(row.working_directory) }
      queries.push(query)
      const parts = array(row.input).flatMap((text) =>
        string(text) ? [{ type: "text", text: string(text)!, origin: "person" } as const] : [],
      )
      if (parts.length > 0) prompts.push({ key: uniqueKey(`${row.exchange_id}`), role: "user", at: query.at, parts })
    } else if (row.table === "task") tasks.set(String(row.id), row)
    else if (row.table !== "message") unknown.add(`table ${String(row.table)}`)
    else {
      const task = String(row.task)
      const promptOrigin = isSubtask(tasks.get(task)) ? "agent" : "person"
      const subtask = string(record(record(row.tool_call)?.subagent)?.task_id)
      if (subtask) parentCalls.set(subtask, string(record(row.tool_call)?.id) ?? "")
      model = string(record(row.model_used)?.model_id) ?? model
      const { parts, effects } = contentOf(row, promptOrigin, calls, (type) => unknown.add(type))
      if (parts.length === 0) continue
      const at = timeOf(record(row.at))
      const role = roleOf(row, parts)
      const usedModel = model ?? queries.findLast((query) => (query.at ?? 0) <= (at ?? Number.POSITIVE_INFINITY))?.model
      const list = messages.get(task) ?? []
      list.push({
        key: uniqueKey(string(row.id) ?? `${unit.key}:${task}:${list.length}`),
        role,
        at,
        model: role === "assistant" ? usedModel : undefined,
        parts,
        effects: effects.length > 0 ? effects : undefined,
      })
      messages.set(task, list)
    }
  }
  const cwds = queries.map(({ cwd }) => cwd)
  const own: Message[] = []
  const conversations: Conversation[] = []
  let title: unknown
  for (const [id, task] of tasks) {
    const taskMessages = messages.get(id) ?? []
    if (isSubtask(task)) {
      const fields = { id, title: task.description, cwds, parent: unit.key, call_id: parentCalls.get(id) }
      if (taskMessages.length > 0) conversations.push(conversationFrom({ ...fields, messages: taskMessages }))
    } else {
      own.push(...taskMessages)
      title ??= string(task.description)
    }
  }
  // Warp also keeps the prompts alone. They are needed only if there are no tasks.
  const main = own.length > 0 ? own : prompts
  if (main.length > 0) conversations.unshift(conversationFrom({ id: unit.key, title, cwds, messages: main }))
  return { conversations, unknown: unknown.all() }
}

function isSubtask(task: RawRecord | undefined): boolean {
  return string(record(task?.dependencies)?.parent_task_id) !== undefined
}

function timeOf(at: RawRecord | undefined): number | undefined {
  const seconds = number(at?.seconds)
  return seconds === undefined ? undefined : time(seconds * 1000 + Math.floor((number(at?.nanos) ?? 0) / 1e6))
}

function roleOf(row: RawRecord, parts: Part[]): Message["role"] {
  if (row.user_query) return "user"
  if (row.tool_call_result) return "tool"
  return row.system_query || row.received || parts[0]!.type === "summary" ? "system" : "assistant"
}

function contentOf(
  row: RawRecord,
  promptOrigin: Origin,
  calls: Map<string, Call>,
  countUnknown: (type: string) => void,
): { parts: Part[]; effects: Effect[] } {
  const parts: Part[] = []
  const say = (text: unknown, origin: Origin) => {
    if (string(text)) parts.push({ type: "text", text: string(text)!, origin })
  }
  const unknown = record(row.unknown)
  if (unknown)
    countUnknown(typeof unknown.field === "number" ? `message field ${unknown.field}` : String(unknown.field))
  say(record(row.user_query)?.query, promptOrigin)
  say(record(row.agent_output)?.text, "agent")
  for (const query of Object.values(record(row.system_query) ?? {})) say(record(query)?.query, "injected")
  for (const { subject, body } of records(record(row.received)?.messages))
    say([subject, body].flatMap((text) => string(text) ?? []).join("\n"), "injected")
  const thought = string(record(row.agent_reasoning)?.text)
  if (thought) parts.push({ type: "thinking", text: thought, origin: "agent" })
  const summary = string(record(record(row.summarization)?.conversation)?.summary)
  if (summary) parts.push({ type: "summary", text: summary, origin: "agent" })
  const call = record(row.tool_call)
  if (call) {
    const [name, input] = toolIn(call)
    const id = string(call.id)
    if (id) calls.set(id, { name, input })
    parts.push(toolCallPart(name === "call_mcp_tool" ? `mcp: ${string(input.name) ?? ""}` : name, input, id))
  }
  const result = record(row.tool_call_result)
  if (!result) return { parts, effects: [] }
  const { part, effects } = resultOf(result, calls.get(string(result.id) ?? ""))
  parts.push(part)
  return { parts, effects }
}

/** Returns the tool of a call or a result, which is the name of its only other field. */
function toolIn({ id: _, ...fields }: RawRecord): [name: string, fields: RawRecord] {
  const [name, value] = Object.entries(fields).at(-1) ?? ["unknown", {}]
  return [name, record(value) ?? {}]
}

function resultOf(result: RawRecord, call: Call | undefined) {
  const [kind, fields] = toolIn(result)
  const finished = record(fields.finished)
  const isCommand = kind === "run_shell_command"
  const command = isCommand ? (string(fields.command) ?? string(call?.input.command)) : undefined
  const exit_status = finished ? (number(finished.exit_code) ?? 0) : number(fields.exit_code)
  const failure = record(fields.error)
  const output =
    kind === "cancel" || fields.denied
      ? "not run"
      : [string(finished?.output) ?? string(fields.output) ?? string(failure?.message) ?? "", ...textsOf(fields)].join(
          "",
        )
  return resultOfCall({
    tool: kind === "call_mcp_tool" ? "mcp" : (call?.name ?? kind),
    call_id: string(result.id),
    output,
    failed: kind === "cancel" || fields.denied !== undefined || failure !== undefined,
    exit_status: isCommand ? exit_status : undefined,
    action: command === undefined ? actionOf(call) : { command },
  })
}

/** Returns the texts and paths of the files that a successful result lists. */
function textsOf(fields: RawRecord): string[] {
  return [record(fields.success), record(fields.any)].flatMap((success) => [
    string(success?.output) ?? "",
    ...[...records(success?.files), ...records(success?.deleted), record(success?.text) ?? {}].flatMap((file) => {
      const text = record(file.text) ?? record(record(file.resource)?.text) ?? file
      const lines = [text.path, text.content].flatMap((line) => string(line) ?? [])
      return lines.length > 0 ? [`${lines.join("\n")}\n`] : []
    }),
  ])
}

function actionOf(call: Call | undefined): CallAction {
  if (call?.name === "read_files") return { reads: records(call.input.files).flatMap(({ path }) => string(path) ?? []) }
  if (call?.name !== "apply_file_diffs") return {}
  const { diffs, new_files, updates } = call.input
  return {
    hunks: [
      ...records(diffs).flatMap(({ path, search, replace }) => hunksOfReplacement(string(path) ?? "", search, replace)),
      ...records(new_files).map(({ path, content }) => hunkOfNewFile(string(path) ?? "", string(content) ?? "")),
      ...records(updates).flatMap(({ path, hunks }) =>
        records(hunks).flatMap((hunk) => hunksOfReplacement(string(path) ?? "", hunk.old, hunk.new)),
      ),
    ],
  }
}
