import { join } from "node:path"
import {
  actionByName,
  type CallAction,
  resultOfCall,
  type ToolNames,
  toolCallPart,
} from "../../../src/agents/kit/calls.ts"
import type { Connector, Machine, Parsed, Unit, UnitName, Unreadable } from "../../../src/agents/kit/connector.ts"
import { hunkOfNewFile, hunksOfReplacement } from "../../../src/agents/kit/effects.ts"
import {
  objectAt,
  type Report,
  readLines,
  subfolders,
  unitAt,
  unitWithFacts,
  withProblems,
} from "../../../src/agents/kit/files.ts"
import {
  type ConversationFields,
  cutLongTexts,
  digestOfDataUri,
  imagePart,
  parsedFrom,
  splitInjected,
  uniqueKeys,
  usageFrom,
} from "../../../src/agents/kit/messages.ts"
import {
  HOOK_TIMEOUT_S,
  type HookEvent,
  type JsonAddition,
  NO_SUBAGENT,
  openSkill,
  ownFile,
  proactiveHooks,
  serverStart,
  syncHook,
  type Wiring,
} from "../../../src/agents/kit/wiring.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Hunk, Message, Part, Title } from "../../../src/core/conversation.ts"
import { number, parseObject, type RawRecord, record, records, string, time } from "../../../src/core/record.ts"
import type { Usage } from "../../../src/core/usage.ts"
import { grokRoots } from "./records.ts"

/**
 * Reads Grok's sessions: a folder per session, inside a folder per working directory. `updates.jsonl` records step by step what
 * Grok showed.
 */
export const grokConnector: Connector = {
  source: "grok",
  version: 1,
  roots: grokRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched: (root) => [
    { folder: root, depth: 4, files: /\/(updates\.jsonl|chat_history\.jsonl|summary\.json|meta\.json)$/ },
  ],
  read: readLines(stripLine),
  parse: parseGrok,
  // There is no `identify`: the lines of the model's input have no ids, so records are compared by content.
}

/**
 * The log files that a session may have, in order of preference. Older versions wrote only `chat_history.jsonl`, which contains
 * the model's input.
 */
const LOGS = ["updates.jsonl", "chat_history.jsonl"]
const MAX_FACTS_BYTES = 4 << 20

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  const subagentMeta = new Map<string, RawRecord>()
  const sessions: { unit: Unit; id: string; summary: RawRecord | undefined }[] = []
  for (const project of subfolders(root, report))
    for (const id of subfolders(join(root, project), report)) {
      const folder = join(root, project, id)
      for (const child of subfolders(join(folder, "subagents"), report))
        subagentMeta.set(child, objectAt(join(folder, "subagents", child, "meta.json"), MAX_FACTS_BYTES, report) ?? {})
      const unit = logIn(folder, id, report)
      if (unit) sessions.push({ unit, id, summary: objectAt(join(folder, "summary.json"), MAX_FACTS_BYTES, report) })
    }
  for (const { unit, id, summary } of sessions) yield unitWithFacts(unit, factsOf(summary ?? {}, subagentMeta.get(id)))
}

function logIn(folder: string, id: string, report: Report): Unit | undefined {
  for (const name of LOGS) {
    const unit = unitAt(join(folder, name), id, report)
    if (unit) return unit
  }
  return undefined
}

/**
 * Returns only the facts that rarely change. Grok rewrites the summary at every turn, and the log is read again whenever one of
 * these facts changes.
 */
function factsOf(summary: RawRecord, subagentMeta: RawRecord | undefined): RawRecord {
  const facts = {
    cwd: string(record(summary.info)?.cwd),
    title: string(summary.generated_title) ?? string(summary.session_summary),
    kind: string(summary.session_kind),
    branch: string(summary.head_branch),
    commit: string(summary.head_commit),
    remote: Array.isArray(summary.git_remotes) ? string(summary.git_remotes[0]) : undefined,
    parent: string(subagentMeta?.parent_session_id),
    description: string(subagentMeta?.description),
  }
  return {
    type: "dex-session",
    ...Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)),
  }
}

/** Removes redundant data: outputs in the form of lists of bytes, encrypted thoughts, and Grok's own instructions. */
function stripLine(line: RawRecord): RawRecord {
  const params = record(line.params)
  const update = record(params?.update)
  if (!params || !update) return stripInputLine(line)
  const { eventId, streamStartMs, agentTimestampMs } = record(params._meta) ?? {}
  const raw = record(update.rawOutput)
  const isFinal = update.sessionUpdate !== "tool_call_update" || string(update.status) !== undefined
  const storedUpdate = isFinal ? update : { sessionUpdate: update.sessionUpdate, toolCallId: update.toolCallId }
  return cutLongTexts({
    method: line.method,
    timestamp: line.timestamp,
    params: {
      sessionId: params.sessionId,
      update: raw ? { ...storedUpdate, rawOutput: stripOutput(raw) } : storedUpdate,
      _meta: { eventId, streamStartMs, agentTimestampMs },
    },
  })
}

function stripOutput({ output, EditsApplied, ...raw }: RawRecord): RawRecord {
  const text = string(output) ?? string(record(EditsApplied)?.tool_output_for_prompt)
  return text === undefined ? raw : { ...raw, output: text }
}

function stripInputLine(line: RawRecord): RawRecord {
  const { encrypted_content: _, ...rest } = line
  if (line.type === "system") return { type: "system" }
  if (!Array.isArray(rest.content)) return cutLongTexts(rest)
  const content = records(rest.content).map((part) => {
    const image = typeof part.url === "string" ? digestOfDataUri(part.url) : undefined
    return image ? { type: "image", image } : part
  })
  return cutLongTexts({ ...rest, content })
}

/** Grok ignores what hooks say at the start of a session and at a prompt. */
export const GROK_HOOKS: readonly HookEvent[] = [
  { event: "SessionStart", later: true },
  { event: "UserPromptSubmit", later: true },
  { event: "PreToolUse", tools: "read_file|search_replace|run_terminal_command" },
  { event: "PostToolUse", tools: "run_terminal_command" },
]

export const grokWiring: Wiring = {
  signs: (machine) => ({ paths: [grokFolder(machine)], program: "grok" }),
  files: (machine, bin) => [
    {
      path: join(grokFolder(machine), "config.toml"),
      additions: [{ type: "table", path: ["mcp_servers", "dex"], values: { ...serverStart(bin) } }],
    },
    ownFile(join(grokFolder(machine), "hooks", "dex.json"), {
      hooks: hooksIn([
        ...["SessionStart", "SessionEnd"].flatMap((event) => syncHook(event, bin, "any shell")),
        ...proactiveHooks("grok", GROK_HOOKS, HOOK_TIMEOUT_S, bin, "any shell"),
      ]),
    }),
    openSkill(machine),
  ],
  note: () => NO_SUBAGENT,
}

function grokFolder({ home, env }: Machine): string {
  return env.GROK_HOME || join(home, ".grok")
}

/** The hooks of each event. */
function hooksIn(additions: JsonAddition[]): Record<string, unknown[]> {
  const hooks: Record<string, unknown[]> = {}
  for (const { path, value } of additions) {
    const event = path.at(-1)!
    hooks[event] = [...(hooks[event] ?? []), value]
  }
  return hooks
}

function parseGrok(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const lines = [...raw]
  const facts = lines.findLast(({ type }) => type === "dex-session") ?? {}
  const log: GrokLog = {
    messages: [],
    unknown: createCounts(),
    keyFor: uniqueKeys(),
    sessionId: unit.key,
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
  sessionId: string
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

/** Handles one update: a piece of a message, a call, a result, or the usage of a turn. */
function readUpdate(log: GrokLog, update: RawRecord, meta: RawRecord, line: RawRecord): void {
  const at = time(meta.agentTimestampMs) ?? time(line.timestamp)
  const context = { log, meta, at }
  switch (update.sessionUpdate) {
    case "user_message_chunk": {
      log.model = string(record(update._meta)?.modelId) ?? log.model ?? ""
      addText(messageFor(context, "user", `prompt ${number(record(update._meta)?.promptIndex) ?? ""}`), {
        type: "text",
        text: chunkText(update),
        origin: log.isSubagent ? "agent" : "person",
      })
      break
    }
    case "agent_thought_chunk":
      addText(answerFor(context), { type: "thinking", text: chunkText(update), origin: "agent" })
      break
    case "agent_message_chunk":
      addText(answerFor(context), { type: "text", text: chunkText(update), origin: "agent" })
      break
    case "tool_call": {
      const [tool, id] = [toolName(update), string(update.toolCallId)]
      if (id !== undefined) log.calls.set(id, { tool, args: record(update.rawInput) ?? {} })
      answerFor(context).parts.push(toolCallPart(tool, update.rawInput, id))
      break
    }
    case "tool_call_update":
      if (update.status === "completed" || update.status === "failed") addResult(context, update)
      break
    case "turn_completed":
      addUsageOfTurn(log, record(update.usage))
      break
    default:
      if (!IGNORED_UPDATES.includes(String(update.sessionUpdate)))
        log.unknown.add(string(update.sessionUpdate) ?? string(line.type) ?? "(no type)")
  }
}

type PieceContext = { log: GrokLog; meta: RawRecord; at?: number }

/** Returns the answer to which a piece belongs. All pieces of a stream form one answer. */
function answerFor(context: PieceContext): Message {
  const message = messageFor(context, "assistant", `stream ${String(context.meta.streamStartMs)}`)
  if (context.log.model) message.model = context.log.model
  return message
}

function messageFor({ log, meta, at }: PieceContext, role: "user" | "assistant", groupId: string): Message {
  if (log.openMessage?.groupId === groupId) return log.openMessage.message
  const key = log.keyFor(string(meta.eventId) ?? `${log.sessionId}:${role}`)
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

function addResult({ log, meta, at }: PieceContext, update: RawRecord): void {
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
  const key = log.keyFor(string(meta.eventId) ?? `${log.sessionId}:tool`)
  const effectsField = effects.length > 0 && { effects }
  log.messages.push({ key, role: "tool", at, parts: [part], ...effectsField })
}

/**
 * Derives the action of a call. If the result shows the changed lines, these are used instead of the call's arguments, because
 * they may include line numbers.
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
 * Adds a turn's total usage to the turn's last answer. A session's totals include the usage of its subagents, so nothing is added
 * to a subagent's answers.
 */
function addUsageOfTurn({ messages, isSubagent }: GrokLog, counts: RawRecord | undefined): void {
  const lastAnswer = messages.findLast(({ role }) => role === "assistant")
  const usage = grokUsage(counts)
  if (lastAnswer && usage && !isSubagent && !lastAnswer.usage) lastAnswer.usage = usage
}

/** Parses token counts. The input count includes the cached tokens. */
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
    log.messages.push({ key: log.keyFor(`${log.sessionId}:${content.role}`), ...content })
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
