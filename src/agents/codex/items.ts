import type { Origin, Part } from "../../core/conversation.ts"
import { CONTEXT_TAG } from "../../core/conversation.ts"
import { array, number, parseObject, type RawRecord, record, records, string } from "../../core/record.ts"
import { combineUsage, type Usage } from "../../core/usage.ts"
import { imagePart, splitInjected, type TextRun } from "../kit/messages.ts"
import {
  addCwd,
  addMessage,
  callWithId,
  countUnknown,
  describeCall,
  type Rollout,
  readCallOutput,
  speakerOf,
} from "./rollout.ts"

type ResultPart = Extract<Part, { type: "tool_result" }>

/** Types of items that are encrypted, or that only Codex itself needs. */
const IGNORED_TYPES = new Set([
  "additional_tools",
  "compaction",
  "compaction_summary",
  "compaction_trigger",
  "context_compaction",
  "ghost_snapshot",
])

/** Handles a `response_item`: what the model received or produced. If an event contradicts an item, the item wins. */
export function handleItem(rollout: Rollout, payload: RawRecord, at?: number, ordinal?: number): void {
  switch (payload.type) {
    case "message":
      handleMessage(rollout, payload, at, ordinal)
      break
    case "reasoning":
      addMessage(rollout, "assistant", thinkingParts(reasoningText(payload)), { payload, at, kind: "thinking" })
      break
    case "function_call": {
      const input = typeof payload.arguments === "string" ? payload.arguments : json(payload.arguments)
      addCall(rollout, payload, at, toolName(payload), input, parseObject(input))
      break
    }
    case "custom_tool_call":
      addCall(rollout, payload, at, toolName(payload), string(payload.input) ?? "")
      break
    case "local_shell_call":
      addCall(rollout, payload, at, "local_shell", json(payload.action), record(payload.action))
      break
    case "tool_search_call":
      addCall(rollout, payload, at, "tool_search", json(payload.arguments))
      break
    case "web_search_call":
      addCall(rollout, payload, at, "web_search", json(payload.action))
      break
    case "function_call_output":
    case "custom_tool_call_output":
      addResult(rollout, payload, at, payload.output)
      break
    case "tool_search_output":
      addResult(rollout, payload, at, array(payload.tools).map(String).join("\n"))
      break
    case "image_generation_call": {
      const prompt = string(payload.revised_prompt) ?? ""
      const call: Part = { type: "tool_call", text: prompt, origin: "agent", tool: "image_generation" }
      addMessage(rollout, "assistant", [call, imagePart(payload.result, "agent", string(payload.result))], {
        payload,
        at,
      })
      break
    }
    case "agent_message":
      addMessage(rollout, "user", agentMessageParts(payload), { payload, at, kind: "agent_message" })
      break
    default:
      if (!IGNORED_TYPES.has(String(payload.type))) countUnknown(rollout, `response_item/${payload.type}`)
  }
}

function handleMessage(rollout: Rollout, payload: RawRecord, at?: number, ordinal?: number): void {
  const content = contentOf(payload)
  if (payload.role === "assistant") {
    const parts = content.flatMap((piece) => contentParts(piece, asSpeakerText, "agent"))
    addMessage(rollout, "assistant", parts, { payload, at, kind: "reply" })
    return
  }
  if (payload.role !== "user") {
    const parts = content.flatMap((piece) => contentParts(piece, asInjectedText, "injected"))
    addMessage(rollout, "system", parts, { payload, at })
    return
  }
  const speaker = speakerOf(rollout, payload, ordinal)
  const parts = messageParts(rollout, payload, ordinal)
  if (rollout.cwds.length === 0) noteFolder(rollout, parts)
  const startsTurn = parts.some(({ origin }) => origin === speaker)
  addMessage(rollout, "user", parts, { payload, at, kind: startsTurn ? "prompt" : undefined, startsTurn })
}

function contentOf({ content }: RawRecord): RawRecord[] {
  return typeof content === "string" ? [{ text: content }] : records(content)
}

/** Splits a user message into the typed text and the text that was added around it. */
export function messageParts(rollout: Rollout, payload: RawRecord, ordinal?: number): Part[] {
  const speaker = speakerOf(rollout, payload, ordinal)
  const metadata = record(payload.internal_chat_message_metadata_passthrough)
  const kinds = array(metadata?.content_item_kinds)
  const itemMetadata = array(metadata?.content_item_metadata)
  return contentOf(payload).flatMap((piece, i) => {
    const kind = string(kinds[i])
    if (kind === undefined || kind === "unknown") return contentParts(piece, splitPrompt, speaker)
    const isTyped = kind.startsWith("user.") || record(record(itemMetadata[i])?.provenance)?.type === "user"
    return contentParts(piece, isTyped ? splitRequest : asInjectedText, isTyped ? speaker : "injected")
  })
}

/** Adds the working directory, which the oldest files name only in the text before the first prompt. */
function noteFolder(rollout: Rollout, parts: Part[]): void {
  for (const part of parts) {
    if (part.origin !== "injected") continue
    const match = /<cwd>([^<\n]{1,4000})<\/cwd>|^(?:- )?Current working directory: (.{1,4000})$/m.exec(part.text)
    addCwd(rollout, match?.[1] ?? match?.[2])
  }
}

function addCall(
  rollout: Rollout,
  payload: RawRecord,
  at: number | undefined,
  tool: string,
  input: string,
  args?: RawRecord,
) {
  const id = string(payload.call_id) ?? string(payload.id)
  const part: Part = { type: "tool_call", text: input, origin: "agent", tool, call_id: id || undefined }
  const message = addMessage(rollout, "assistant", [part], {
    payload: { ...payload, id: payload.id ?? payload.call_id },
    at,
  })
  if (!message || !id) return
  const call = callWithId(rollout, id)
  call.message = message
  describeCall(call, tool, input, args)
}

function addResult(rollout: Rollout, payload: RawRecord, at: number | undefined, output: unknown): void {
  const { text, exitStatus, failed, images } = readCallOutput(output)
  const id = string(payload.call_id)
  const callField = id === undefined ? {} : { call_id: id }
  const result: ResultPart = { type: "tool_result", text, origin: "local_tool", ...callField, is_error: false }
  const parts = [result, ...images.map((image) => imagePart(image.image_url, "local_tool", string(image.image_url)))]
  const key = string(payload.id) ?? (id && `${id}:output`)
  if (!addMessage(rollout, "tool", parts, { payload: { ...payload, id: key }, at })) return
  const call = callWithId(rollout, id)
  call.result ??= result
  call.exitStatus ??= exitStatus
  call.failed ??= failed
}

/** Parses a message from one agent to another. */
export function agentMessageParts(payload: RawRecord): Part[] {
  const text = string(payload.content) ?? itemsText(payload.content)
  const author = string(payload.author)
  if (text.trim() === "") return []
  return textPart(author ? `${author} → ${string(payload.recipient) ?? "all"}: ${text}` : text, "agent")
}

function toolName(payload: RawRecord): string {
  const name = string(payload.name) ?? "unknown"
  const namespace = string(payload.namespace)
  return namespace?.startsWith("mcp__") ? `${namespace}__${name}` : name
}

function json(value: unknown): string {
  return JSON.stringify(value ?? {})
}

// Converts Codex's content pieces and token counts.

type TextSplitter = (text: string) => TextRun[]
export const asSpeakerText: TextSplitter = (text) => (text.trim() === "" ? [] : [{ text, injected: false }])
const asInjectedText: TextSplitter = (text) => (text.trim() === "" ? [] : [{ text, injected: true }])

export function contentParts(piece: RawRecord, split: TextSplitter, speaker: Origin): Part[] {
  if (piece.type === "input_image" || piece.type === "image") {
    return piece.image_url ? [imagePart(piece.image_url, speaker, string(piece.image_url))] : []
  }
  const text = string(piece.text) ?? string(piece.refusal)
  if (text === undefined) return []
  return split(text).map((run) => ({ type: "text", text: run.text, origin: run.injected ? "injected" : speaker }))
}

export function textPart(text: unknown, origin: Origin): Part[] {
  const content = string(text)
  return content && content.trim() !== "" ? [{ type: "text", text: content, origin }] : []
}

export function thinkingParts(text: string | undefined): Part[] {
  return text && text.trim() !== "" ? [{ type: "thinking", text, origin: "agent" }] : []
}

export function reasoningText(payload: RawRecord): string {
  return [...records(payload.summary), ...records(payload.content)]
    .flatMap((piece) => string(piece.text) ?? [])
    .join("\n\n")
}

export function itemsText(content: unknown): string {
  return records(content)
    .flatMap((piece) => string(piece.text) ?? [])
    .join("\n")
}

export function codexUsage(counts: RawRecord | undefined): Usage | undefined {
  const input = number(counts?.input_tokens)
  const output = number(counts?.output_tokens)
  if (input === undefined && output === undefined) return undefined
  const cached = number(counts?.cached_input_tokens) ?? 0
  const reasoning = number(counts?.reasoning_output_tokens)
  return {
    input: Math.max(0, (input ?? 0) - cached),
    output: output ?? 0,
    cache_read: cached,
    cache_write: number(counts?.cache_write_input_tokens) ?? 0,
    reasoning,
  }
}

export function usageSince(total: Usage | undefined, earlier: Usage | undefined): Usage | undefined {
  return total && earlier ? combineUsage(total, earlier, (x, y) => Math.max(0, x - y)) : total
}

/** Returns only those fields whose values are strings. */
export function textFields<K extends string>(fields: Record<K, unknown>): Partial<Record<K, string>> {
  const texts: Partial<Record<K, string>> = {}
  for (const key in fields) {
    const text = string(fields[key])
    if (text !== undefined) texts[key] = text
  }
  return texts
}

/** Tags that Codex, its extensions and its hooks insert into the user's turn. */
const INJECTED_TAGS = [
  CONTEXT_TAG,
  "environment_context",
  "user_instructions",
  "turn_aborted",
  "goal_context",
  "codex_internal_context",
  "recommended_plugins",
  "skill",
  "skills_instructions",
  "permissions instructions",
  "subagent_notification",
  "user_shell_command",
  "user_action",
  "collaboration_mode",
  "model_switch",
  "app-context",
  "apps_instructions",
  "plugins_instructions",
  "hook_prompt",
  "hook_context",
] as const

const INSTRUCTIONS_END = "</INSTRUCTIONS>"
const REQUEST_HEADING = "## My request for Codex:"

/** Splits a user's text into typed and inserted text. A prompt may follow inserted text directly. */
export function splitPrompt(text: string): TextRun[] {
  const trimmed = text.trim()
  if (/^<\/?image\b[^>]{0,400}>$/.test(trimmed)) return [{ text: trimmed, injected: true }]
  if (!trimmed.startsWith("# AGENTS.md")) {
    return splitRequest(trimmed).flatMap((run) => (run.injected ? [run] : splitInjected(run.text, INJECTED_TAGS)))
  }
  const end = trimmed.lastIndexOf(INSTRUCTIONS_END)
  if (end === -1) return [{ text: trimmed, injected: true }]
  const rest = trimmed.slice(end + INSTRUCTIONS_END.length)
  return [{ text: trimmed.slice(0, end + INSTRUCTIONS_END.length), injected: true }, ...splitPrompt(rest)]
}

/** Splits a text at the heading of the request. The IDE extension writes open files and selections before this heading. */
function splitRequest(text: string): TextRun[] {
  const trimmed = text.trim()
  const headingStart = trimmed.startsWith("# ") ? trimmed.indexOf(REQUEST_HEADING) : -1
  const runs =
    headingStart === -1
      ? [{ text: trimmed, injected: false }]
      : [
          { text: trimmed.slice(0, headingStart + REQUEST_HEADING.length), injected: true },
          { text: trimmed.slice(headingStart + REQUEST_HEADING.length).trim(), injected: false },
        ]
  return runs.filter((run) => run.text !== "")
}
