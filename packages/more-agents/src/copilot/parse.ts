import {
  actionByName,
  type CallAction,
  resultOfCall,
  type ToolNames,
  toolCallPart,
} from "../../../../src/agents/kit/calls.ts"
import type { Parsed, UnitName } from "../../../../src/agents/kit/connector.ts"
import { fileEffect, hunksOfDiff } from "../../../../src/agents/kit/effects.ts"
import { conversationFrom, uniqueKeys, usageFrom } from "../../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../../src/core/by-name.ts"
import type { Conversation, Message, Part, Title } from "../../../../src/core/conversation.ts"
import { number, type RawRecord, record, records, string, time } from "../../../../src/core/record.ts"
import type { Usage } from "../../../../src/core/usage.ts"

const TOOLS: ToolNames = {
  command: ["bash", "shell", "powershell"],
  read: ["view"],
  write: ["create"],
  edit: ["edit", "str_replace", "str_replace_editor"],
  patch: ["apply_patch"],
}

type Call = { tool: string; args: RawRecord; isRemote: boolean }
type Session = { id: string; calls: Map<string, Call>; usages: Map<string, Usage>; rewoundEvents: Set<RawRecord> }
type Content = Pick<Message, "role" | "parts"> & Partial<Pick<Message, "effects" | "model" | "usage">>

/** Parses a session. The events of a subagent are in the same log as its parent's; each names the subagent. */
export function parseCopilot(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const events = [...raw]
  const startEvent = events.find(({ type }) => type === "session.start")
  const session: Session = {
    id: string(dataOf(startEvent).sessionId) ?? unit.key,
    calls: callsIn(events),
    usages: usagesIn(events),
    rewoundEvents: rewoundEventsIn(events),
  }
  const unknown = createCounts()
  const messages = new Map<string, Message[]>()
  const keys = uniqueKeys()
  for (const event of events) {
    const content = contentOf(event, session)
    if (content === "unknown") unknown.add(string(event.type) ?? "(no type)")
    else if (content && content.parts.length > 0) {
      const at = time(event.timestamp)
      const key = keys(string(event.id) ?? `${session.id}:${string(event.type)}`)
      const abandonedField = session.rewoundEvents.has(event) && { abandoned: true }
      const ownerMessages = messages.get(ownerOf(event)) ?? []
      messages.set(ownerOf(event), ownerMessages)
      ownerMessages.push({ key, at, ...content, ...abandonedField })
    }
  }
  if (session.usages.size === 0) addTotals(messages.get("") ?? [], events)
  const conversations = [...messages].map(([owner, ownerMessages]) =>
    owner === ""
      ? mainConversation(events, ownerMessages, session)
      : subagentConversation(events, owner, ownerMessages, session),
  )
  return { conversations, unknown: unknown.all() }
}

function dataOf(event: RawRecord | undefined): RawRecord {
  return record(event?.data) ?? {}
}

/**
 * Returns the id of the subagent to which an event belongs (in older versions, of the call that started it), or "" for the
 * session itself.
 */
function ownerOf(event: RawRecord): string {
  return string(event.agentId) ?? string(dataOf(event).parentToolCallId) ?? ""
}

function contentOf(event: RawRecord, session: Session): Content | "unknown" | undefined {
  const data = dataOf(event)
  switch (event.type) {
    case "user.message":
      return promptOf(event, data)
    case "assistant.message":
      return answerOf(data, session)
    case "assistant.reasoning":
      return { role: "assistant", parts: agentParts("thinking", data.content) }
    case "tool.execution_complete":
      return resultOf(data, session)
    case "session.compaction_complete":
      return { role: "system", parts: agentParts("summary", data.summaryContent) }
    case "session.error":
    case "session.warning":
      return { role: "system", parts: textParts(data.message, "local_tool") }
    case "skill.invoked":
    case "system.notification":
      return { role: "system", parts: textParts(data.content, "injected") }
    default:
      return IGNORED_EVENTS.has(String(event.type)) ? undefined : "unknown"
  }
}

/**
 * Parses a prompt. If its source is not the user, nobody typed it: a schedule, a command or a skill inserted it. A subagent's
 * prompt is from its parent.
 */
function promptOf(event: RawRecord, data: RawRecord): Content {
  const source = string(data.source) ?? "user"
  const isTyped = source === "user" && ownerOf(event) === ""
  const origin = isTyped ? "person" : ownerOf(event) === "" ? "injected" : "agent"
  const files = records(data.attachments).flatMap(({ path }) => string(path) ?? [])
  const effects = files.map((path) => fileEffect(path, "mentioned"))
  return { role: "user", parts: textParts(data.content, origin), effects: effects.length > 0 ? effects : undefined }
}

function textParts(text: unknown, origin: "person" | "agent" | "local_tool" | "injected"): Part[] {
  return typeof text === "string" && text !== "" ? [{ type: "text", text, origin }] : []
}

function agentParts(type: "text" | "thinking" | "summary", text: unknown): Part[] {
  return typeof text === "string" && text !== "" ? [{ type, text, origin: "agent" }] : []
}

function answerOf(data: RawRecord, { usages }: Session): Content {
  const calls = records(data.toolRequests).map((call) =>
    toolCallPart(string(call.name), call.arguments, string(call.toolCallId)),
  )
  const model = string(data.model)
  const usage = usages.get(string(data.apiCallId) ?? "")
  return {
    role: "assistant",
    parts: [...agentParts("thinking", data.reasoningText), ...agentParts("text", data.content), ...calls],
    model,
    usage,
  }
}

function resultOf(data: RawRecord, { calls }: Session): Content {
  const call_id = string(data.toolCallId)
  const call = calls.get(call_id ?? "")
  const result = record(data.result) ?? {}
  const problem = string(record(data.error)?.message)
  const output = [string(result.content), problem].filter((text) => text !== undefined).join("\n")
  const exit_status = number(record(data.shellExecution)?.exitCode) ?? exitCodeIn(output)
  const { part, effects } = resultOfCall({
    tool: call?.tool ?? string(data.toolName),
    call_id,
    output,
    failed: data.success === false,
    exit_status,
    action: call ? actionOf(call, result) : {},
    isRemote: call?.isRemote === true,
  })
  return { role: "tool", parts: [part], effects: effects.length > 0 ? effects : undefined }
}

/** Finds the exit code in the output of versions without a field for it. */
function exitCodeIn(output: string): number | undefined {
  const code = /<(?:shellId: \S{1,40} completed|exited) with exit code (\d{1,5})>\s*$/.exec(output)?.[1]
  return code === undefined ? undefined : Number(code)
}

/**
 * Derives the action of a call. If the result shows an edit as a diff, which has line numbers, the diff is used instead of the
 * replacement in the call.
 */
function actionOf({ tool, args }: Call, result: RawRecord): CallAction {
  const requestedAction = actionByName(toolsOf(args), tool, args)
  const [path, diff] = [string(args.path), string(result.detailedContent)]
  if (!requestedAction.hunks || path === undefined || diff === undefined) return requestedAction
  const shownHunks = hunksOfDiff(diff, path)
  return shownHunks.length > 0 ? { ...requestedAction, hunks: shownHunks } : requestedAction
}

/** Returns the names of the tools. Older versions had one tool for all file operations. */
function toolsOf(args: RawRecord): ToolNames {
  if (args.command === "create") return { write: ["str_replace_editor"] }
  return args.command === "view" ? { read: ["str_replace_editor"] } : TOOLS
}

function callsIn(events: RawRecord[]): Map<string, Call> {
  const calls = new Map<string, Call>()
  const add = (id: unknown, name: unknown, args: unknown, server: unknown) => {
    const input = record(args) ?? (typeof args === "string" ? { input: args } : {})
    if (string(id)) calls.set(string(id)!, { tool: string(name) ?? "unknown", args: input, isRemote: !!string(server) })
  }
  for (const event of events) {
    const data = dataOf(event)
    if (event.type === "tool.execution_start") add(data.toolCallId, data.toolName, data.arguments, data.mcpServerName)
    for (const call of records(data.toolRequests)) add(call.toolCallId, call.name, call.arguments, call.mcpServerName)
  }
  return calls
}

/**
 * Returns the events that the person discarded with a rewind: all from the event that the rewind names to the rewind itself.
 */
function rewoundEventsIn(events: RawRecord[]): Set<RawRecord> {
  const rewound = new Set<RawRecord>()
  for (const [index, event] of events.entries()) {
    if (event.type !== "session.snapshot_rewind") continue
    const from = events.findIndex(({ id }) => string(id) !== undefined && id === dataOf(event).upToEventId)
    if (from !== -1) for (const rewoundEvent of events.slice(from, index)) rewound.add(rewoundEvent)
  }
  return rewound
}

/** Maps the id of each model call to its usage. */
function usagesIn(events: RawRecord[]): Map<string, Usage> {
  const entries = events.flatMap((event) => {
    const counts = event.type === "session.usage_record" ? record(dataOf(event).usage) : undefined
    const usage = counts && copilotUsage(counts)
    return usage && string(counts.apiCallId) ? [[string(counts.apiCallId)!, usage] as const] : []
  })
  return new Map(entries)
}

function copilotUsage(counts: RawRecord): Usage | undefined {
  return usageFrom({
    prompt: counts.inputTokens,
    output: counts.outputTokens,
    cache_read: counts.cacheReadTokens,
    cache_write: counts.cacheWriteTokens,
    reasoning: counts.reasoningTokens,
  })
}

/** Adds usage to each model's last answer. Older versions record only totals, at the end of a session. */
function addTotals(messages: Message[], events: RawRecord[]): void {
  const end = events.findLast(({ type }) => type === "session.shutdown")
  for (const [model, metrics] of Object.entries(record(dataOf(end).modelMetrics) ?? {})) {
    const usage = copilotUsage(record(record(metrics)?.usage) ?? {})
    const answers = messages.filter(({ role }) => role === "assistant")
    const answer = answers.findLast((message) => message.model === model) ?? answers.at(-1)
    if (usage && answer && !answer.usage) Object.assign(answer, { model, usage })
  }
}

function mainConversation(events: RawRecord[], messages: Message[], { id }: Session): Conversation {
  const startData = dataOf(events.find(({ type }) => type === "session.start"))
  const contexts = events.map(contextOf).filter((context) => context !== undefined)
  const lastContext = contexts.at(-1) ?? {}
  const [host, repository] = [string(lastContext.repositoryHost), string(lastContext.repository)]
  return conversationFrom({
    id,
    title: titleOf(events, messages),
    cwds: contexts.map(({ cwd }) => cwd),
    git_branch: lastContext.branch,
    git_remote: host !== undefined && repository !== undefined ? `https://${host}/${repository}` : undefined,
    git_commit: lastContext.headCommit,
    agent_version: startData.copilotVersion,
    times: [startData.startTime],
    messages,
  })
}

/** Returns the folder and repository, which are recorded when a session starts, resumes or moves. */
function contextOf(event: RawRecord): RawRecord | undefined {
  return event.type === "session.context_changed" ? dataOf(event) : record(dataOf(event).context)
}

/** Returns the session's title. A session that nobody named has its first prompt as its name, which is not a title. */
function titleOf(events: RawRecord[], messages: Message[]): Title | undefined {
  const facts = events.findLast(({ type }) => type === "dex-session")
  const titleChange = dataOf(events.findLast(({ type }) => type === "session.title_changed"))
  const text = string(facts?.name) ?? string(titleChange.title)
  const firstPrompt = messages.find(({ role }) => role === "user")?.parts[0]?.text ?? ""
  if (text === undefined || (facts?.user_named !== true && firstPrompt.startsWith(text.slice(0, 40)))) return undefined
  return { text, from: facts?.user_named === true ? "person" : "agent" }
}

function subagentConversation(events: RawRecord[], owner: string, messages: Message[], session: Session): Conversation {
  const start = events.find((event) => event.type === "subagent.started" && ownerOf(event) === owner)
  const { cwds, agent_version } = mainConversation(events, [], session)
  return conversationFrom({
    id: string(start?.agentId) ?? `${session.id}-${owner}`,
    title: string(dataOf(start).agentDescription) ?? dataOf(start).agentDisplayName,
    cwds,
    agent_version,
    parent: session.id,
    call_id: string(dataOf(start).toolCallId) ?? (session.calls.has(owner) ? owner : undefined),
    messages,
  })
}

/** Types of events without content for a reader: states, measurements, lists of options, steps of one answer. */
export const IGNORED_EVENTS: ReadonlySet<string> = new Set([
  "dex-session",
  "abort",
  "assistant.idle",
  "assistant.intent",
  "assistant.turn_end",
  "assistant.turn_start",
  "assistant.usage",
  "hook.end",
  "hook.start",
  "permission.completed",
  "permission.requested",
  "session.auto_mode_resolved",
  "session.compaction_start",
  "session.context_changed",
  "session.custom_agents_updated",
  "session.extensions_loaded",
  "session.idle",
  "session.info",
  "session.mcp_server_status_changed",
  "session.mcp_servers_loaded",
  "session.mode_changed",
  "session.model_change",
  "session.permissions_changed",
  "session.plan_changed",
  "session.remote_steerable_changed",
  "session.resume",
  "session.shutdown",
  "session.skills_loaded",
  "session.snapshot_rewind",
  "session.start",
  "session.task_complete",
  "session.title_changed",
  "session.todos_changed",
  "session.tools_updated",
  "session.truncation",
  "session.usage_checkpoint",
  "session.usage_info",
  "session.usage_record",
  "session.workspace_file_changed",
  "subagent.completed",
  "subagent.configured",
  "subagent.deselected",
  "subagent.failed",
  "subagent.selected",
  "subagent.started",
  "system.message",
  "tool.execution_start",
])
