import { createHash } from "node:crypto"
import { join } from "node:path"
import {
  actionByName,
  type CallAction,
  resultOfCall,
  type ToolNames,
  toolCallPart,
} from "../../../src/agents/kit/calls.ts"
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
import type { ForeignDatabase } from "../../../src/agents/kit/foreign-sqlite.ts"
import {
  cutLongTexts,
  digestOfDataUri,
  imagePart,
  parsedFrom,
  splitInjected,
  uniqueKeys,
  usageFrom,
  utcTime,
} from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Effect, Message, Part } from "../../../src/core/conversation.ts"
import { array, number, parseObject, type RawRecord, record, records, string } from "../../../src/core/record.ts"
import { forgeRoots } from "./records.ts"

/** Reads ForgeCode: a database in which each conversation is a row, with all its messages as JSON. */
export const forgeConnector: Connector = {
  source: "forge",
  version: 1,
  roots: forgeRoots,
  discover: (root, isUnchanged, scratch) => unitsOfDatabase(join(root, ".forge.db"), sessionsIn, isUnchanged, scratch),
  watched: (root) => [{ folder: root, depth: 0, files: /^\.forge\.db(-wal)?$/ }],
  read,
  parse: parseForge,
  identify: (raw) => (raw.table === "conversations" ? "conversations" : undefined),
  rejoin,
  tables: ["conversations", "workspace", "indexing_auth", "__diesel_schema_migrations"],
}

function sessionsIn(db: ForeignDatabase): DatabaseSession[] {
  expectTable(db, "conversations", "ForgeCode")
  return db
    .all("select conversation_id, created_at, updated_at, octet_length(context) as bytes from conversations")
    .map(({ conversation_id, created_at, updated_at, bytes }) => ({
      key: String(conversation_id),
      stamp: [updated_at, bytes].join(":"),
      bytes: number(bytes) ?? 0,
      modifiedAt: utcTime(updated_at) ?? utcTime(created_at) ?? 0,
      bornAt: utcTime(created_at),
    }))
}

function read(unit: Unit, after?: Cursor, scratch?: Scratch): Reading {
  const rowsIn = (db: ForeignDatabase, skip: (skipped: Skipped) => void): RawRecord[] => {
    const rows = taggedRows(db, "conversations", COLUMNS, "where conversation_id = ?", unit.key)
    return parseJsonColumns(rows, ["context"], skip).flatMap(({ context, ...row }) => [
      row,
      ...records(record(context)?.messages).map((message) => ({ table: "message", ...messageIn(message) })),
    ])
  }
  return readDatabaseUnit(unit, rowsIn, cutLongTexts, after, scratch)
}

const COLUMNS = ["conversation_id", "title", "created_at", "updated_at", "context"]

/** Older versions have no field for the usage, so the entry is the message. Images and signatures are not stored. */
function messageIn(entry: RawRecord): RawRecord {
  const { message, usage, ...older } = entry
  const fields = record(message) ?? older
  const text = record(fields.text)
  const image = record(fields.image)
  const tool = record(fields.tool)
  if (text) {
    const { thought_signature: _, tool_calls, reasoning_details, ...rest } = text
    const calls = records(tool_calls).map(({ thought_signature: __, ...call }) => call)
    const thoughts = records(reasoning_details).flatMap((detail) => string(detail.text) ?? [])
    return { usage, text: { ...rest, tool_calls: calls, thoughts } }
  }
  if (image) return { image: digestOfDataUri(string(image.url) ?? "") }
  const output = record(tool?.output)
  if (!tool || !output) return { usage, ...fields }
  return { tool: { ...tool, output: { ...output, values: records(output.values).map(withoutBytes) } } }
}

function withoutBytes(value: RawRecord): RawRecord {
  const image = record(value.image)
  return image ? { image: digestOfDataUri(string(image.url) ?? "") } : value
}

const SUMMARY = "Use the following summary frames"

/** A compaction replaces messages with a summary. They still belong to the conversation, before it. */
function rejoin(dropped: RawRecord[], current: RawRecord[]): RawRecord[] | undefined {
  const isMessage = ({ table }: RawRecord) => table === "message"
  const isSummary = ({ text }: RawRecord) => string(record(text)?.content)?.startsWith(SUMMARY) === true
  if (!current.some(isSummary)) return undefined
  return [...current.filter((row) => !isMessage(row)), ...dropped.filter(isMessage), ...current.filter(isMessage)]
}

const TOOLS: ToolNames = {
  command: ["shell"],
  read: ["read"],
  write: ["write"],
  edit: ["patch", "multi_patch"],
}
/** The tags of text that ForgeCode adds to a prompt. */
const ADDED_TAGS = ["system_date", "file_content", "system_information", "pending_todos"]

function parseForge(rows: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const uniqueKey = uniqueKeys()
  const calls = new Map<string, { tool: string; input: RawRecord }>()
  const messages: Message[] = []
  let session: RawRecord = {}
  let cwd: string | undefined
  let model: string | undefined
  for (const row of rows) {
    if (row.table === "conversations") session = row
    else if (row.table !== "message") unknown.add(`table ${String(row.table)}`)
    else {
      const [text, tool, image] = [record(row.text), record(row.tool), record(row.image)]
      model = string(text?.model) ?? model
      cwd ??= folderIn(text)
      let content: Content | undefined
      if (text) content = contentOfText(text, calls)
      else if (tool) content = resultOfTool(tool, calls)
      else if (image) content = { role: "user", parts: [imagePart(image, "person")], effects: [] }
      else
        unknown.add(
          `message ${Object.keys(row)
            .filter((name) => name !== "table" && name !== "usage")
            .join(", ")}`,
        )
      if (!content || content.parts.length === 0) continue
      const { role, parts, effects } = content
      const hash = createHash("sha256").update(JSON.stringify({ text, tool, image })).digest("hex").slice(0, 16)
      messages.push({
        // The messages have neither ids nor times, and a compaction moves them.
        key: uniqueKey(`${unit.key}:${hash}`),
        role,
        model: role === "assistant" ? model : undefined,
        parts,
        effects: effects.length > 0 ? effects : undefined,
        usage: role === "assistant" ? forgeUsage(record(row.usage)) : undefined,
      })
    }
  }
  const times = [utcTime(session.created_at), utcTime(session.updated_at)]
  return parsedFrom({ id: unit.key, title: session.title, cwd, times, messages }, unknown)
}

type Content = { role: Message["role"]; parts: Part[]; effects: Effect[] }

/** Finds the folder in the description of the machine, which is a message of its own. */
function folderIn(text: RawRecord | undefined): string | undefined {
  if (text?.role !== "System") return undefined
  return /<current_working_directory>([^<\n]{1,4000})<\/current_working_directory>/.exec(
    string(text.content) ?? "",
  )?.[1]
}

function contentOfText(text: RawRecord, calls: Map<string, { tool: string; input: RawRecord }>): Content {
  const content = string(text.content) ?? ""
  if (text.role === "System") return { role: "system", parts: [], effects: [] }
  if (text.role === "User" && content.startsWith(SUMMARY))
    return { role: "system", parts: [{ type: "summary", text: content, origin: "agent" }], effects: [] }
  if (text.role === "User") return { role: "user", parts: promptParts(text, content), effects: [] }
  const parts: Part[] = array(text.thoughts).flatMap((thought) =>
    string(thought) ? [{ type: "thinking", text: string(thought)!, origin: "agent" }] : [],
  )
  if (content !== "") parts.push({ type: "text", text: content, origin: "agent" })
  for (const { name, call_id, arguments: args } of records(text.tool_calls)) {
    const input = record(args) ?? parseObject(string(args) ?? "") ?? {}
    const tool = string(name) ?? "unknown"
    if (string(call_id)) calls.set(string(call_id)!, { tool, input })
    parts.push(toolCallPart(tool, record(args) ?? string(args), string(call_id)))
  }
  return { role: "assistant", parts, effects: [] }
}

/** Separates what the person typed from what ForgeCode adds. `raw_content` has the former, if ForgeCode recorded it. */
function promptParts(text: RawRecord, content: string): Part[] {
  const raw = record(text.raw_content)
  const typed = string(raw?.Text) ?? string(raw?.text)
  if (text.droppable === true) return [{ type: "text", text: content, origin: "injected" }]
  if (typed !== undefined) return [{ type: "text", text: typed, origin: "person" }]
  return splitInjected(content.replace(/^<task>([\s\S]*)<\/task>/, "$1"), ADDED_TAGS).map((run) => ({
    type: "text",
    text: run.text,
    origin: run.injected ? "injected" : "person",
  }))
}

function resultOfTool(tool: RawRecord, calls: Map<string, { tool: string; input: RawRecord }>): Content {
  const output = record(tool.output)
  const call_id = string(tool.call_id)
  const call = calls.get(call_id ?? "")
  const name = string(tool.name) ?? call?.tool
  const text = records(output?.values).map(textOfValue).join("\n")
  const isCommand = name === "shell"
  const code = isCommand ? /^<shell_output[\s\S]{0,4000}?\sexit_code="(-?\d{1,5})"/.exec(text)?.[1] : undefined
  const { part, effects } = resultOfCall({
    tool: name,
    call_id,
    output: text,
    failed: output?.is_error === true,
    exit_status: code === undefined ? undefined : Number(code),
    action: call ? actionOfForge(call.tool, call.input) : {},
  })
  return { role: "tool", parts: [part], effects }
}

function textOfValue(value: RawRecord): string {
  return string(value.text) ?? string(value.markdown) ?? string(record(value.ai)?.value) ?? ""
}

/** Older versions name the arguments of an edit `search` and `content`. */
function actionOfForge(tool: string, input: RawRecord): CallAction {
  const { search, content, ...rest } = input
  const isOlderEdit = tool === "patch" && typeof search === "string"
  return actionByName(
    TOOLS,
    tool.toLowerCase(),
    isOlderEdit ? { ...rest, old_string: search, new_string: content } : input,
  )
}

/** A count is either exact or an estimate; ForgeCode estimates if the provider counted nothing. */
function forgeUsage(usage: RawRecord | undefined) {
  const countOf = (value: unknown) => number(record(value)?.actual) ?? number(record(value)?.Actual)
  return usageFrom({
    prompt: countOf(usage?.prompt_tokens),
    output: countOf(usage?.completion_tokens),
    cache_read: countOf(usage?.cached_tokens),
    cost: usage?.cost,
  })
}
