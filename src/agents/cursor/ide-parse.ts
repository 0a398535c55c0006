import { createCounts } from "../../core/by-name.ts"
import type { Conversation, Effect, Message, Part } from "../../core/conversation.ts"
import { withoutUndefined } from "../../core/defined.ts"
import { array, number, parseObject, type RawRecord, record, records, string, time } from "../../core/record.ts"
import type { Usage } from "../../core/usage.ts"
import type { Parsed } from "../kit/connector.ts"
import { fileEffect } from "../kit/effects.ts"
import { imagePart, usageFrom } from "../kit/messages.ts"
import { type CursorCall, cursorToolOrigin, effectsOf, hunksOf, outputText } from "./tools.ts"

const AUTHORITY = 10

/**
 * Parses a composer, the editor's word for a conversation. Bubbles that `order` does not list were edited away and are not shown.
 */
export function parseIde(rows: Iterable<RawRecord>): Parsed {
  const unknown = createCounts()
  const countUnknown = (type: string) => unknown.add(type)
  let composer: RawRecord | undefined
  let folder: string | undefined
  const bubbles = new Map<string, RawRecord>()
  for (const row of rows) {
    const id = string(row.id)
    const data = record(row.data)
    if (row.type === "dex-file") folder = string(row.folder)
    else if (row.type === "composer") composer = row
    else if (row.type === "bubble" && id !== undefined && data) bubbles.set(id, data)
    else countUnknown(`record ${String(row.type)}`)
  }
  const id = string(composer?.id)
  if (!composer || id === undefined) return { conversations: [], unknown: unknown.all() }
  const composerData = record(composer.data) ?? {}
  const info = record(composerData.subagentInfo)
  const parentId = string(info?.parentComposerId)
  const promptOrigin = parentId === undefined ? "person" : "agent"
  const messages: Message[] = []
  for (const bubbleId of new Set(array(composer.order))) {
    const bubble = bubbles.get(String(bubbleId))
    const message = bubble && messageOf(String(bubbleId), bubble, promptOrigin, countUnknown)
    if (message) messages.push(message)
  }
  if (messages.length === 0) return { conversations: [], unknown: unknown.all() }
  fillTimes(messages)

  const name = string(composerData.name)
  const cwd = folder ?? string(record(record(composerData.workspaceIdentifier)?.uri)?.fsPath)
  const callId = string(info?.toolCallId)
  const times = messages.flatMap((message) => message.at ?? [])
  const conversation: Conversation = {
    id,
    kind: parentId === undefined ? "person" : "subagent",
    title: name === undefined ? undefined : { text: name, from: "agent" },
    cwds: cwd === undefined ? [] : [cwd],
    parent: parentId === undefined ? undefined : { id: parentId, call_id: callId },
    started_at: time(composerData.createdAt) ?? times[0],
    ended_at: time(composerData.lastUpdatedAt) ?? times.at(-1),
    messages,
    authority: AUTHORITY,
  }
  return { conversations: [conversation], unknown: unknown.all() }
}

function messageOf(
  key: string,
  bubble: RawRecord,
  promptOrigin: "person" | "agent",
  countUnknown: (type: string) => void,
): Message | undefined {
  const text = string(bubble.text)?.trim() ? string(bubble.text) : plainText(bubble.richText)
  const at = timeOf(bubble)
  const commonFields = { key, ...withoutUndefined({ at }) }
  if (bubble.type === 1) {
    const parts: Part[] = text === undefined ? [] : [{ type: "text", text, origin: promptOrigin }]
    for (const image of records(bubble.images)) parts.push(imagePart(image, promptOrigin, string(image.path)))
    const effects = array(bubble.files).flatMap((file) =>
      string(file) ? [fileEffect(string(file)!, "mentioned")] : [],
    )
    return parts.length === 0
      ? undefined
      : { ...commonFields, role: "user", parts, effects: effects.length > 0 ? effects : undefined }
  }
  if (bubble.type !== 2) {
    countUnknown(`bubble ${String(bubble.type)}`)
    return undefined
  }
  const parts: Part[] = []
  const thinking = string(record(bubble.thinking)?.text)
  if (thinking !== undefined) parts.push({ type: "thinking", text: thinking, origin: "agent" })
  if (text !== undefined) parts.push({ type: "text", text, origin: "agent" })
  const tool = record(bubble.toolFormerData)
  const toolContent = tool && toolParts(tool, key)
  parts.push(...(toolContent?.parts ?? []))
  if (parts.length === 0) return undefined
  const model = string(record(bubble.modelInfo)?.modelName)
  const usage = cursorUsage(record(bubble.tokenCount))
  return {
    ...commonFields,
    role: "assistant",
    model,
    parts,
    effects: toolContent && toolContent.effects.length > 0 ? toolContent.effects : undefined,
    usage,
  }
}

/** Parses a tool call and its result. Arguments, result and error are JSON strings inside the JSON. */
function toolParts(data: RawRecord, bubbleId: string): { parts: Part[]; effects: Effect[] } | undefined {
  const tool = string(data.name)
  if (tool === undefined) return undefined // Cursor reserved this entry, but no call followed
  const inputText = string(data.rawArgs) ?? string(data.params) ?? JSON.stringify(data.rawArgs ?? data.params ?? {})
  const params = record(data.params) ?? parseObject(string(data.params) ?? "")
  const input = { ...params, ...(record(data.rawArgs) ?? parseObject(string(data.rawArgs) ?? "")) }
  const result = record(data.result) ?? parseObject(string(data.result) ?? "")
  const failed = data.status === "error" || data.status === "cancelled" || data.userDecision === "rejected"
  const hasEnded = failed || data.status === "completed" || data.result !== undefined
  const error = errorText(data.error) ?? (data.status === "cancelled" ? "Cancelled" : undefined)
  const output = failed && error !== undefined ? error : outputText(result ?? data.result)
  const call: CursorCall = {
    tool,
    call_id: string(data.toolCallId) ?? bubbleId,
    input,
    text: inputText,
    outcome: hasEnded ? { failed, output, result } : undefined,
  }
  const hunks = hunksOf(call)
  const parts: Part[] = [{ type: "tool_call", text: inputText, origin: "agent", tool, call_id: call.call_id }]
  if (hasEnded) {
    const exitCode = number(result?.exitCode) ?? number(result?.exitCodeV2)
    parts.push({
      type: "tool_result",
      text: hunks.length > 0 && output.startsWith("{") ? hunks.flatMap((hunk) => hunk.lines).join("\n") : output,
      origin: cursorToolOrigin(tool),
      tool,
      call_id: call.call_id,
      is_error: failed || (exitCode !== undefined && exitCode !== 0),
      hunks: hunks.length > 0 ? hunks : undefined,
    })
  }
  return { parts, effects: effectsOf(call, hunks) }
}

function errorText(error: unknown): string | undefined {
  const details = record(error) ?? parseObject(string(error) ?? "")
  return string(details?.clientVisibleErrorMessage) ?? string(details?.message) ?? string(error)
}

/** Returns undefined if both counts are zero, which means that Cursor did not count. */
function cursorUsage(count: RawRecord | undefined): Usage | undefined {
  return usageFrom({ input: count?.inputTokens, output: count?.outputTokens })
}

/** The earliest plausible time, in milliseconds. Some builds count from the start of the program instead of from 1970. */
const EARLIEST_MS = 1e12

function timeOf(bubble: RawRecord): number | undefined {
  const created = time(bubble.createdAt)
  if (created !== undefined) return created
  const timing = record(bubble.timingInfo)
  for (const field of ["clientStartTime", "clientRpcSendTime", "clientEndTime"]) {
    const at = number(timing?.[field])
    if (at !== undefined && at > EARLIEST_MS) return Math.round(at)
  }
  return undefined
}

/** Interpolates the times of messages that are between two messages with known times. */
function fillTimes(messages: Message[]): void {
  let lastTimed: number | undefined
  for (let index = 0; index < messages.length; index++) {
    if (messages[index]!.at === undefined) continue
    const from = lastTimed === undefined ? undefined : messages[lastTimed]!.at!
    const span = messages[index]!.at! - (from ?? 0)
    if (lastTimed !== undefined && from !== undefined && span >= 0) {
      for (let i = lastTimed + 1; i < index; i++) {
        messages[i]!.at = Math.round(from + (span * (i - lastTimed)) / (index - lastTimed))
      }
    }
    lastTimed = index
  }
}

/** Extracts the text from the editor's rich text, a tree in a JSON string. */
function plainText(rich: unknown): string | undefined {
  const root = parseObject(string(rich) ?? "")?.root
  const texts: string[] = []
  const stack = [root]
  for (let visited = 0; stack.length > 0 && visited < 10_000; visited++) {
    const node = record(stack.pop())
    if (!node) continue
    if (typeof node.text === "string") texts.push(node.text)
    else if (node.type === "linebreak" || (node.type === "paragraph" && texts.length > 0)) texts.push("\n")
    stack.push(...array(node.children).toReversed())
  }
  return string(texts.join("").trim())
}
