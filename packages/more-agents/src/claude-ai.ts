import { resultOfCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
import { type ExportedItem, exportConnector, type Parsed, type UnitName } from "../../../src/agents/kit/connector.ts"
import { cutLongTexts, imagePart, parsedFrom, uniqueKeys } from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Message, Part } from "../../../src/core/conversation.ts"
import { type RawRecord, record, records, string, time } from "../../../src/core/record.ts"

/** Reads the export of claude.ai. Its messages are in order; those that were edited name the same predecessor as the edit. */
export const claudeAiConnector = exportConnector({
  source: "claude_ai",
  version: 1,
  parse: parseClaudeAi,
  identify: ({ type, uuid }) => (type === HEADER ? HEADER : string(uuid)),
  exported: { messages: "chat_messages", itemOf },
})

const HEADER = "dex-conversation"

function itemOf(fields: RawRecord, messages: RawRecord[]): ExportedItem | undefined {
  const key = string(fields.uuid)
  if (key === undefined || messages.length === 0) return undefined
  const { account: _, ...header } = fields
  return {
    key,
    modifiedAt: time(fields.updated_at) ?? time(fields.created_at),
    records: [
      { type: HEADER, ...header },
      ...messages.map(({ parent_message_uuid, ...message }) => ({ ...message, parent_id: parent_message_uuid })),
    ].map((entry) => cutLongTexts(withoutImageBytes(entry))),
  }
}

/** Removes the bytes of images, which tools may return. */
function withoutImageBytes(value: RawRecord): RawRecord {
  return JSON.parse(JSON.stringify(value), (_key, field) =>
    record(field)?.type === "base64" ? { ...field, data: undefined } : field,
  )
}

function parseClaudeAi(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  let header: RawRecord = {}
  const entries: RawRecord[] = []
  for (const entry of raw) {
    if (entry.type === HEADER) header = entry
    else if (entry.sender === "human" || entry.sender === "assistant") entries.push(entry)
    else unknown.add(`sender/${string(entry.sender) ?? "(none)"}`)
  }
  const abandoned = abandonedEntries(entries, string(header.current_leaf_message_uuid))
  const uniqueKey = uniqueKeys()
  const messages = entries.flatMap((entry, place) => {
    const key = `${unit.key}:${string(entry.uuid) ?? place}`
    const isAbandoned = abandoned.has(entry) ? (true as const) : undefined
    return messagesOf(entry, (type) => unknown.add(type)).map(
      (message): Message => ({ ...message, key: uniqueKey(key), abandoned: isAbandoned }),
    )
  })
  const { name, created_at, updated_at } = header
  return parsedFrom({ id: unit.key, title: name, times: [created_at, updated_at], messages }, unknown)
}

/** Entries that are not on the path to the last one. Older exports name no predecessors: then no entry is abandoned. */
function abandonedEntries(entries: RawRecord[], last: string | undefined): Set<RawRecord> {
  const byId = new Map(entries.flatMap((entry) => (string(entry.uuid) ? [[string(entry.uuid)!, entry]] : [])))
  if (!entries.some(({ parent_id }) => byId.has(string(parent_id) ?? ""))) return new Set()
  const active = new Set<RawRecord>()
  let entry = byId.get(last ?? "") ?? entries.at(-1)
  for (; entry && !active.has(entry); entry = byId.get(string(entry.parent_id) ?? "")) active.add(entry)
  return new Set(entries.filter((candidate) => !active.has(candidate)))
}

/** Splits an entry into messages, because the results of tools are inside the answer. */
function messagesOf(entry: RawRecord, countUnknown: (type: string) => void): Omit<Message, "key">[] {
  const isPerson = entry.sender === "human"
  const [role, origin] = isPerson ? (["user", "person"] as const) : (["assistant", "agent"] as const)
  const at = time(entry.created_at)
  const messages: Omit<Message, "key">[] = []
  let parts: Part[] = []
  const endMessage = () => {
    if (parts.length > 0) messages.push({ role, at, parts })
    parts = []
  }
  const blocks = records(entry.content)
  const text = string(entry.text)
  for (const block of blocks.length === 0 && text !== undefined ? [{ type: "text", text }] : blocks) {
    if (block.type === "tool_result") {
      endMessage()
      messages.push({ role: "tool", at, parts: [toolResult(block)] })
    } else if (block.type === "text" || block.type === "voice_note") {
      if (string(block.text)) parts.push({ type: "text", text: string(block.text)!, origin })
    } else if (block.type === "thinking") {
      if (string(block.thinking)) parts.push({ type: "thinking", text: string(block.thinking)!, origin: "agent" })
    } else if (block.type === "tool_use") parts.push(toolCallPart(string(block.name), block.input, string(block.id)))
    else if (block.type === "image") parts.push(imagePart(undefined, origin))
    else if (block.type !== "token_budget" && block.type !== "flag")
      countUnknown(`content/${string(block.type) ?? "(no type)"}`)
  }
  for (const { file_name, extracted_content } of records(entry.attachments)) {
    const content = string(extracted_content)
    // The content of a file is not the words of the person.
    if (content)
      parts.push({ type: "text", text: `${string(file_name) ?? "attachment"}:\n${content}`, origin: "local_tool" })
  }
  endMessage()
  return messages
}

/** Every tool of claude.ai runs on a server: its sandbox, a search, a connected service. */
function toolResult(block: RawRecord): Part {
  const text =
    typeof block.content === "string" ? block.content : records(block.content).flatMap(({ text }) => string(text) ?? [])
  return resultOfCall({
    tool: string(block.name),
    call_id: string(block.tool_use_id),
    output: typeof text === "string" ? text : text.join("\n"),
    failed: block.is_error === true,
    action: {},
    isRemote: true,
  }).part
}
