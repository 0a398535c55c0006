import { basename, join } from "node:path"
import { type CallAction, resultOfCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
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
  expectTable,
  readDatabaseUnit,
  taggedRows,
  unitsOfDatabase,
} from "../../../src/agents/kit/database-units.ts"
import { fileEffect, hunkOfNewFile, hunksOfDiff, hunksOfReplacement } from "../../../src/agents/kit/effects.ts"
import type { ForeignDatabase } from "../../../src/agents/kit/foreign-sqlite.ts"
import {
  cutLongTexts,
  digestOf,
  imagePart,
  parsedFrom,
  uniqueKeys,
  usageFrom,
} from "../../../src/agents/kit/messages.ts"
import { decompressZstdBytes } from "../../../src/agents/kit/zstd.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Effect, Hunk, Message, Origin, Part } from "../../../src/core/conversation.ts"
import {
  array,
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
import { zedRoots } from "./records.ts"

/** Reads the threads of Zed's own agent: one database row per thread, with its content as one compressed JSON text. */
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

const THREAD_COLUMNS = ["id", "summary", "updated_at", "created_at", "parent_id", "folder_paths", "folder_paths_order"]

function read(unit: Unit, after?: Cursor, scratch?: Scratch): Reading {
  const rowsIn = (db: ForeignDatabase, skip: (skipped: Skipped) => void): RawRecord[] =>
    taggedRows(db, "threads", [...THREAD_COLUMNS, "data_type", "data"], "where id = ?", unit.key).flatMap((row) => {
      const { data, data_type, ...columns } = row
      const content = contentOf(data, data_type)
      if (typeof content !== "string") return recordsOfThread(columns, content)
      skip({ reason: content, where: `thread ${unit.key}` })
      return []
    })
  return readDatabaseUnit(unit, rowsIn, stripZed, after, scratch)
}

/** Decompresses and parses a thread's data. If that fails, returns a description of the problem. */
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
  if (Array.isArray(value)) return value.map((item) => withoutOmittedFields(item, parentKey))
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

/** Whether a field is not stored. In the output of a call, `old_text` and `new_text` are entire files. */
function isOmitted(key: string, parentKey: string): boolean {
  if (key === "old_text" || key === "new_text") return parentKey === "output"
  return OMITTED_FIELDS.includes(key) || key === "raw_input" || (key === "diff" && parentKey === "git_state")
}

/** The facts about a thread that are needed to parse its messages. */
type Thread = { id: string; promptOrigin: Origin; model: string | undefined; folders: string[] }

function parseZed(rows: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  let threadRow: RawRecord = {}
  const storedMessages: unknown[] = []
  for (const entry of rows) {
    if (entry.table === "threads") threadRow = entry
    else if (entry.table === "messages") storedMessages.push(entry.message)
    else unknown.add(`table ${String(entry.table)}`)
  }
  const data = record(threadRow.thread) ?? {}
  const parent = string(threadRow.parent_id) ?? string(record(data.subagent_context)?.parent_thread_id)
  const thread: Thread = {
    id: unit.key,
    promptOrigin: parent === undefined ? "person" : "agent",
    model: string(record(data.model)?.model),
    folders: foldersOf(threadRow, data),
  }
  const uniqueKey = uniqueKeys()
  const messages = storedMessages.flatMap((message, index) =>
    messagesOf(message, index, thread, (type) => unknown.add(type)).map((message) => ({
      ...message,
      key: uniqueKey(message.key),
    })),
  )
  const lastAnswer = messages.findLast(({ role }) => role === "assistant")
  const usage = zedUsage(record(data.cumulative_token_usage))
  if (lastAnswer && usage) lastAnswer.usage = usage
  const git = worktrees(data)
    .map(({ git_state }) => record(git_state))
    .find((state) => state !== undefined)
  const title = string(threadRow.summary) ?? string(data.title)
  const fields = {
    id: unit.key,
    title: /^New (Agent )?Thread$/.test(title ?? "") ? undefined : title,
    cwds: thread.folders,
    git_branch: git?.current_branch,
    git_remote: git?.remote_url,
    git_commit: git?.head_sha,
    parent,
    times: [threadRow.created_at, threadRow.updated_at, data.updated_at],
    messages,
  }
  return parsedFrom(fields, unknown)
}

function messagesOf(message: unknown, index: number, thread: Thread, countUnknown: (type: string) => void): Message[] {
  if (message === "Resume") return []
  if (!isRecord(message)) return unknownMessage(String(message), countUnknown)
  const key = `${thread.id}:${index}`
  if (record(message.User)) return [userMessage(record(message.User)!, key, thread)].flatMap((one) => one ?? [])
  if (record(message.Agent)) return agentMessages(record(message.Agent)!, key, thread, countUnknown)
  if (message.Compaction !== undefined) {
    const text = string(record(message.Compaction)?.Summary)
    return text === undefined ? [] : [{ key, role: "system", parts: [{ type: "summary", text, origin: "agent" }] }]
  }
  if (string(message.role)) return olderMessages(message, key, thread)
  return unknownMessage(Object.keys(message)[0] ?? "(empty)", countUnknown)
}

function unknownMessage(type: string, countUnknown: (type: string) => void): Message[] {
  countUnknown(`message ${type.slice(0, 40)}`)
  return []
}

function userMessage(user: RawRecord, key: string, { promptOrigin }: Thread): Message | undefined {
  const parts: Part[] = []
  const effects: Effect[] = []
  for (const piece of records(user.content)) {
    const text = string(piece.Text)
    if (text !== undefined) parts.push({ type: "text", text, origin: promptOrigin })
    if (record(piece.Image)) parts.push(imagePart(record(piece.Image)?.image, promptOrigin))
    const mention = record(piece.Mention)
    const content = string(mention?.content)
    if (content !== undefined) parts.push({ type: "text", text: content, origin: "injected" })
    const path = Object.values(record(mention?.uri) ?? {}).flatMap(
      (location) => string(record(location)?.abs_path) ?? [],
    )[0]
    if (path !== undefined) effects.push(fileEffect(path, "mentioned"))
  }
  if (parts.length === 0) return undefined
  return { key: string(user.id) ?? key, role: "user", parts, effects: effects.length > 0 ? effects : undefined }
}

type Call = { id: string | undefined; tool: string | undefined; input: RawRecord }

/**
 * Parses an answer, which contains the results of its tool calls. Returns one message for the answer and one for the results.
 */
function agentMessages(agent: RawRecord, key: string, thread: Thread, countUnknown: (type: string) => void): Message[] {
  const parts: Part[] = []
  const calls: Call[] = []
  for (const piece of records(agent.content)) {
    const text = string(piece.Text)
    const thought = string(record(piece.Thinking)?.text)
    const use = record(piece.ToolUse)
    if (text !== undefined) parts.push({ type: "text", text, origin: "agent" })
    else if (thought !== undefined) parts.push({ type: "thinking", text: thought, origin: "agent" })
    else if (use) {
      const call = { id: string(use.id), tool: string(use.name), input: record(use.input) ?? {} }
      calls.push(call)
      parts.push(toolCallPart(call.tool, call.input, call.id))
    } else if (!("Text" in piece || "Thinking" in piece || "RedactedThinking" in piece || isEmptyObject(piece)))
      countUnknown(`content ${Object.keys(piece)[0]}`)
  }
  const results = record(agent.tool_results) ?? {}
  return answerAndResults(key, parts, calls, (id) => record(results[id]), thread)
}

/** Whether a piece is an empty object. Zed stores a redacted thought as an empty object. */
function isEmptyObject(piece: RawRecord): boolean {
  return Object.keys(piece).length === 0
}

function answerAndResults(
  key: string,
  parts: Part[],
  calls: Call[],
  resultOf: (id: string) => RawRecord | undefined,
  { model, folders }: Thread,
): Message[] {
  const resultParts: Part[] = []
  const effects: Effect[] = []
  for (const call of calls) {
    const result = resultOf(call.id ?? "")
    if (!result) continue
    const output = textIn(result.content)
    const [preamble = "", code] = /^Command "[\s\S]{0,4000}?" failed with exit code (\d{1,5})\.\s*/.exec(output) ?? []
    const outcome = resultOfCall({
      tool: call.tool,
      call_id: call.id,
      output,
      commandOutput: output.slice(preamble.length).replaceAll(/^```$/gm, ""),
      failed: result.is_error === true,
      exit_status: code === undefined ? undefined : Number(code),
      action: actionOfZed(call.tool, call.input, result.output, folders),
    })
    resultParts.push(outcome.part)
    effects.push(...outcome.effects)
  }
  const answer: Message = { key, role: "assistant", model, parts }
  const results: Message = { key: `${key}:results`, role: "tool", parts: resultParts }
  if (effects.length > 0) results.effects = effects
  return [answer, results].filter((message) => message.parts.length > 0)
}

/**
 * Returns the text of a tool result's content: a string, a list of `{"Text": …}` and images, or, in older threads, `{"type":
 * "text", "text": …}`.
 */
function textIn(content: unknown): string {
  if (typeof content === "string") return content
  const pieces = Array.isArray(content) ? content : [content]
  return pieces
    .flatMap((piece) =>
      typeof piece === "string" ? piece : (string(record(piece)?.Text) ?? string(record(piece)?.text) ?? []),
    )
    .join("\n")
}

/** Parses a message of a thread from before version 0.3.0. Zed converts such threads only when it opens them. */
function olderMessages(message: RawRecord, key: string, thread: Thread): Message[] {
  const role = message.role
  const isUser = role === "user"
  const origin: Origin = isUser ? (message.is_hidden === true ? "injected" : thread.promptOrigin) : "agent"
  const parts = records(message.segments).flatMap((segment): Part[] => {
    const text = string(segment.text)
    if (text === undefined) return []
    return segment.type === "thinking"
      ? [{ type: "thinking", text, origin: "agent" }]
      : [{ type: "text", text, origin }]
  })
  const context = string(message.context)
  if (context !== undefined) parts.push({ type: "text", text: context, origin: "injected" })
  const calls = records(message.tool_uses).map((use) => ({
    id: string(use.id),
    tool: string(use.name),
    input: record(use.input) ?? {},
  }))
  if (role === "assistant") {
    parts.push(...calls.map(({ tool, input, id }) => toolCallPart(tool, input, id)))
    const results = records(message.tool_results)
    return answerAndResults(key, parts, calls, (id) => results.find((result) => result.tool_use_id === id), thread)
  }
  return parts.length === 0 ? [] : [{ key, role: isUser ? "user" : "system", parts }]
}

/** Parses a thread's total usage. Zed does not count tokens per answer. */
function zedUsage(total: RawRecord | undefined): Usage | undefined {
  return usageFrom({
    input: total?.input_tokens,
    output: total?.output_tokens,
    cache_read: total?.cache_read_input_tokens,
    cache_write: total?.cache_creation_input_tokens,
  })
}

/** Returns a thread's folders in the order that the person chose. The column `folder_paths` is sorted by name. */
function foldersOf(row: RawRecord, data: RawRecord): string[] {
  const paths =
    string(row.folder_paths)
      ?.split("\n")
      .filter((path) => path !== "") ?? []
  const order = (string(row.folder_paths_order) ?? "").split(",").map(Number)
  const sorted = paths
    .map((path, index) => ({ path, at: order[index] ?? index }))
    .sort((a, b) => a.at - b.at)
    .map(({ path }) => path)
  return sorted.length > 0 ? sorted : worktrees(data).flatMap(({ worktree_path }) => string(worktree_path) ?? [])
}

function worktrees(data: RawRecord): RawRecord[] {
  return records(array(record(data.initial_project_snapshot)?.worktree_snapshots))
}

function actionOfZed(
  tool: string | undefined,
  input: RawRecord,
  output: unknown,
  folders: readonly string[],
): CallAction {
  const path = string(input.path)
  const command = tool === "terminal" ? string(input.command) : undefined
  if (command !== undefined) return { command }
  if (path === undefined) return {}
  const file = resolveInProject(path, folders)
  if (tool === "read_file") return { reads: [file] }
  if (tool !== "edit_file" && tool !== "write_file" && tool !== "create_file") return {}
  return { hunks: hunksOfEdit(file, input, output) }
}

function hunksOfEdit(file: string, input: RawRecord, output: unknown): Hunk[] {
  const diff = string(record(output)?.diff)
  const hunks = diff === undefined ? [] : hunksOfDiff(diff, file)
  if (hunks.length > 0) return hunks
  const content = string(input.content)
  if (content !== undefined) return [hunkOfNewFile(file, content)]
  return records(input.edits).flatMap(({ old_text, new_text }) => hunksOfReplacement(file, old_text, new_text))
}

/** Converts a path that begins with the name of one of the project's folders to an absolute path. */
function resolveInProject(path: string, folders: readonly string[]): string {
  const [folderName, ...rest] = path.split(/[\\/]/)
  const folder = folders.find((candidate) => basename(candidate) === folderName)
  if (folder === undefined || rest.length === 0) return path
  return [folder, ...rest].join(folder.includes("\\") ? "\\" : "/")
}
