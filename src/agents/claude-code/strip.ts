import { array, isRecord, parseObject, type RawRecord, record, records, string } from "../../core/record.ts"
import { cutLongTexts, digestOf } from "../kit/messages.ts"
import { contentText } from "./content.ts"

// Reduces a Claude Code record before it is stored. Fields are set to undefined and not deleted: JSON omits them, and V8 keeps
// the objects fast.

/** Types of records that repeat other records or say nothing about the conversation. */
const DROPPED_TYPES = new Set([
  "agent-color",
  "agent-setting",
  "api-request",
  "api-request-blob",
  "api-request-shape",
  "atis-latch",
  "attribution-snapshot",
  "bridge-session",
  "content-replacement",
  "file-history-delta",
  "file-history-snapshot",
  "frame-link",
  "marble-origami-commit",
  "marble-origami-snapshot",
  "mode",
  "permission-mode",
  "result",
  "speculation-accept",
  "started",
  "tag",
  "task-summary",
  "tools-used",
])

/** Types of progress records that have no content, and that no other record names as its parent. */
const EMPTY_PROGRESS_TYPES = new Set([
  "bash_progress",
  "mcp_progress",
  "query_update",
  "search_results_received",
  "waiting_for_task",
])

/** Types of system records that matter only as links of the parentUuid chain. */
const SYSTEM_LINKS = new Set(["stop_hook_summary", "turn_duration", "session_start"])

/**
 * Types of attachments whose text is stored. For all other types (listings, reminders, copies of files), only short fields are
 * stored.
 */
const TEXT_ATTACHMENTS = new Set(["queued_command", "hook_additional_context", "hook_blocking_error"])

const LONG_LINE_CHARS = 1_000_000
const MAX_SHORT_FIELD_CHARS = 300
/** Fields of a structured result with fewer characters than this are not compared with the text. */
const MIN_DUPLICATE_LENGTH = 64

const PROGRESS_MARK = '"type":"progress","data":'
const TYPE_MARK = '{"type":"'

/**
 * Returns false only for a line that `strip` would drop. Matches only text that cannot be inside a string, where quotes are
 * escaped. Returns true for a line that may contain a second record: in a single compact record, `{"` always follows `:`, `[` or
 * `,`.
 */
export function isWantedLine(line: string): boolean {
  if (line.startsWith(TYPE_MARK)) {
    const type = line.slice(TYPE_MARK.length, line.indexOf('"', TYPE_MARK.length))
    return !(DROPPED_TYPES.has(type) && line.endsWith("}") && !/[^:[,]\{"/.test(line))
  }
  const brace = line.indexOf("{", 1)
  if (!line.startsWith(PROGRESS_MARK, brace - PROGRESS_MARK.length) || !line.startsWith(TYPE_MARK, brace)) return true
  const kind = line.slice(brace + TYPE_MARK.length, line.indexOf('"', brace + TYPE_MARK.length))
  return !(EMPTY_PROGRESS_TYPES.has(kind) && line.endsWith("}") && line.indexOf('{"', brace + 1) === -1)
}

const ORIGINAL_FILE_MARK = '"originalFile":"'
const CUT_NOTE = "[dex: cut]"

/** Parses a line without the copy of the file in an edit's result. Such copies make up a quarter of all bytes. */
export function parseLine(line: string): RawRecord | undefined {
  const key = line.indexOf(ORIGINAL_FILE_MARK)
  if (key !== -1) {
    const from = key + ORIGINAL_FILE_MARK.length
    const cut = parseObject(line.slice(0, from) + CUT_NOTE + line.slice(endOfString(line, from)))
    if (record(cut?.toolUseResult)?.originalFile === CUT_NOTE) return cut // otherwise the mark belonged to a different field
  }
  return parseObject(line)
}

function endOfString(line: string, from: number): number {
  for (let quote = line.indexOf('"', from); quote !== -1; quote = line.indexOf('"', quote + 1)) {
    let backslashes = 0
    while (line.charCodeAt(quote - 1 - backslashes) === 92) backslashes++
    if (backslashes % 2 === 0) return quote
  }
  return line.length
}

/** Strips a record. `chars` is the length of the line: only a long line can contain a text that must be cut. */
export function stripClaudeCodeRecord(raw: RawRecord, chars: number): RawRecord | undefined {
  const stripped = stripByType(raw)
  return stripped && chars > LONG_LINE_CHARS ? cutLongTexts(stripped) : stripped
}

function stripByType(raw: RawRecord): RawRecord | undefined {
  switch (raw.type) {
    case "user":
    case "assistant":
      stripMessage(raw)
      return raw
    case "progress":
      return stripProgress(raw)
    case "system":
      return stripSystem(raw)
    case "attachment":
      return stripAttachment(raw)
    case "last-prompt":
      drop(raw, ["lastPrompt"])
      return raw
    default:
      return typeof raw.type === "string" && DROPPED_TYPES.has(raw.type) ? undefined : raw
  }
}

const UNSTORED_RECORD_FIELDS = [
  "userType",
  "slug",
  "requestId",
  "todos",
  "thinkingMetadata",
  "imagePasteIds",
  "turnPosition",
]
const UNSTORED_MESSAGE_FIELDS = [
  "type",
  "role",
  "stop_sequence",
  "stop_details",
  "container",
  "context_management",
  "diagnostics",
]

/** Strips a user or assistant record in place, or such a message inside a progress record. */
function stripMessage(raw: RawRecord): void {
  drop(raw, UNSTORED_RECORD_FIELDS)
  if (raw.planContent !== undefined) raw.planContent = true // the message's text contains the plan
  const message = record(raw.message)
  if (!message) return
  drop(message, UNSTORED_MESSAGE_FIELDS)
  if (message.stop_reason === null) message.stop_reason = undefined
  const usage = record(message.usage)
  if (usage) message.usage = stripUsage(usage)
  const text = stripBlocks(message.content)
  if (raw.toolUseResult !== undefined) raw.toolUseResult = stripToolResult(raw.toolUseResult, text)
}

/**
 * Removes zeros and empty fields. Everything else is kept, because the cost of an answer could not be recovered once Claude Code
 * deletes the file.
 */
function stripUsage(usage: RawRecord): RawRecord {
  const result: RawRecord = {}
  for (const field in usage) {
    const value = usage[field]
    const stripped = isRecord(value) ? stripUsage(value) : value
    if (stripped && !(typeof stripped === "object" && Object.keys(stripped).length === 0)) result[field] = stripped
  }
  return result
}

/** Strips the blocks in place. Returns the text of their tool results. */
function stripBlocks(content: unknown): string {
  let text = ""
  for (const block of array(content)) {
    if (!isRecord(block)) continue
    switch (block.type) {
      case "thinking":
        drop(block, ["signature"])
        break
      case "redacted_thinking":
        drop(block, ["data"])
        break
      case "tool_use":
        drop(block, ["caller"])
        break
      case "image":
      case "document":
        stripBytes(block)
        break
      case "tool_result": {
        for (const inner of records(block.content)) if (inner.source !== undefined) stripBytes(inner)
        const resultText = contentText(block.content)
        text = text === "" ? resultText : `${text}\n${resultText}`
      }
    }
  }
  return text
}

/** Replaces the bytes of an image or a document with a digest. */
function stripBytes(block: RawRecord): void {
  const source = record(block.source)
  const data = source && string(source.data)
  if (!source || data === undefined) return
  const encoding = source.type === "text" ? "utf8" : "base64"
  block.source = { type: source.type, ...digestOf(Buffer.from(data, encoding), string(source.media_type)) }
}

/** Removes the fields of a tool's structured result that repeat the tool_result text or the call's input. */
function stripToolResult(result: unknown, text: string): unknown {
  if (typeof result === "string") return text.includes(result.replace(/^Error: /, "")) ? undefined : result
  if (Array.isArray(result)) {
    const isDuplicate = result.every((block) => isRecord(block) && text.includes(string(block.text) ?? ""))
    if (isDuplicate) return undefined
    for (const block of records(result)) stripBytes(block)
    return result
  }
  if (!isRecord(result)) return result
  drop(result, ["originalFile", "oldTodos", "newTodos", "prompt"])
  if (isRecord(result.usage)) result.usage = stripUsage(result.usage)
  if (Array.isArray(result.structuredPatch) && result.userModified !== true) {
    drop(result, ["oldString", "newString", "edits", "content"]) // the call's input has the same fields
  }
  if (result.isImage === true) drop(result, ["stdout"])
  dropDuplicates(result, text)
  const file = record(result.file)
  if (file) {
    drop(file, ["base64"])
    // The text contains the same lines with numbers, so it is longer than the file's content.
    if (typeof file.content === "string" && file.content.length <= text.length) drop(file, ["content"])
  }
  const task = record(result.task)
  if (task) dropDuplicates(task, text)
  return result
}

function dropDuplicates(fields: RawRecord, text: string): void {
  for (const key in fields) {
    const value = fields[key]
    if (typeof value === "string") {
      if (value.length >= MIN_DUPLICATE_LENGTH && text.includes(value.trim())) fields[key] = undefined
    } else if (Array.isArray(value) && value.length > 0 && key !== "structuredPatch") {
      const isDuplicate = value.every((item) => {
        const itemText = typeof item === "string" ? item : isRecord(item) ? string(item.text) : undefined
        return itemText !== undefined && text.includes(itemText)
      })
      if (isDuplicate) fields[key] = undefined
    }
  }
}

/** Keeps a subagent's messages completely, and hook progress as links of the parentUuid chain; drops other progress records. */
function stripProgress(raw: RawRecord): RawRecord | undefined {
  const data = record(raw.data)
  const kind = data?.type
  if (data && kind === "agent_progress") {
    drop(raw, UNSTORED_RECORD_FIELDS)
    const message = record(data.message)
    if (message) stripMessage(message)
    raw.data = { type: kind, agentId: data.agentId, message, ...spokenMessages(data.normalizedMessages) }
    return raw
  }
  if (typeof kind === "string" && EMPTY_PROGRESS_TYPES.has(kind)) return undefined
  return { type: raw.type, uuid: raw.uuid, parentUuid: raw.parentUuid, data: { type: kind } }
}

/**
 * Returns the messages with the subagent's text and thinking. Some builds record them only here, and repeat them in every later
 * record. Tool calls and results are dropped, because they have their own progress records.
 */
function spokenMessages(messages: unknown): RawRecord {
  const storedMessages = records(messages).filter((message) => {
    const blocks = records(record(message.message)?.content)
    return message.type === "assistant" && blocks.some((block) => block.type === "text" || block.type === "thinking")
  })
  for (const message of storedMessages) stripMessage(message)
  return storedMessages.length > 0 ? { normalizedMessages: storedMessages } : {}
}

function stripSystem(raw: RawRecord): RawRecord {
  if (typeof raw.subtype === "string" && SYSTEM_LINKS.has(raw.subtype)) {
    return {
      type: raw.type,
      subtype: raw.subtype,
      uuid: raw.uuid,
      parentUuid: raw.parentUuid,
      timestamp: raw.timestamp,
    }
  }
  drop(raw, UNSTORED_RECORD_FIELDS)
  const error = record(raw.error)
  if (error) drop(error, ["headers", "rateLimits"])
  return raw
}

function stripAttachment(raw: RawRecord): RawRecord {
  drop(raw, UNSTORED_RECORD_FIELDS)
  drop(raw, ["rendered", "renderedRole"])
  const attachment = record(raw.attachment)
  if (!attachment) return raw
  if (typeof attachment.type === "string" && TEXT_ATTACHMENTS.has(attachment.type)) stripBlocks(attachment.prompt)
  else raw.attachment = shortFields(attachment)
  return raw
}

function shortFields(fields: RawRecord): RawRecord {
  const storedFields: RawRecord = {}
  for (const key in fields) {
    const value = fields[key]
    if (typeof value === "string" ? value.length <= MAX_SHORT_FIELD_CHARS : typeof value !== "object")
      storedFields[key] = value
  }
  return storedFields
}

function drop(fields: RawRecord, keys: readonly string[]): void {
  for (const key of keys) if (fields[key] !== undefined) fields[key] = undefined
}
