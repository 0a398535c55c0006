import { isAbsolute, join } from "node:path"
import { actionByName, resultOfCall, type ToolNames, toolCallPart } from "../../../src/agents/kit/calls.ts"
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
  Watched,
} from "../../../src/agents/kit/connector.ts"
import {
  type DatabaseSession,
  expectTable,
  parseJsonColumns,
  readDatabaseUnit,
  taggedRows,
  unitsOfDatabase,
} from "../../../src/agents/kit/database-units.ts"
import { fileEffect } from "../../../src/agents/kit/effects.ts"
import { type Report, textAt } from "../../../src/agents/kit/files.ts"
import type { ForeignDatabase } from "../../../src/agents/kit/foreign-sqlite.ts"
import {
  type ConversationFields,
  cutLongTexts,
  digestOf,
  digestOfDataUri,
  imagePart,
  parsedFrom,
} from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Effect, Message, Origin, Part } from "../../../src/core/conversation.ts"
import {
  isRecord,
  number,
  parseObject,
  type RawRecord,
  record,
  records,
  string,
  time,
} from "../../../src/core/record.ts"
import type { Usage } from "../../../src/core/usage.ts"
import { crushRoots } from "./records.ts"

/** Reads Crush: a database in each project (`.crush/crush.db`), and a list of projects in the user's folder. */
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

function* discover(root: string, isUnchanged: IsUnchanged, scratch?: Scratch): Generator<CrushUnit | Unreadable> {
  const problems: Unreadable[] = []
  for (const { path, database } of projectsOf(root, (problem) => problems.push(problem)))
    for (const unit of unitsOfDatabase(database, sessionsIn, isUnchanged, scratch))
      yield "unreadable" in unit ? unit : { ...unit, project: path }
  yield* problems
}

/** Returns the projects in the list. A data folder may be relative to the project. */
function projectsOf(root: string, report: Report): Project[] {
  const path = join(root, "projects.json")
  const text = textAt(path, MAX_LIST_BYTES, report)
  if (text === undefined) return []
  const contents = parseObject(text)
  if (!contents) report({ unreadable: "not a complete JSON object", path })
  return records(contents?.projects).flatMap((project) => {
    const [folder, data = ".crush"] = [string(project.path), string(project.data_dir)]
    if (folder === undefined) return []
    return [{ path: folder, database: join(isAbsolute(data) ? data : join(folder, data), "crush.db") }]
  })
}

function sessionsIn(db: ForeignDatabase): DatabaseSession[] {
  expectTable(db, "sessions", "Crush")
  const contentStats = new Map(db.all(CONTENT_STATS).map((row) => [row.id, row]))
  return db.all("select id, created_at, updated_at from sessions").map((row) => {
    const { count, updated, bytes } = contentStats.get(row.id) ?? {}
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

const CONTENT_STATS = `select session_id as id, count(*) as count, max(updated_at) as updated, sum(octet_length(parts)) as bytes
  from messages group by session_id`

function read(unit: CrushUnit, after?: Cursor, scratch?: Scratch): Reading {
  const rowsIn = (db: ForeignDatabase, skip: (skipped: Skipped) => void): RawRecord[] => [
    ...(unit.project === undefined ? [] : [{ table: "project", id: unit.project }]),
    ...taggedRows(db, "sessions", SESSION_COLUMNS, "where id = ?", unit.key),
    ...parseJsonColumns(
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

/** Removes the bytes of images and files, signatures, and the contents of files before and after an edit. */
function stripCrush(row: RawRecord): RawRecord {
  if (!Array.isArray(row.parts)) return cutLongTexts(row)
  return cutLongTexts({ ...row, parts: row.parts.map(stripPart) })
}

function stripPart(part: unknown): unknown {
  const data = record(record(part)?.data)
  if (!isRecord(part) || !data) return part
  const { signature: _, thought_signature: __, responses_data: ___, metadata: ____, ...storedFields } = data
  const image = string(storedFields.url) === undefined ? undefined : digestOfDataUri(string(storedFields.url)!)
  if (image) return { ...part, data: { image } }
  const [bytes, mime] = [
    string(storedFields.Data) ?? string(storedFields.data),
    string(storedFields.MIMEType) ?? string(storedFields.mime_type),
  ]
  if (bytes === undefined) return { ...part, data: storedFields }
  const { Data: _____, data: ______, ...rest } = storedFields
  return { ...part, data: { ...rest, image: digestOf(Buffer.from(bytes, "base64"), mime) } }
}

const TOOLS: ToolNames = { command: ["bash"], read: ["view"], write: ["write"], edit: ["edit", "multiedit"] }

type Call = { tool: string | undefined; input: unknown }
type Content = { parts: Part[]; effects: Effect[] }

function parseCrush(rows: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  let session: RawRecord = {}
  let project: string | undefined
  const messageRows: RawRecord[] = []
  for (const row of rows) {
    if (row.table === "sessions") session = row
    else if (row.table === "messages") messageRows.push(row)
    else if (row.table === "project") project = string(row.id)
    else unknown.add(`table ${String(row.table)}`)
  }
  const parent = string(session.parent_session_id)
  const promptOrigin: Origin = parent === undefined ? "person" : "agent"
  const calls = callsIn(messageRows)
  const messages = messageRows.flatMap((row) => messageOf(row, promptOrigin, calls, (type) => unknown.add(type)))
  const usage = crushUsage(session)
  const lastAnswer = messages.findLast(({ role }) => role === "assistant")
  if (usage && lastAnswer) lastAnswer.usage = usage
  const id = unit.key
  const isNamed = !/^(New|Untitled)( Agent)? Session$/i.test(string(session.title) ?? "")
  const fields: ConversationFields = {
    id,
    kind: id.startsWith("title-") ? "automation" : undefined,
    title: isNamed ? session.title : undefined,
    cwd: project,
    parent,
    call_id: id.includes("$$") ? id.slice(id.indexOf("$$") + 2) : undefined, // the id of a subagent is <message>$$<call>
    times: [session.created_at],
    messages,
  }
  return parsedFrom(fields, unknown)
}

function callsIn(messageRows: RawRecord[]): Map<string, Call> {
  return new Map(
    messageRows
      .flatMap(({ parts }) => records(parts))
      .flatMap(({ type, data }) => {
        const call = record(data)
        const id = type === "tool_call" ? string(call?.id) : undefined
        return id === undefined ? [] : [[id, { tool: string(call?.name), input: call?.input }] as const]
      }),
  )
}

function messageOf(
  row: RawRecord,
  promptOrigin: Origin,
  calls: Map<string, Call>,
  countUnknown: (type: string) => void,
): Message[] {
  const key = string(row.id)
  const content: Content = { parts: [], effects: [] }
  const isSummary = number(row.is_summary_message) === 1
  const origin: Origin = row.role === "user" ? promptOrigin : row.role === "system" ? "injected" : "agent"
  for (const { type, data } of records(row.parts)) {
    if (!addPart(content, String(type), record(data) ?? {}, { origin, isSummary, calls }))
      countUnknown(`part ${String(type)}`)
  }
  if (key === undefined || content.parts.length === 0) return []
  const at = time(row.created_at)
  const model = string(row.model)
  const role = roleOf(row.role, content.parts, isSummary)
  return [
    {
      key,
      role,
      at,
      model: role === "assistant" && model !== undefined ? model : undefined,
      parts: content.parts,
      effects: content.effects.length > 0 ? content.effects : undefined,
    },
  ]
}

function roleOf(role: unknown, parts: Part[], isSummary: boolean): Message["role"] {
  if (isSummary || role === "system") return "system"
  if (role === "tool" || parts.every(({ type }) => type === "tool_result")) return "tool"
  return role === "user" ? "user" : "assistant"
}

/** Adds a part to a message's content. Returns false if its type is unknown. */
function addPart(
  { parts, effects }: Content,
  type: string,
  data: RawRecord,
  { origin, isSummary, calls }: { origin: Origin; isSummary: boolean; calls: Map<string, Call> },
): boolean {
  const text = string(data.text)
  switch (type) {
    case "text":
      if (text !== undefined)
        parts.push(isSummary ? { type: "summary", text, origin: "agent" } : { type, text, origin })
      return true
    case "reasoning":
      if (string(data.thinking)) parts.push({ type: "thinking", text: string(data.thinking)!, origin: "agent" })
      return true
    case "image_url":
    case "binary":
      parts.push(imagePart(data.image, origin))
      if (string(data.Path)) effects.push(fileEffect(string(data.Path)!, "mentioned"))
      return true
    case "tool_call":
      parts.push(toolCallPart(string(data.name), data.input, string(data.id)))
      return true
    case "tool_result":
      add(resultOf(data, calls))
      return true
    case "shell_command":
      add(commandOf(data))
      return true
    case "finish":
      if (data.reason === "error" && string(data.message))
        parts.push({
          type: "text",
          text: [data.message, data.details].flatMap((line) => string(line) ?? []).join("\n"),
          origin: "local_tool",
        })
      return true
    default:
      return false
  }
  function add({ part, effects: newEffects }: { part: Part; effects: Effect[] }): void {
    parts.push(part)
    effects.push(...newEffects)
  }
}

function resultOf(data: RawRecord, calls: Map<string, Call>) {
  const id = string(data.tool_call_id)
  const call = calls.get(id ?? "")
  const tool = string(data.name) ?? call?.tool
  const output = string(data.content) ?? ""
  const code = tool === "bash" ? /^Exit code (\d{1,5})$/m.exec(output)?.[1] : undefined
  return resultOfCall({
    tool,
    call_id: id,
    output,
    commandOutput: output.replace(/^Exit code \d{1,5}$|^<cwd>.{0,4000}<\/cwd>$/gm, ""),
    failed: data.is_error === true,
    exit_status: code === undefined ? undefined : Number(code),
    action: call ? actionByName(TOOLS, tool, record(call.input) ?? parseObject(string(call.input) ?? "") ?? {}) : {},
  })
}

/** Parses a command that the person ran. */
function commandOf(data: RawRecord) {
  const [command, printed] = [string(data.command) ?? "", string(data.output) ?? ""]
  const exit_status = number(data.exit_code)
  return resultOfCall({
    tool: "bash",
    call_id: undefined,
    output: `$ ${command}\n${printed}`,
    commandOutput: printed,
    failed: false,
    exit_status,
    action: { command },
  })
}

/** Returns a session's usage. Crush counts only the tokens of the last request, but the cost of all requests. */
function crushUsage(session: RawRecord): Usage | undefined {
  const [input, output] = [number(session.prompt_tokens) ?? 0, number(session.completion_tokens) ?? 0]
  const cost = number(session.cost) ?? 0
  if (input + output + cost === 0) return undefined
  return { input, output, cache_read: 0, cache_write: 0, cost: cost > 0 ? cost : undefined }
}
