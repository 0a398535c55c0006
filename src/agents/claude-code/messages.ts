import { createHash } from "node:crypto"
import type { Effect, Message, Part } from "../../core/conversation.ts"
import { array, isRecord, number, type RawRecord, record, records, string, time } from "../../core/record.ts"
import { addRequest, type Usage } from "../../core/usage.ts"
import { fileEffect, toolOrigin } from "../kit/effects.ts"
import { imagePart } from "../kit/messages.ts"
import { abandonedUuids, queuedOnlyRecords, queuedText } from "./branches.ts"
import {
  contentText,
  groupAnswers,
  injectedPart,
  isInjectedRecord,
  type ModelAnswer,
  outcomeOf,
  splitRefusal,
  type ToolUse,
  userParts,
} from "./content.ts"

/** The records of one conversation, in the order of the file. */
export type Thread = {
  id: string
  records: RawRecord[]
  /** The author of the prompts: a person, or the agent that started this conversation. */
  author: "person" | "agent"
  /** Outputs too large for the transcript, by the id of their call. */
  spilled: ReadonlyMap<string, string>
}

export type ThreadMessages = { messages: Message[]; calls: Map<string, ToolUse> }

/** A hook's text is cut after this many characters, because usually only the beginning matters. */
const MAX_HOOK_CHARS = 2_000
const SYNTHETIC = "<synthetic>"
const NO_ANSWER = "No response requested."

/** Subtypes of system records that are not shown. An `api_error` is followed by a message if all retries fail. */
const SILENT_SUBTYPES = new Set([
  "agents_killed",
  "api_error",
  "api_metrics",
  "bridge_status",
  "compact_boundary",
  "file_snapshot",
  "memory_saved",
  "microcompact_boundary",
  "session_start",
  "stop_hook_summary",
  "turn_duration",
])

const SHOWN_SUBTYPES = new Set([
  "api_refusal",
  "away_summary",
  "error",
  "informational",
  "model_refusal_fallback",
  "permission_retry",
  "scheduled_task_fire",
])

/** Types of attachments that only give the model context: listings, reminders, states, copies of files. */
const CONTEXT_ATTACHMENTS = new Set(
  `agent_listing_delta agent_mention already_read_file async_hook_response auto_mode auto_mode_exit batching_reminder_sent
  budget_usd command_permissions companion_intro compact_file_reference compaction_reminder context_efficiency
  critical_system_reminder date date_change deferred_tools_delta deferred_tools_record diagnostics directory dynamic_skill
  edited_image_file edited_text_file environment hook_cancelled hook_error_during_execution hook_non_blocking_error
  hook_permission_decision hook_stopped_continuation hook_success hook_system_message invoked_skills
  max_turns_reached mcp_instructions_delta mcp_resource model nested_memory new_diagnostics opened_file_in_ide
  output_style output_token_usage pdf_reference plan_file_reference plan_mode plan_mode_exit plan_mode_reentry
  prompt_snapshot read_truncation_notice relevant_memories remote_session_change selected_lines_in_ide session_context
  silent_turn_reminder skill_discovery skill_listing structured_output task_reminder task_status team_context
  teammate_mailbox teammate_shutdown_batch todo todo_reminder token_usage total_tokens_reminder ultra_effort_enter
  ultra_effort_exit ultrathink_effort ultramemory verify_plan_reminder`.split(/\s+/),
)

/**
 * Builds the messages of a thread, each at the position of its first record: Claude Code appends in chronological order, and the
 * parentUuid chain gives no better order. Answers are built first, so that a result finds its call even if the call comes later.
 */
export function messagesOf(thread: Thread, countUnknown: (type: string) => void): ThreadMessages {
  const entries = groupAnswers(thread.records, (raw, index) => keyOf(raw, thread, index))
  const state: ThreadState = {
    thread,
    countUnknown,
    calls: new Map(),
    answeredIds: new Set(),
    abandoned: abandonedUuids(thread.records),
    queued: queuedOnlyRecords(thread.records),
    messages: [],
    pendingEffects: [],
    pendingUsage: undefined,
    pullRequests: new Set(),
  }
  const answers = new Map<ModelAnswer, Message>()
  for (const entry of entries) if ("answer" in entry) answers.set(entry.answer, answerMessage(entry.answer, state))
  for (const entry of entries) {
    const message = "answer" in entry ? answers.get(entry.answer) : recordMessage(entry.raw, entry.index, state)
    if (!message) continue
    if (message.parts.length === 0) {
      if (message.usage) addUsageWithoutMessage(message.usage, state)
      continue
    }
    state.messages.push(message)
    if (message.role === "assistant") addPending(message, state)
  }
  return { messages: withUniqueKeys(state.messages), calls: state.calls }
}

/** An answer that is only white space is not a message, but it was paid for, so another answer gets its tokens. */
function addUsageWithoutMessage(usage: Usage, state: ThreadState): void {
  const previous = state.messages.findLast((message) => message.role === "assistant")
  if (previous) previous.usage = addRequest(previous.usage, usage)
  else state.pendingUsage = addRequest(state.pendingUsage, usage)
}

type ThreadState = {
  thread: Thread
  countUnknown: (type: string) => void
  calls: Map<string, ToolUse & { message: Message }>
  /** The ids of calls that have a result. A second result has no effects. */
  answeredIds: Set<string>
  abandoned: Set<string>
  queued: Set<RawRecord>
  messages: Message[]
  /** Effects that have not been added to an answer yet. */
  pendingEffects: Effect[]
  pendingUsage: Usage | undefined
  pullRequests: Set<string>
}

function answerMessage(answer: ModelAnswer, state: ThreadState): Message {
  const { first, message } = answer
  const isNotice = message.model === SYNTHETIC || first.isApiErrorMessage === true
  const result: Message = {
    key: answer.key,
    role: isNotice ? "system" : "assistant",
    ...timeOf(first),
    model: !isNotice && string(message.model) !== undefined ? string(message.model) : undefined,
    parts: [],
  }
  if (isNotice) {
    const text = contentText(answer.blocks).trim()
    if (text !== "" && text !== NO_ANSWER) result.parts.push(injectedPart(text))
    return result
  }
  for (const block of answer.blocks) result.parts.push(...answerParts(block, result, state))
  const usage = claudeCodeUsage(answer.usage)
  if (usage) result.usage = usage
  if (answer.uuids.length > 0 && answer.uuids.every((uuid) => state.abandoned.has(uuid))) result.abandoned = true
  return result
}

function answerParts(block: RawRecord, message: Message, state: ThreadState): Part[] {
  switch (block.type) {
    case "text": {
      const text = string(block.text)
      return text === undefined || text.trim() === "" ? [] : [{ type: "text", text, origin: "agent" }]
    }
    case "thinking": {
      const text = string(block.thinking)
      return text === undefined ? [] : [{ type: "thinking", text, origin: "agent" }]
    }
    case "redacted_thinking":
    case "fallback":
      return []
    case "tool_use":
    case "server_tool_use":
    case "mcp_tool_use": {
      const tool = string(block.name) ?? "unknown"
      const id = string(block.id)
      if (id !== undefined) state.calls.set(id, { id, tool, input: record(block.input) ?? {}, message })
      return [{ type: "tool_call", text: inputText(block.input), origin: "agent", tool, call_id: id || undefined }]
    }
    default:
      if (typeof block.type === "string" && block.type.endsWith("_tool_result")) {
        return resultParts({ ...block, content: serverResultText(block.content) }, undefined, state)
      }
      state.countUnknown(`block:${String(block.type)}`)
      return []
  }
}

function inputText(input: unknown): string {
  return typeof input === "string" ? input : JSON.stringify(input ?? {})
}

/** Returns the text of the result of a tool that the provider ran: blocks of text, or of titles and URLs. */
function serverResultText(content: unknown): string {
  const blocks = Array.isArray(content) ? records(content) : isRecord(content) ? [content] : []
  if (blocks.length === 0) return contentText(content)
  const fields = blocks.map((block) => [block.text, block.title, block.url, block.error_code])
  return fields.map((values) => values.filter((value) => typeof value === "string").join(" ")).join("\n")
}

function claudeCodeUsage(usage: RawRecord | undefined): Usage | undefined {
  if (!usage) return undefined
  const reasoning = number(record(usage.output_tokens_details)?.thinking_tokens)
  const cacheWrites = record(usage.cache_creation)
  const serverTools = record(usage.server_tool_use)
  const searches = number(serverTools?.web_search_requests)
  const fetches = number(serverTools?.web_fetch_requests)
  const tier = string(usage.service_tier)
  const speed = string(usage.speed)
  return {
    input: number(usage.input_tokens) ?? 0,
    output: number(usage.output_tokens) ?? 0,
    cache_read: number(usage.cache_read_input_tokens) ?? 0,
    cache_write: number(usage.cache_creation_input_tokens) ?? 0,
    cache_write_5m: cacheWrites && (number(cacheWrites.ephemeral_5m_input_tokens) ?? 0),
    cache_write_1h: cacheWrites && (number(cacheWrites.ephemeral_1h_input_tokens) ?? 0),
    reasoning: reasoning || undefined,
    web_searches: searches || undefined,
    web_fetches: fetches || undefined,
    service_tier: tier || undefined,
    speed: speed || undefined,
  }
}

/** Returns the number of web searches. A search uses a separate model, whose tokens are not recorded. */
function searchUsage(structured: unknown): Usage | undefined {
  const searches = number(record(structured)?.searchCount)
  return searches ? { input: 0, output: 0, cache_read: 0, cache_write: 0, web_searches: searches } : undefined
}

function recordMessage(raw: RawRecord, index: number, state: ThreadState): Message | undefined {
  const createMessage = (role: Message["role"], parts: Part[]): Message => ({
    key: keyOf(raw, state.thread, index),
    role,
    ...timeOf(raw),
    parts,
    abandoned: typeof raw.uuid === "string" && state.abandoned.has(raw.uuid) ? true : undefined,
  })
  switch (raw.type) {
    case "user":
      return userMessage(raw, createMessage, state)
    case "attachment":
      return attachmentMessage(raw, createMessage, state)
    case "system":
      return systemMessage(raw, createMessage, state)
    case "queue-operation":
      return state.queued.has(raw)
        ? createMessage("user", userParts(contentText(raw.content), state.thread.author))
        : undefined
    case "pr-link":
      linkPullRequest(raw, state)
      return undefined
    default:
      return undefined
  }
}

type MessageBuilder = (role: Message["role"], parts: Part[]) => Message

function userMessage(raw: RawRecord, createMessage: MessageBuilder, state: ThreadState): Message {
  const content = record(raw.message)?.content
  if (raw.isCompactSummary === true) {
    const text = contentText(content).trim()
    return createMessage("system", text === "" ? [] : [{ type: "summary", text, origin: "agent" }])
  }
  const blocks: unknown[] = typeof content === "string" ? [content] : array(content)
  const results = blocks.filter((block) => isRecord(block) && block.type === "tool_result")
  const parts: Part[] = []
  for (const block of blocks) {
    if (typeof block === "string") parts.push(...promptParts(block, raw, state))
    else if (!isRecord(block)) continue
    else if (block.type === "text") parts.push(...promptParts(string(block.text) ?? "", raw, state))
    else if (block.type === "tool_result") {
      parts.push(...resultParts(block, results.length === 1 ? raw.toolUseResult : undefined, state))
    } else if (block.type === "image" || block.type === "document") {
      parts.push(imagePart(block.source, isInjectedRecord(raw) ? "injected" : state.thread.author))
    } else state.countUnknown(`block:${String(block.type)}`)
  }
  if (parts[0]?.type === "summary") return createMessage("system", parts)
  const hasOwnText = parts.some((part) => part.type === "text" && part.origin !== "injected")
  const result = createMessage(results.length > 0 && !hasOwnText ? "tool" : "user", parts)
  const usage = searchUsage(raw.toolUseResult)
  if (usage) result.usage = usage
  return result
}

function promptParts(text: string, raw: RawRecord, { thread }: ThreadState): Part[] {
  if (text.trim() === "") return []
  if (isInjectedRecord(raw)) return [injectedPart(text)]
  if (raw.planContent) return [{ type: "text", text: text.trim(), origin: "agent" }]
  return userParts(text, thread.author)
}

function resultParts(block: RawRecord, structured: unknown, state: ThreadState): Part[] {
  const id = string(block.tool_use_id)
  const call = id === undefined ? undefined : state.calls.get(id)
  const isError = block.is_error === true
  const { notice, words } = isError
    ? splitRefusal(contentText(block.content))
    : { notice: completeText(contentText(block.content), call?.tool, structured, id, state), words: undefined }
  const part: Extract<Part, { type: "tool_result" }> = {
    type: "tool_result",
    text: notice,
    origin: toolOrigin(call?.tool),
    tool: call ? call.tool : undefined,
    call_id: id,
    is_error: isError,
  }
  if (call && !state.answeredIds.has(call.id)) {
    state.answeredIds.add(call.id)
    const { effects, hunks } = outcomeOf(call, { text: notice, isError, structured })
    if (effects.length > 0) addEffects(call.message, effects)
    if (hunks.length > 0) part.hunks = hunks
  }
  const parts: Part[] = [part]
  for (const inner of records(block.content))
    if (isRecord(inner.source)) parts.push(imagePart(inner.source, part.origin))
  if (words !== undefined) parts.push({ type: "text", text: words, origin: "person" })
  return parts
}

/** Replaces a preview with the complete output, and removes the reminder that follows every output of Read. */
function completeText(
  text: string,
  tool: string | undefined,
  structured: unknown,
  id: string | undefined,
  state: ThreadState,
): string {
  if (text.startsWith("<persisted-output>")) {
    const stdout = string(record(structured)?.stdout)
    return (id && state.thread.spilled.get(id)) ?? (stdout !== undefined && stdout.length > text.length ? stdout : text)
  }
  if (tool !== "Read" || !text.trimEnd().endsWith("</system-reminder>")) return text
  // Read numbers the lines of a file, so a line that begins with this tag does not come from the file.
  const reminderStart = text.lastIndexOf("\n\n<system-reminder>")
  return reminderStart === -1 ? text : text.slice(0, reminderStart)
}

function attachmentMessage(raw: RawRecord, createMessage: MessageBuilder, state: ThreadState): Message | undefined {
  const attachment = record(raw.attachment)
  if (!attachment) return undefined
  switch (attachment.type) {
    case "queued_command":
      return state.queued.has(raw) ? createMessage("user", queuedParts(raw, attachment, state)) : undefined
    case "hook_additional_context":
      return createMessage("user", hookParts(contentText(attachment.content)))
    case "hook_blocking_error":
      return createMessage("user", hookParts(string(record(attachment.blockingError)?.blockingError) ?? ""))
    case "file": {
      const path = string(attachment.filename)
      const prompt = state.messages.findLast((earlier) => earlier.role === "user")
      if (path !== undefined && prompt) addEffects(prompt, [fileEffect(path, "mentioned")])
      return undefined
    }
    default:
      if (!CONTEXT_ATTACHMENTS.has(String(attachment.type))) state.countUnknown(`attachment:${String(attachment.type)}`)
      return undefined
  }
}

function queuedParts(raw: RawRecord, attachment: RawRecord, state: ThreadState): Part[] {
  const { author } = state.thread
  const text = queuedText(attachment)
  if (isInjectedRecord(raw) || isInjectedRecord(attachment)) return text.trim() === "" ? [] : [injectedPart(text)]
  const mode = attachment.commandMode
  const parts = mode === "bash" ? userParts(`!${text}`, author) : userParts(text, author)
  for (const block of records(attachment.prompt)) {
    if (block.type === "image" || block.type === "document") parts.push(imagePart(block.source, author))
  }
  return parts
}

function hookParts(text: string): Part[] {
  const excerpt = text.length > MAX_HOOK_CHARS ? `${text.slice(0, MAX_HOOK_CHARS)}…` : text
  return excerpt.trim() === "" ? [] : [injectedPart(excerpt)]
}

function systemMessage(raw: RawRecord, createMessage: MessageBuilder, state: ThreadState): Message | undefined {
  const subtype = String(raw.subtype)
  const text = string(raw.content) ?? string(record(raw.error)?.message)
  if (SILENT_SUBTYPES.has(subtype)) return undefined
  if (subtype === "local_command") return createMessage("user", userParts(text ?? "", state.thread.author))
  if (!SHOWN_SUBTYPES.has(subtype)) state.countUnknown(`system:${subtype}`)
  return text === undefined ? undefined : createMessage("system", [injectedPart(text)])
}

function linkPullRequest(raw: RawRecord, state: ThreadState): void {
  const url = string(raw.prUrl)
  if (url === undefined || state.pullRequests.has(url)) return
  state.pullRequests.add(url)
  state.pendingEffects.push({ type: "pull_request", url })
  const latest = state.messages.findLast((message) => message.role === "assistant")
  if (latest) addPending(latest, state)
}

function addPending(message: Message, state: ThreadState): void {
  if (state.pendingUsage) message.usage = addRequest(message.usage, state.pendingUsage)
  state.pendingUsage = undefined
  if (state.pendingEffects.length === 0) return
  addEffects(message, state.pendingEffects)
  state.pendingEffects = []
}

function addEffects(message: Message, effects: Effect[]): void {
  message.effects = message.effects ? [...message.effects, ...effects] : [...effects]
}

function timeOf(raw: RawRecord): { at?: number } {
  const at = time(raw.timestamp)
  return at === undefined ? {} : { at }
}

/**
 * Returns the key of a message. A copy in a fork names the original record and gets the same key, because it is the same message.
 */
function keyOf(raw: RawRecord, thread: Thread, index: number): string {
  const original = string(record(raw.forkedFrom)?.messageUuid)
  if (original !== undefined) return original
  const uuid = string(raw.uuid)
  if (uuid !== undefined) return uuid
  if (raw.type === "queue-operation") {
    const hash = createHash("sha256").update(contentText(raw.content)).digest("hex")
    return `queue:${String(raw.timestamp)}:${hash.slice(0, 16)}`
  }
  return `${thread.id}:${index}`
}

function withUniqueKeys(messages: Message[]): Message[] {
  const keys = new Set<string>()
  for (const message of messages) {
    for (let n = 2, key = message.key; keys.has(message.key); n++) message.key = `${key}~${n}`
    keys.add(message.key)
  }
  return messages
}
