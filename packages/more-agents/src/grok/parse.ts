import {
  actionByName,
  type CallAction,
  resultOfCall,
  type ToolNames,
  toolCallPart,
} from "../../../../src/agents/kit/calls.ts"
import type { Parsed, UnitName } from "../../../../src/agents/kit/connector.ts"
import { hunkOfNewFile, hunksOfReplacement } from "../../../../src/agents/kit/effects.ts"
import {
  type ConversationFields,
  imagePart,
  parsedFrom,
  splitInjected,
  uniqueKeys,
  usageFrom,
} from "../../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../../src/core/by-name.ts"
import type { Hunk, Message, Part, Title } from "../../../../src/core/conversation.ts"
import { number, parseObject, type RawRecord, record, records, string, time } from "../../../../src/core/record.ts"
import type { Usage } from "../../../../src/core/usage.ts"

export function parseGrok(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const lines = [...raw]
  const facts = lines.findLast(({ type }) => type === "dex-session") ?? {}
  const log: GrokLog = {
    messages: [],
    unknown: createCounts(),
    keyFor: uniqueKeys(),
    session: unit.key,
    calls: new Map(),
    isSubagent: facts.kind === "subagent" || string(facts.parent) !== undefined,
  }
  for (const line of lines) {
    const params = record(line.params)
    if (params) readUpdate(log, record(params.update) ?? {}, record(params._meta) ?? {}, line)
    else if (line.type !== "dex-session") readInputLine(log, line)
  }
  const fields: ConversationFields = {
    id: unit.key,
    kind: log.isSubagent ? "subagent" : "person",
    title: titleOf(facts, log.messages),
    cwd: facts.cwd,
    git_branch: facts.branch,
    git_remote: facts.remote,
    git_commit: facts.commit,
    parent: facts.parent,
    messages: log.messages,
  }
  return parsedFrom(fields, log.unknown)
}

/** Returns the session's title. Until Grok generates one, the session's name is its first prompt, which is not a title. */
function titleOf(facts: RawRecord, messages: Message[]): Title | undefined {
  const text = string(facts.description) ?? string(facts.title)
  const firstPrompt = messages.find(({ role, parts }) => role === "user" && parts[0]?.origin !== "injected")?.parts[0]
    ?.text
  if (text === undefined || firstPrompt?.startsWith(text.slice(0, 40))) return undefined
  return { text, from: "agent" }
}

const GROK_TOOLS: ToolNames = {
  command: ["run_terminal_command", "run_terminal_cmd"],
  read: ["read_file"],
  write: ["write"],
  edit: ["search_replace"],
}

type GrokLog = {
  messages: Message[]
  unknown: ReturnType<typeof createCounts>
  keyFor: (name: string) => string
  session: string
  calls: Map<string, { tool: string; args: RawRecord }>
  isSubagent: boolean
  model?: string
  /** The message to which pieces are being added, and the id that these pieces share. */
  openMessage?: { groupId: string; message: Message }
}

/** Types of updates without content. */
const IGNORED_UPDATES = [
  "available_commands_update",
  "background_tasks",
  "current_mode_update",
  "plan",
  "subagent_finished",
  "subagent_spawned",
]

/** Handles one update: a piece of a message, a call, or the result of one. */
function readUpdate(log: GrokLog, update: RawRecord, meta: RawRecord, line: RawRecord): void {
  const at = time(meta.agentTimestampMs) ?? time(line.timestamp)
  const piece = { log, meta, at }
  switch (update.sessionUpdate) {
    case "user_message_chunk": {
      log.model = string(record(update._meta)?.modelId) ?? log.model ?? ""
      addText(messageFor(piece, "user", `prompt ${number(record(update._meta)?.promptIndex) ?? ""}`), {
        type: "text",
        text: chunkText(update),
        origin: log.isSubagent ? "agent" : "person",
      })
      break
    }
    case "agent_thought_chunk":
      addText(answerFor(piece), { type: "thinking", text: chunkText(update), origin: "agent" })
      break
    case "agent_message_chunk":
      addText(answerFor(piece), { type: "text", text: chunkText(update), origin: "agent" })
      break
    case "tool_call": {
      const [tool, id] = [toolName(update), string(update.toolCallId)]
      if (id !== undefined) log.calls.set(id, { tool, args: record(update.rawInput) ?? {} })
      answerFor(piece).parts.push(toolCallPart(tool, update.rawInput, id))
      break
    }
    case "tool_call_update":
      if (update.status === "completed" || update.status === "failed") addResult(piece, update)
      break
    case "turn_completed":
      addUsageOfTurn(log, record(update.usage))
      break
    default:
      if (!IGNORED_UPDATES.includes(String(update.sessionUpdate)))
        log.unknown.add(string(update.sessionUpdate) ?? string(line.type) ?? "(no type)")
  }
}

type Piece = { log: GrokLog; meta: RawRecord; at?: number }

/** Returns the answer to which a piece belongs. All pieces of a stream form one answer. */
function answerFor(piece: Piece): Message {
  const message = messageFor(piece, "assistant", `stream ${String(piece.meta.streamStartMs)}`)
  if (piece.log.model) message.model = piece.log.model
  return message
}

function messageFor({ log, meta, at }: Piece, role: "user" | "assistant", groupId: string): Message {
  if (log.openMessage?.groupId === groupId) return log.openMessage.message
  const key = log.keyFor(string(meta.eventId) ?? `${log.session}:${role}`)
  const message: Message = { key, role, at, parts: [] }
  log.messages.push(message)
  log.openMessage = { groupId, message }
  return message
}

function addText(message: Message, part: Part): void {
  const lastPart = message.parts.at(-1)
  if (lastPart?.type === part.type) lastPart.text += part.text
  else message.parts.push(part)
}

function chunkText(update: RawRecord): string {
  return string(record(update.content)?.text) ?? ""
}

function toolName(update: RawRecord): string {
  return string(record(record(update._meta)?.["x.ai/tool"])?.name) ?? string(update.title) ?? "unknown"
}

function addResult({ log, meta, at }: Piece, update: RawRecord): void {
  const call_id = string(update.toolCallId)
  const call = log.calls.get(call_id ?? "")
  const raw = record(update.rawOutput) ?? {}
  const exit_status = number(raw.exit_code)
  const texts = records(update.content).flatMap(({ content }) => string(record(content)?.text) ?? [])
  const output = texts.join("\n") || string(raw.output_for_prompt) || string(raw.output) || ""
  const { part, effects } = resultOfCall({
    tool: call?.tool,
    call_id,
    output,
    failed: update.status === "failed",
    exit_status,
    action: call ? actionOf(call, records(update.content)) : {},
    isRemote: call !== undefined && (call.tool === "use_tool" || call.tool.includes("__")),
  })
  delete log.openMessage
  const key = log.keyFor(string(meta.eventId) ?? `${log.session}:tool`)
  const withEffects = effects.length > 0 && { effects }
  log.messages.push({ key, role: "tool", at, parts: [part], ...withEffects })
}

/**
 * Derives the action of a call. If the result shows the changed lines with their positions, these are used instead of the
 * call's arguments.
 */
function actionOf({ tool, args }: { tool: string; args: RawRecord }, content: RawRecord[]): CallAction {
  const shownHunks = content.filter(({ type }) => type === "diff").flatMap(hunksOfDiffContent)
  const requestedAction = actionByName(GROK_TOOLS, tool, args)
  return shownHunks.length > 0 ? { ...requestedAction, hunks: shownHunks } : requestedAction
}

function hunksOfDiffContent({ path: pathField, oldText, newText, _meta }: RawRecord): Hunk[] {
  const path = string(pathField)
  if (path === undefined) return []
  if (!string(oldText)) return typeof newText === "string" ? [hunkOfNewFile(path, newText)] : []
  const details = records(record(_meta)?.details)
  if (details.length === 0) return hunksOfReplacement(path, oldText, newText)
  return details.flatMap(({ old_string, new_string, old_line, new_line }) =>
    hunksOfReplacement(path, old_string, new_string).map((hunk) => ({
      ...hunk,
      old_start: number(old_line) ?? 0,
      new_start: number(new_line) ?? 0,
    })),
  )
}

/**
 * Adds a turn's total usage to the turn's last answer. The totals of a session include its subagents, so nothing is added to a
 * subagent's answers.
 */
function addUsageOfTurn({ messages, isSubagent }: GrokLog, counts: RawRecord | undefined): void {
  const lastAnswer = messages.findLast(({ role }) => role === "assistant")
  const usage = grokUsage(counts)
  if (lastAnswer && usage && !isSubagent && !lastAnswer.usage) lastAnswer.usage = usage
}

/** The input count includes the cached tokens. */
function grokUsage(counts: RawRecord | undefined): Usage | undefined {
  return usageFrom({
    prompt: counts?.inputTokens,
    output: counts?.outputTokens,
    cache_read: counts?.cachedReadTokens,
    cache_write: counts?.cacheCreationTokens,
    reasoning: counts?.reasoningTokens,
  })
}

const INJECTED_TAGS = ["user_info", "system-reminder", "project_layout", "git_status"]

/** Handles one line of the model's input, which has no time and no id. */
function readInputLine(log: GrokLog, line: RawRecord): void {
  const content = contentOf(log, line)
  if (content === "unknown") log.unknown.add(string(line.type) ?? "(no type)")
  else if (content && content.parts.length > 0)
    log.messages.push({ key: log.keyFor(`${log.session}:${content.role}`), ...content })
}

type Content = Omit<Message, "key">

function contentOf(log: GrokLog, line: RawRecord): Content | "unknown" | undefined {
  switch (line.type) {
    case "system":
      return undefined
    case "user":
      return { role: "user", parts: promptParts(log, line) }
    case "reasoning": {
      const text = records(line.summary).flatMap((piece) => string(piece.text) ?? [])
      return {
        role: "assistant",
        parts: text.length === 0 ? [] : [{ type: "thinking", text: text.join("\n\n"), origin: "agent" }],
      }
    }
    case "assistant":
      return answerOf(log, line)
    case "tool_result":
      return resultOf(log, line)
    case "backend_tool_call": {
      const kind = record(line.kind)
      return { role: "assistant", parts: [toolCallPart(string(kind?.tool_type), kind?.action, string(kind?.id))] }
    }
    default:
      return "unknown"
  }
}

function promptParts({ isSubagent }: GrokLog, line: RawRecord): Part[] {
  const pieces = typeof line.content === "string" ? [{ text: line.content }] : records(line.content)
  const isPrompt =
    line.prompt_index !== undefined || pieces.some((piece: RawRecord) => string(piece.text)?.includes("<user_query>"))
  const origin = !isPrompt ? "injected" : isSubagent ? "agent" : "person"
  return pieces.flatMap((piece: RawRecord): Part[] => {
    if (piece.image !== undefined || piece.type === "image") return [imagePart(piece.image, origin)]
    const text = string(piece.text)?.replace(/^\s*<user_query>\s*|\s*<\/user_query>\s*$/g, "")
    return text
      ? splitInjected(text, INJECTED_TAGS).map((run) => ({
          type: "text",
          text: run.text,
          origin: run.injected ? "injected" : origin,
        }))
      : []
  })
}

function answerOf(log: GrokLog, line: RawRecord): Content {
  const calls = records(line.tool_calls).map((call) => {
    const [id, tool] = [string(call.id), string(call.name)]
    const args = parseObject(string(call.arguments) ?? "")
    if (id !== undefined) log.calls.set(id, { tool: tool ?? "unknown", args: args ?? {} })
    return toolCallPart(tool, call.arguments, id)
  })
  const [text, model] = [string(line.content), string(line.model_id)]
  const textParts: Part[] = text === undefined ? [] : [{ type: "text", text, origin: "agent" }]
  return { role: "assistant", parts: [...textParts, ...calls], model }
}

function resultOf(log: GrokLog, line: RawRecord): Content {
  const call_id = string(line.tool_call_id)
  const call = log.calls.get(call_id ?? "")
  const { part, effects } = resultOfCall({
    tool: call?.tool,
    call_id,
    output: string(line.content) ?? "",
    failed: false,
    action: call ? actionByName(GROK_TOOLS, call.tool, call.args) : {},
  })
  return { role: "tool", parts: [part], effects: effects.length > 0 ? effects : undefined }
}
