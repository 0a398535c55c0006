import { join } from "node:path"
import { actionByName, resultOfCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
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
import { hunksOfDiff } from "../../../src/agents/kit/effects.ts"
import { entriesOf, type Report, readJsonFile, unitAt, withProblems } from "../../../src/agents/kit/files.ts"
import type { ForeignDatabase } from "../../../src/agents/kit/foreign-sqlite.ts"
import { readJsonl } from "../../../src/agents/kit/jsonl.ts"
import {
  addSessionUsage,
  cutLongTexts,
  digestOfDataUri,
  imagePart,
  parsedFrom,
  usageFrom,
} from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Conversation, Hunk, Kind, Message, Origin, Part } from "../../../src/core/conversation.ts"
import {
  number,
  parseArray,
  parseObject,
  type RawRecord,
  record,
  records,
  string,
  time,
} from "../../../src/core/record.ts"
import type { Usage } from "../../../src/core/usage.ts"
import { hermesRoots } from "./records.ts"

/**
 * Reads Hermes Agent: a database, and files in `sessions/`, which are all that older versions have. If both have the same
 * session, the database takes precedence. Each profile has its own folder with both.
 */
export const hermesConnector: Connector = {
  source: "hermes",
  version: 1,
  roots: hermesRoots,
  discover: (root, isUnchanged, scratch) => withProblems((report) => discover(root, report, isUnchanged, scratch)),
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

function* discover(
  root: string,
  report: Report,
  isUnchanged: IsUnchanged,
  scratch?: Scratch,
): Generator<Unit | Unreadable> {
  yield* unitsIn(root, "", isUnchanged, report, scratch)
  for (const profile of entriesOf(join(root, "profiles"), report))
    if (profile.isDirectory())
      yield* unitsIn(join(root, "profiles", profile.name), `${profile.name}/`, isUnchanged, report, scratch)
}

function* unitsIn(
  folder: string,
  profile: string,
  isUnchanged: IsUnchanged,
  report: Report,
  scratch?: Scratch,
): Generator<Unit | Unreadable> {
  yield* unitsOfDatabase(join(folder, "state.db"), (db) => sessionsIn(db, profile), isUnchanged, scratch)
  for (const { name } of entriesOf(join(folder, "sessions"), report)) {
    if (!/^(session_)?\d{8}_.*\.jsonl?$/.test(name)) continue
    const path = join(folder, "sessions", name)
    const unit = unitAt(path, `file:${profile}${name}`, report)
    if (unit) yield unit
  }
}

function sessionsIn(db: ForeignDatabase, profile: string): DatabaseSession[] {
  expectTable(db, "sessions", "Hermes")
  const contentStats = new Map(db.all(CONTENT_STATS).map((row) => [row.id, row]))
  return taggedRows(db, "sessions", SESSION_COLUMNS, "").map((row) => {
    const { count, last, bytes, latest } = contentStats.get(string(row.id) ?? "") ?? {}
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

const CONTENT_STATS = `select session_id as id, count(*) as count, max(id) as last, max(timestamp) as latest,
  sum(octet_length(content)) as bytes from messages group by session_id`

/**
 * The columns of a session that are read. The system prompt and data about the person, which the table also has, are not read.
 */
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
  const sessionRows = taggedRows(db, "sessions", SESSION_COLUMNS, "where id = ?", id)
  const parent = string(sessionRows[0]?.parent_session_id)
  const parentRows = parent === undefined ? [] : taggedRows(db, "sessions", ["end_reason"], "where id = ?", parent)
  const messages = taggedRows(db, "messages", MESSAGE_COLUMNS, "where session_id = ? order by id", id)
  return [
    ...sessionRows.map((row) => ({ ...row, parent_ended: parentRows[0]?.end_reason })),
    ...parseJsonColumns(messages, ["tool_calls"], skip),
  ]
}

/** Yields a record about the session and one per message. The system prompt, tool descriptions and URLs are not stored. */
function* recordsOfFile(file: RawRecord): Generator<RawRecord> {
  const { session_id, model, platform, session_start, last_updated, title } = file
  const cwd = string(file.cwd) ?? record(file.model_config)?.cwd
  yield { type: "dex-session", session_id, model, platform, session_start, last_updated, title, cwd }
  for (const message of records(file.messages)) yield stripMessage(message)
}

/**
 * Removes image bytes and data that only the provider can read. Parses content that is a list, which Hermes stores as JSON text
 * after a mark.
 */
function stripMessage(message: RawRecord): RawRecord {
  const { codex_reasoning_items: _, codex_message_items: __, reasoning_details: ___, tools: ____, ...rest } = message
  const text = string(rest.content)
  const contentValue = text?.startsWith(LIST_MARK) ? parseArray(text.slice(LIST_MARK.length)) : rest.content
  const content = Array.isArray(contentValue) ? { content: records(contentValue).map(stripPiece) } : {}
  return cutLongTexts({ ...rest, ...content })
}

const LIST_MARK = "\u0000json:"

function stripPiece(piece: RawRecord): RawRecord {
  const digest = digestOfDataUri(string(record(piece.image_url)?.url) ?? "")
  return digest ? { type: "image", image: digest } : piece
}

const TOOLS = {
  command: ["terminal", "shell"],
  read: ["read_file"],
  write: ["write_file"],
  edit: ["patch"],
}

type Call = { tool: string | undefined; args: RawRecord }
type Content = Pick<Message, "role" | "parts" | "effects">

function parseHermes(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  let session: RawRecord = {}
  const entries: RawRecord[] = []
  for (const entry of raw) {
    if (isSessionRecord(entry)) session = { ...session, ...entry }
    else entries.push(entry)
  }
  const id = string(session.session_id) ?? string(session.id) ?? idIn(unit.key)
  const calls = callsIn(entries)
  const unknown = createCounts()
  const messages: Message[] = []
  for (const [index, entry] of entries.entries()) {
    const content = contentOf(entry, calls)
    if (!content) unknown.add(string(entry.role) ?? string(entry.type) ?? "(no role)")
    else if (content.parts.length > 0) {
      const at = time(entry.timestamp)
      const isAbandoned = entry.active === 0
      const key = `${id}:${number(entry.id) ?? `line ${index}`}`
      messages.push({ key, at, ...content, abandoned: isAbandoned ? true : undefined })
    }
  }
  addSessionUsage(messages, string(session.model), hermesUsage(session))
  const lineage = lineageOf(string(session.parent_session_id), string(session.parent_ended))
  const title = string(session.title)
  const fields = {
    id,
    kind: kindOf(session, lineage),
    title: title !== undefined && session.title_source === "user" ? { text: title, from: "person" } : title,
    cwd: session.cwd,
    git_branch: session.git_branch,
    ...lineage,
    parent: lineage.parent?.id,
    times: [session.started_at, session.ended_at, session.session_start, session.last_updated],
    messages,
    authority: unit.key.startsWith("db:") ? 2 : 1,
  }
  return parsedFrom(fields, unknown)
}

function isSessionRecord({ table, type, role }: RawRecord): boolean {
  return table === "sessions" || type === "dex-session" || role === "session_meta"
}

function idIn(key: string): string {
  return key
    .split("/")
    .at(-1)!
    .replace(/^(?:file:|db:)?(?:session_)?|\.jsonl?$/g, "")
}

function callsIn(entries: RawRecord[]): Map<string, Call> {
  const calls = entries.flatMap(({ tool_calls }) => records(tool_calls))
  return new Map(calls.map((call) => [string(call.id) ?? "", callOf(call)]))
}

function callOf(call: RawRecord): Call {
  const { name, arguments: rawArgs } = record(call.function) ?? call
  return { tool: string(name), args: record(rawArgs) ?? parseObject(string(rawArgs) ?? "") ?? {} }
}

/** Returns undefined for an unknown role. */
function contentOf(entry: RawRecord, calls: Map<string, Call>): Content | undefined {
  switch (entry.role) {
    case "user":
      return { role: "user", parts: textParts(entry.content, "person").flatMap(promptParts) }
    case "assistant":
      return { role: "assistant", parts: answerParts(entry) }
    case "tool":
      return resultOf(entry, calls)
    case "system":
      return { role: "system", parts: textParts(entry.content, "injected") }
    default:
      return undefined
  }
}

const SKILL = '[SYSTEM: The user has invoked the "'
const INSTRUCTION = "The user has provided the following instruction alongside the skill invocation: "

/**
 * Splits a prompt. When a person calls a skill, their turn has the complete text of the skill, followed by the text that the
 * person typed.
 */
function promptParts(part: Part): Part[] {
  if (part.type !== "text" || !part.text.startsWith(SKILL)) return [part]
  const instructionStart = part.text.indexOf(INSTRUCTION)
  const [skill, instruction] =
    instructionStart === -1
      ? [part.text, ""]
      : [part.text.slice(0, instructionStart), part.text.slice(instructionStart + INSTRUCTION.length)]
  const [typedText, note] = instruction.split("\n\n[Runtime note:")
  return [
    { type: "text", text: note === undefined ? skill : `${skill}\n\n[Runtime note:${note}`, origin: "injected" },
    ...(typedText ? [{ type: "text", text: typedText, origin: "person" } as const] : []),
  ]
}

function answerParts(entry: RawRecord): Part[] {
  const thinking = string(entry.reasoning) ?? string(entry.reasoning_content)
  return [
    ...(thinking === undefined ? [] : [{ type: "thinking", text: thinking, origin: "agent" } as const]),
    ...textParts(entry.content, "agent"),
    ...records(entry.tool_calls).map((call) =>
      toolCallPart(callOf(call).tool, (record(call.function) ?? call).arguments, string(call.id)),
    ),
  ]
}

/** Parses a result. Hermes's own tools return JSON, which contains a command's output and exit code, or a patch's diff. */
function resultOf(entry: RawRecord, calls: Map<string, Call>): Content {
  const call_id = string(entry.tool_call_id)
  const call = calls.get(call_id ?? "")
  const pieces = textParts(entry.content, "local_tool")
  const text = pieces.map((part) => part.text).join("\n")
  const answer = text.startsWith("{") ? parseObject(text) : undefined
  const exit = number(answer?.exit_code)
  const action = call ? actionByName(TOOLS, call.tool, call.args) : {}
  const diffHunks = reportedHunks(string(answer?.diff))
  const { part, effects } = resultOfCall({
    tool: string(entry.tool_name) ?? call?.tool,
    call_id,
    output: action.command === undefined ? text : (string(answer?.output) ?? text),
    failed: entry.finish_reason === "error" || string(answer?.error) !== undefined || answer?.success === false,
    exit_status: exit,
    action: diffHunks.length > 0 ? { hunks: diffHunks } : action,
  })
  const images = pieces.filter(({ type }) => type === "image")
  return { role: "tool", parts: [part, ...images], effects: effects.length > 0 ? effects : undefined }
}

function reportedHunks(diff: string | undefined): Hunk[] {
  return diff === undefined ? [] : hunksOfDiff(diff)
}

function textParts(content: unknown, origin: Origin): Part[] {
  const pieces = typeof content === "string" ? [{ type: "text", text: content }] : records(content)
  return pieces.flatMap((piece: RawRecord): Part[] => {
    if (piece.type === "image") return [imagePart(piece.image, origin)]
    const text = string(piece.text)
    return text === undefined ? [] : [{ type: "text", text, origin }]
  })
}

function hermesUsage(session: RawRecord): Usage | undefined {
  return usageFrom({
    input: session.input_tokens,
    output: session.output_tokens,
    cache_read: session.cache_read_tokens,
    cache_write: session.cache_write_tokens,
    reasoning: session.reasoning_tokens,
    cost: session.actual_cost_usd || session.estimated_cost_usd,
  })
}

type Lineage = Pick<Conversation, "parent" | "fork_of" | "resume_of">

/**
 * Derives how a session is related to its parent from the reason why the parent ended: the session continues its parent,
 * branches off from it, or does work that the parent delegated.
 */
function lineageOf(parent: string | undefined, endReason: string | undefined): Lineage {
  if (parent === undefined) return {}
  if (endReason?.startsWith("compress")) return { resume_of: parent }
  return endReason?.startsWith("branch") ? { fork_of: parent } : { parent: { id: parent } }
}

function kindOf({ source, platform }: RawRecord, { parent }: Lineage): Kind {
  if (parent) return "subagent"
  return (source ?? platform) === "cron" ? "automation" : "person"
}
