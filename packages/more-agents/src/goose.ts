import { join } from "node:path"
import { type CallAction, resultOfCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
import type {
  Connector,
  Cursor,
  IsUnchanged,
  Parsed,
  Reading,
  Scratch,
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
import { hunkOfNewFile, hunksOfDiff, hunksOfReplacement } from "../../../src/agents/kit/effects.ts"
import { entriesOf, type Report, unitAt, withProblems } from "../../../src/agents/kit/files.ts"
import { columnsOf, type ForeignDatabase } from "../../../src/agents/kit/foreign-sqlite.ts"
import { readJsonl } from "../../../src/agents/kit/jsonl.ts"
import {
  cutLongTexts,
  digestOf,
  imagePart,
  parsedFrom,
  uniqueKeys,
  usageFrom,
  utcTime,
} from "../../../src/agents/kit/messages.ts"
import { openSkill, type Wiring } from "../../../src/agents/kit/wiring.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Conversation, Effect, Hunk, Kind, Message, Origin, Part } from "../../../src/core/conversation.ts"
import { withoutUndefined } from "../../../src/core/defined.ts"
import { array, isRecord, number, type RawRecord, record, records, string, time } from "../../../src/core/record.ts"
import type { Usage } from "../../../src/core/usage.ts"
import { gooseRoots } from "./records.ts"

/**
 * Reads Goose's sessions. Since version 1.10, Goose uses a database; before that, it wrote one file of JSON lines per session.
 * Goose imports these files but leaves them on disk, so dex reads both. If both have the same session, the database takes
 * precedence.
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

/** Removes image bytes, signatures, and all of a model's settings except its name. */
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

/** Follows Goose's documents, and was not tried. Its hooks report events; nothing says that their output reaches the model. */
export const gooseWiring: Wiring = {
  signs: (machine) => ({ paths: gooseRoots(machine), program: "goose" }),
  files: (machine) => [openSkill(machine)],
  note: (_, { dex }) =>
    `only the skill: Goose's settings are YAML, which dex does not edit. To give Goose dex's tools, run \`goose configure\`, add a command-line extension, and enter: ${dex} serve`,
}

/** One turn of a conversation, from a database row or from a line of an older file. */
type Turn = { id?: string; role: string; at?: number; content: RawRecord[]; isShown: boolean; isSent: boolean }
type Call = { tool: string | undefined; args: RawRecord }

function parseGoose(rows: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const session: RawRecord = {}
  const turns: Turn[] = []
  for (const row of rows) {
    if (row.table === "sessions") Object.assign(session, row)
    else if (row.table === "messages" || (row.table === undefined && string(row.role))) turns.push(turnOf(row))
    else if (row.table === undefined && row.type === undefined) Object.assign(session, row)
    else unknown.add(string(row.table) ?? string(row.type) ?? "(no type)")
  }
  const id = string(session.id) ?? unit.key.replace(/^(db|file):|\.jsonl$/g, "")
  const kind = kindOf(string(session.session_type))
  const messages = messagesOf(turns, { id, kind, session }, (type) => unknown.add(type))
  const fields = {
    id,
    kind,
    title: titleOf(session),
    cwd: session.working_dir,
    parent: session.parent_session_id,
    times: [utcTime(session.created_at)],
    messages,
    authority: unit.key.startsWith("db:") ? 10 : 8,
  }
  return parsedFrom(fields, unknown)
}

function turnOf(row: RawRecord): Turn {
  const id = string(row.message_id) ?? string(row.id)
  const at = time(row.created_timestamp) ?? time(row.created)
  const metadata = record(row.metadata_json) ?? record(row.metadata)
  return {
    role: string(row.role) ?? "",
    content: records(row.content_json ?? row.content),
    isShown: metadata?.userVisible !== false,
    isSent: metadata?.agentVisible !== false,
    id,
    at,
  }
}

type SessionContext = { id: string; kind: Kind; session: RawRecord }

function messagesOf(
  turns: Turn[],
  { id, kind, session }: SessionContext,
  countUnknown: (type: string) => void,
): Message[] {
  const uniqueKey = uniqueKeys()
  const calls = callsIn(turns)
  const model = string(record(session.model_config_json)?.model_name)
  const messages: Message[] = []
  for (const [index, turn] of turns.entries()) {
    const { parts, effects } = contentOf(turn, isSummary(turn, turns[index + 1]), kind, calls, countUnknown)
    const key = uniqueKey(turn.id ?? `${id}:${turn.at ?? ""}:${turn.role}`)
    if (parts.length === 0) continue
    const role = roleOf(turn, parts)
    messages.push({
      key,
      role,
      at: turn.at,
      model: role === "assistant" && model !== undefined ? model : undefined,
      parts,
      effects: effects.length > 0 ? effects : undefined,
      // Goose neither shows nor sends this turn, because it repeats the prompt after a summary.
      abandoned: !turn.isShown && !turn.isSent ? true : undefined,
    })
  }
  const usage = gooseUsage(session)
  const lastAnswer = messages.findLast(({ role }) => role === "assistant")
  if (usage && lastAnswer) lastAnswer.usage = usage
  return messages
}

/**
 * Whether this turn is the summary of a compaction. It looks like a user's turn, but only the model receives it, and it is
 * followed by an answer that acknowledges it.
 */
function isSummary(turn: Turn, next: Turn | undefined): boolean {
  const isHidden = (candidate: Turn | undefined) => candidate !== undefined && !candidate.isShown && candidate.isSent
  return turn.role === "user" && isHidden(turn) && next?.role === "assistant" && isHidden(next)
}

function roleOf({ role, isShown, isSent }: Turn, parts: Part[]): Message["role"] {
  if (!isShown && isSent) return "system"
  if (parts.some(({ type }) => type === "tool_result")) return "tool"
  if (parts.every(({ type, origin }) => type === "text" && origin === "local_tool")) return "system"
  return role === "assistant" ? "assistant" : role === "user" ? "user" : role === "tool" ? "tool" : "system"
}

function callsIn(turns: Turn[]): Map<string, Call> {
  const calls = new Map<string, Call>()
  for (const block of turns.flatMap(({ content }) => content)) {
    const id = callIdOf(block)
    if (id !== undefined && /toolRequest$/i.test(String(block.type))) calls.set(id, callOf(block))
  }
  return calls
}

function callIdOf(block: RawRecord): string | undefined {
  return string(block.id) ?? string(block.toolCallId) ?? string(record(block.toolCall)?.id)
}

/** Parses a call. In newer rows the call is in `value`, because a call that could not be parsed has an `error` instead. */
function callOf(block: RawRecord): Call {
  const call = record(block.toolCall)
  const fields = record(call?.value) ?? call
  return { tool: string(fields?.name), args: record(fields?.arguments) ?? {} }
}

type Content = { parts: Part[]; effects: Effect[] }

function contentOf(
  { role, content, isShown, isSent }: Turn,
  isSummaryTurn: boolean,
  kind: Kind,
  calls: Map<string, Call>,
  countUnknown: (type: string) => void,
): Content {
  const parts: Part[] = []
  const effects: Effect[] = []
  const promptOrigin: Origin = kind === "person" ? "person" : "agent"
  const origin: Origin = !isShown && isSent ? "injected" : role === "user" ? promptOrigin : "agent"
  for (const block of content) {
    const text = string(block.text) ?? string(block.thinking)
    switch (block.type) {
      case "text":
        if (text === undefined) break
        parts.push(isSummaryTurn ? { type: "summary", text, origin: "agent" } : { type: "text", text, origin })
        break
      case "thinking":
      case "reasoning":
        if (text !== undefined) parts.push({ type: "thinking", text, origin: "agent" })
        break
      case "image":
        parts.push(imagePart(block.image, origin))
        break
      case "toolRequest":
      case "frontendToolRequest": {
        const { tool, args } = callOf(block)
        const problem = string(record(block.toolCall)?.error) // the block could not be parsed as a call
        parts.push(toolCallPart(tool, problem ?? args, callIdOf(block)))
        break
      }
      case "toolResponse": {
        const answer = responseOf(block, calls)
        parts.push(...answer.parts)
        effects.push(...answer.effects)
        break
      }
      case "systemNotification":
        if (string(block.msg)) parts.push({ type: "text", text: string(block.msg)!, origin: "local_tool" })
        break
      case "redactedThinking":
      case "toolConfirmationRequest":
      case "actionRequired":
      case "conversationCompacted":
      case "contextLengthExceeded":
      case "summarizationRequested":
        break
      default:
        countUnknown(`content ${String(block.type)}`)
    }
  }
  return { parts, effects }
}

function responseOf(block: RawRecord, calls: Map<string, Call>): Content {
  const id = callIdOf(block)
  const { tool, args } = calls.get(id ?? "") ?? { tool: undefined, args: {} }
  const result = record(block.toolResult) ?? {}
  const answer = record(result.value) ?? result
  const pieces = records(Array.isArray(result.value) ? result.value : answer.content).filter(isForTheModel)
  const problem = string(result.error)
  const output = problem ?? pieces.flatMap(({ text }) => string(text) ?? []).join("\n")
  const exit_status = number(record(answer.structuredContent)?.exit_code) ?? exitStatusIn(output)
  const { part, effects } = resultOfCall({
    tool,
    call_id: id,
    output,
    failed: result.status === "error" || answer.isError === true,
    exit_status,
    action: actionOfGoose(tool, args),
    isRemote: tool !== undefined && /__/.test(tool) && !/^(developer|platform|todo|skills)__/.test(tool),
  })
  const images = pieces.filter(({ type }) => type === "image").map(({ image }) => imagePart(image, part.origin))
  return { parts: [part, ...images], effects }
}

/** Whether a piece of a result is for the model. Tools return some texts twice: once for the model, once for the screen. */
function isForTheModel({ annotations }: RawRecord): boolean {
  const audience = array(record(annotations)?.audience)
  return audience.length === 0 || audience.includes("assistant")
}

function exitStatusIn(output: string): number | undefined {
  const code = /^Command exited with code (\d{1,5})$/m.exec(output)?.[1]
  return code === undefined ? undefined : Number(code)
}

/** Returns a session's total usage, because Goose does not count tokens per answer. */
function gooseUsage(session: RawRecord): Usage | undefined {
  return usageFrom({
    input: number(session.accumulated_input_tokens) ?? session.input_tokens,
    output: number(session.accumulated_output_tokens) ?? session.output_tokens,
    cost: session.accumulated_cost,
  })
}

function kindOf(type: string | undefined): Kind {
  if (type === "sub_agent") return "subagent"
  return type === "scheduled" || type === "hidden" ? "automation" : "person"
}

/** Matches the placeholder names that Goose gives to unnamed sessions. */
const UNNAMED = /^(CLI Session|New Chat|New session\b.*|Chat \d+)$/

function titleOf(session: RawRecord): Conversation["title"] {
  const name = string(session.name) ?? string(session.description)
  if (name === undefined || UNNAMED.test(name)) return undefined
  return { text: name, from: number(session.user_set_name) === 1 ? "person" : "agent" }
}

/** Derives the action of a call. Tools are named `<extension>__<tool>`; since version 1.29, some are named `<tool>`. */
function actionOfGoose(name: string | undefined, args: RawRecord): CallAction {
  const tool = name?.replace(/^\w+?__/, "")
  const path = string(args.path) ?? string(args.file_path)
  if (tool === "shell") {
    const command = string(args.command) ?? string(args.cmd)
    return command === undefined ? {} : { command }
  }
  if (path === undefined) return {}
  if (tool === "read") return { reads: [path] }
  if (tool === "write") return { hunks: newFileHunks(path, args.content) }
  if (tool === "edit") return { hunks: hunksOfReplacement(path, args.before, args.after) }
  return tool === "text_editor" ? olderEditorAction(path, args) : {}
}

/** Derives the action of a call from before version 1.29, when one tool did all file operations. */
function olderEditorAction(path: string, args: RawRecord): CallAction {
  const diff = string(args.diff)
  switch (args.command) {
    case "view":
      return { reads: [path] }
    case "write":
    case "create":
      return { hunks: newFileHunks(path, args.file_text) }
    case "str_replace":
      return { hunks: diff ? hunksOfDiff(diff, path) : hunksOfReplacement(path, args.old_str, args.new_str) }
    case "insert":
      return { hunks: hunksOfReplacement(path, undefined, args.new_str) }
    default:
      return {}
  }
}

function newFileHunks(path: string, content: unknown): Hunk[] {
  return typeof content === "string" ? [hunkOfNewFile(path, content)] : []
}
