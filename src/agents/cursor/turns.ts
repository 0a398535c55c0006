import { createCounts } from "../../core/by-name.ts"
import type { Conversation, Effect, Message, Part } from "../../core/conversation.ts"
import { withoutUndefined } from "../../core/defined.ts"
import { array, isRecord, number, type RawRecord, record, string, time } from "../../core/record.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { cutLongTexts, digestOf } from "../kit/messages.ts"
import { type CursorCall, cursorToolOrigin, effectsOf, hunksOf, outputText, promptParts } from "./tools.ts"

/** The authorities of the command line's store and of a transcript. The editor's store has a higher one. */
const AUTHORITY = { cli: 9, transcript: 8 }

/** Removes signatures, provider data and image bytes. Drops the system prompt, which the command line stores as a message. */
export function stripTurn(turn: RawRecord): RawRecord | undefined {
  if (turn.role === "system") return undefined
  const { providerOptions: _, ...rest } = turn
  const message = record(rest.message)
  if (message) return cutLongTexts({ ...rest, message: { ...message, content: stripContent(message.content) } })
  return cutLongTexts({
    ...rest,
    ...withoutUndefined({ content: rest.content === undefined ? undefined : stripContent(rest.content) }),
  })
}

function stripContent(content: unknown): unknown {
  return Array.isArray(content) ? content.map(stripBlock) : content
}

function stripBlock(block: unknown): unknown {
  if (!isRecord(block)) return block
  const { signature: _, providerOptions: __, experimental_content: ___, ...rest } = block
  if (rest.type !== "image") return rest
  const source = record(rest.source)
  const data = string(source?.data) ?? string(rest.image) ?? string(rest.data)
  const media = string(source?.media_type) ?? string(rest.mediaType) ?? string(rest.mimeType)
  const bytes = data === undefined ? Buffer.alloc(0) : Buffer.from(data.slice(data.indexOf(",") + 1), "base64")
  return { type: "image", ...digestOf(bytes, media) }
}

/** Parses one transcript, or one conversation of the command line. */
export function parseTurns(turns: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const countUnknown = (type: string) => unknown.add(type)
  const isCli = unit.key.startsWith("cli:")
  const [session, subagent] = unit.key.slice(unit.key.indexOf(":") + 1).split("/") as [string, string?]
  const id = subagent ?? session
  const promptOrigin = subagent === undefined ? "person" : "agent"
  const calls: TurnCall[] = []
  const messages: Message[] = []
  let file: RawRecord = {}
  let line = 0
  for (const turn of turns) {
    if (turn.type === "dex-file") {
      file = turn
      continue
    }
    line++
    const key = string(turn.key) ?? `${id}:${line}`
    const message = messageOf(turn, key, promptOrigin, calls, countUnknown)
    if (message) messages.push(message)
  }
  finishCalls(messages, calls)
  if (messages.length === 0) return { conversations: [], unknown: unknown.all() }

  const model = string(file.model)
  const lastAnswer = messages.findLast((message) => message.role === "assistant")
  if (lastAnswer && lastAnswer.model === undefined && model !== undefined) lastAnswer.model = model
  const name = string(file.name)
  const folder = string(file.folder)
  const times = messages.flatMap((message) => message.at ?? [])
  const conversation: Conversation = {
    id,
    kind: subagent === undefined ? "person" : "subagent",
    title: name === undefined || /^new (agent|chat)$/i.test(name) ? undefined : { text: name, from: "agent" },
    cwds: folder === undefined ? [] : [folder],
    parent: subagent === undefined ? undefined : { id: session },
    started_at: number(file.created_at) ?? times[0],
    ended_at: number(file.updated_at) ?? times.at(-1),
    messages,
    authority: isCli ? AUTHORITY.cli : AUTHORITY.transcript,
  }
  return { conversations: [conversation], unknown: unknown.all() }
}

/**
 * A tool call with the key of its message, and its result if there is one. Results without a call id are matched to calls in
 * order.
 */
type TurnCall = CursorCall & { key: string; hasOwnId: boolean; result?: Part & { type: "tool_result" } }

function messageOf(
  turn: RawRecord,
  key: string,
  promptOrigin: "person" | "agent",
  calls: TurnCall[],
  countUnknown: (type: string) => void,
): Message | undefined {
  const at = time(turn.timestamp)
  const commonFields = { key, at }
  const type = string(turn.type) ?? string(turn.event)
  if (type === "error") {
    const text = outputText(record(turn.error)?.message ?? turn.error)
    return text === ""
      ? undefined
      : { ...commonFields, role: "system", parts: [{ type: "text", text, origin: "agent" }] }
  }
  if (type === "turn_ended") return undefined
  if (type === "text-turn") return textTurn(turn, commonFields, promptOrigin, calls)
  const role = turn.role ?? record(turn.message)?.role
  if (role !== "user" && role !== "assistant" && role !== "tool") {
    countUnknown(type ?? `role ${String(role)}`)
    return undefined
  }
  const content = record(turn.message)?.content ?? turn.content
  const parts: Part[] = []
  array(typeof content === "string" ? [{ type: "text", text: content }] : content).forEach((block, index) => {
    if (isRecord(block))
      parts.push(...blockParts(block, `${key}:${index}`, key, role, promptOrigin, calls, countUnknown))
  })
  if (parts.length === 0) return undefined
  const model = string(turn.model)
  const hasOnlyResults = parts.every((part) => part.type === "tool_result")
  return {
    ...commonFields,
    role: hasOnlyResults && role !== "assistant" ? "tool" : role === "tool" ? "tool" : role,
    ...withoutUndefined({ model }),
    parts,
  }
}

/** The text that Cursor writes in place of text that it does not show. */
const HIDDEN_TEXT = "[REDACTED]"

function blockParts(
  block: RawRecord,
  id: string,
  key: string,
  role: "user" | "assistant" | "tool",
  promptOrigin: "person" | "agent",
  calls: TurnCall[],
  countUnknown: (type: string) => void,
): Part[] {
  const text = string(block.text)
  switch (block.type) {
    case "text":
      if (text === undefined || text.trim() === "" || text.trim() === HIDDEN_TEXT) return []
      return role === "user" ? promptParts(text, promptOrigin) : [{ type: "text", text, origin: "agent" }]
    case "thinking":
    case "reasoning": {
      const thought = string(block.thinking) ?? text
      return thought === undefined || thought === HIDDEN_TEXT
        ? []
        : [{ type: "thinking", text: thought, origin: "agent" }]
    }
    case "tool_use":
    case "tool_call":
    case "tool-call": {
      const callId = string(block.id) ?? string(block.toolCallId)
      const input = block.input ?? block.args ?? {}
      const inputText = typeof input === "string" ? input : JSON.stringify(input)
      return [
        addCall(
          calls,
          string(block.name) ?? string(block.toolName) ?? "unknown",
          callId,
          id,
          key,
          record(input) ?? {},
          inputText,
        ),
      ]
    }
    case "tool_result":
    case "tool-result": {
      const output = outputText(block.content ?? block.result ?? block.output)
      const callId = string(block.tool_use_id) ?? string(block.toolCallId)
      const name = string(block.name) ?? string(block.toolName)
      return [
        addResult(calls, callId, name, output, block.is_error === true || block.isError === true, record(block.result)),
      ]
    }
    case "command_output":
      return [{ type: "text", text: outputText(block.output), origin: "local_tool" }]
    case "image": {
      const mime = string(block.media_type)
      const origin = role === "user" ? promptOrigin : "agent"
      return [
        {
          type: "image",
          text: "",
          origin,
          mime: mime || undefined,
          bytes: number(block.bytes),
          sha256: string(block.sha256),
        },
      ]
    }
    case "redacted":
    case "redacted_thinking":
    case "redacted-reasoning":
      return []
    default:
      countUnknown(`block ${String(block.type)}`)
      return text === undefined ? [] : [{ type: "text", text, origin: role === "user" ? "injected" : "agent" }]
  }
}

function addCall(
  calls: TurnCall[],
  tool: string,
  callId: string | undefined,
  id: string,
  key: string,
  input: RawRecord,
  text: string,
): Part {
  const call_id = callId ?? id
  calls.push({ tool, call_id, key, hasOwnId: callId !== undefined, input, text })
  return { type: "tool_call", text, origin: "agent", tool, call_id }
}

function addResult(
  calls: TurnCall[],
  callId: string | undefined,
  name: string | undefined,
  output: string,
  failed: boolean,
  result: RawRecord | undefined,
): Part {
  const call =
    calls.find((candidate) => candidate.hasOwnId && candidate.call_id === callId && !candidate.outcome) ??
    calls.find(
      (candidate) => !candidate.hasOwnId && !candidate.outcome && (name === undefined || candidate.tool === name),
    )
  const tool = call?.tool ?? name
  const call_id = call?.call_id ?? callId
  const part: Part & { type: "tool_result" } = {
    type: "tool_result",
    text: output,
    origin: cursorToolOrigin(tool ?? ""),
    tool,
    call_id,
    is_error: failed,
  }
  if (call) {
    call.outcome = { failed, output, result }
    call.result = part
  }
  return part
}

/** Adds the effects of calls, which are known only after their results are read, to the message with the call. */
function finishCalls(messages: Message[], calls: TurnCall[]): void {
  const byKey = new Map<string, Effect[]>()
  for (const call of calls) {
    const hunks = hunksOf(call)
    if (hunks.length > 0 && call.result) call.result.hunks = hunks
    const effects = effectsOf(call, hunks)
    if (effects.length > 0) byKey.set(call.key, [...(byKey.get(call.key) ?? []), ...effects])
  }
  for (const message of messages) {
    const effects = byKey.get(message.key)
    if (effects) message.effects = effects
  }
}

/** Parses a turn of the oldest format, in which thoughts, calls and results are marked at the beginning of a line. */
function textTurn(
  turn: RawRecord,
  base: { key: string; at?: number },
  promptOrigin: "person" | "agent",
  calls: TurnCall[],
): Message | undefined {
  const text = string(turn.text) ?? ""
  const parts: Part[] = []
  const pieces = text.split(/^\[(Thinking|Tool call|Tool result)\][ \t]*/m)
  const opening = pieces[0]!.trim()
  const isUser = turn.role === "user"
  if (opening !== "")
    parts.push(
      ...(isUser ? promptParts(opening, promptOrigin) : [{ type: "text", text: opening, origin: "agent" } as const]),
    )
  for (let i = 1; i < pieces.length; i += 2) {
    const [heading = "", ...bodyLines] = pieces[i + 1]!.split("\n")
    const body = bodyLines.join("\n").trimEnd()
    if (pieces[i] === "Thinking") {
      parts.push({ type: "thinking", text: `${heading}\n${body}`.trim(), origin: "agent" })
    } else if (pieces[i] === "Tool call") {
      parts.push(
        addCall(
          calls,
          heading.trim() || "unknown",
          undefined,
          `${base.key}:${i}`,
          base.key,
          argumentsIn(bodyLines),
          body.trim(),
        ),
      )
    } else parts.push(addResult(calls, undefined, heading.trim() || undefined, body.trim(), false, undefined))
  }
  return parts.length === 0 ? undefined : { ...base, role: isUser ? "user" : "assistant", parts }
}

/** Parses arguments on separate indented lines, `name: value`. */
function argumentsIn(lines: string[]): RawRecord {
  const args: RawRecord = {}
  for (const line of lines) {
    const [, name, value] = /^\s+(\w{1,64}): (.*)$/.exec(line) ?? []
    if (name !== undefined && name !== "__proto__") args[name] = value
  }
  return args
}
