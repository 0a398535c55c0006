import { join } from "node:path"
import {
  actionByName,
  type CallAction,
  resultOfCall,
  type ToolNames,
  toolCallPart,
} from "../../../src/agents/kit/calls.ts"
import type { Connector, Parsed, Unit, UnitName, Unreadable } from "../../../src/agents/kit/connector.ts"
import { fileEffect, hunksOfDiff } from "../../../src/agents/kit/effects.ts"
import {
  entriesOf,
  fileAt,
  type Report,
  readLines,
  textAt,
  unitOfFile,
  unitWithFacts,
  withProblems,
} from "../../../src/agents/kit/files.ts"
import {
  conversationFrom,
  cutLongTexts,
  digestOf,
  splitAddedText,
  uniqueKeys,
  usageFrom,
} from "../../../src/agents/kit/messages.ts"
import {
  type Bin,
  HOOK_TIMEOUT_S,
  type HookEvent,
  hookCommands,
  hookStart,
  hookTimeout,
  NO_SUBAGENT,
  openSkill,
  ownFile,
  serverStart,
  type Wiring,
} from "../../../src/agents/kit/wiring.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Conversation, Message, Part, Title } from "../../../src/core/conversation.ts"
import { number, type RawRecord, record, records, string, time } from "../../../src/core/record.ts"
import type { Usage } from "../../../src/core/usage.ts"
import { copilotFolder, copilotRoots } from "./records.ts"

/**
 * Reads Copilot CLI's sessions, each of which is a log of events. Since version 1.0, the log is in a folder, together with a file
 * that contains the session's name.
 */
export const copilotConnector: Connector = {
  source: "copilot",
  version: 2,
  roots: copilotRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched: (root) => [{ folder: root, depth: 1, files: /^([^/]+\.jsonl|[^/]+\/(events\.jsonl|workspace\.yaml))$/ }],
  read: readLines(stripEvent),
  parse: parseCopilot,
  identify: ({ id, type }) => (type === "dex-session" ? "dex-session" : string(id)),
}

const MAX_WORKSPACE_BYTES = 1 << 20

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  const units = new Map<string, Unit>()
  for (const entry of entriesOf(root, report)) {
    const idInFileName = /^(.+)\.jsonl$/.exec(entry.name)?.[1]
    if (!entry.isDirectory() && idInFileName === undefined) continue
    const path = idInFileName === undefined ? join(root, entry.name, "events.jsonl") : join(root, entry.name)
    const stat = fileAt(path, report)
    if (!stat) continue
    const id = idInFileName ?? entry.name
    // If a session has both a file and a folder, a newer version wrote the folder, so the file is ignored.
    if (idInFileName === undefined || !units.has(id)) {
      const facts =
        idInFileName === undefined ? workspaceAt(join(root, entry.name, "workspace.yaml"), report) : undefined
      units.set(id, unitWithFacts(unitOfFile(path, id, stat), facts))
    }
  }
  yield* units.values()
}

/** Reads the session's name from lines such as `name: value`. All other facts in that file are also in the events. */
function workspaceAt(path: string, report: Report): RawRecord | undefined {
  const text = textAt(path, MAX_WORKSPACE_BYTES, report) ?? ""
  const field = (key: string) => new RegExp(`^${key}: *(.*)$`, "m").exec(text)?.[1]?.trim()
  const name = field("name")?.replace(/^(["'])(.*)\1$/, "$2")
  return name ? { type: "dex-session", name, user_named: field("user_named") === "true" ? true : undefined } : undefined
}

/**
 * Removes measurements and data that only Copilot can read. Replaces Copilot's instructions, which are the same in every
 * session, with their digest.
 */
function stripEvent(event: RawRecord): RawRecord {
  const data = record(event.data)
  if (!data) return cutLongTexts(event)
  const { encryptedContent: _, reasoningOpaque: __, toolTelemetry: ___, transformedContent: ____, ...rest } = data
  if (event.type === "system.message" && typeof rest.content === "string")
    return { ...event, data: { ...rest, content: digestOf(Buffer.from(rest.content)) } }
  return cutLongTexts({ ...event, data: rest })
}

export const COPILOT_HOOKS: readonly HookEvent[] = [
  { event: "SessionStart" },
  { event: "UserPromptSubmit" },
  { event: "PreToolUse", tools: "Read|Edit|Write" },
  { event: "PostToolUse", tools: "Bash" },
]

export const copilotWiring: Wiring = {
  signs: (machine) => ({ paths: [copilotFolder(machine)], program: "copilot" }),
  files: (machine, bin) => [
    {
      path: join(copilotFolder(machine), "mcp-config.json"),
      additions: [
        {
          type: "property",
          path: ["mcpServers", "dex"],
          value: { type: "local", ...serverStart(bin), tools: ["*"] },
        },
      ],
    },
    ownFile(join(copilotFolder(machine), "hooks", "dex.json"), { version: 1, hooks: copilotHooks(bin) }),
    openSkill(machine),
  ],
  note: () => NO_SUBAGENT,
}

/** Copilot CLI has a field for each of the two shells. */
function copilotHooks(bin: Bin): Record<string, object[]> {
  const shell = bin.windows === undefined ? "bash" : "powershell"
  const sync =
    bin.sync === undefined ? [] : [{ type: "command", [shell]: hookStart(bin.sync, [], bin, "powershell").command }]
  const hooks: Record<string, object[]> = { SessionStart: sync, SessionEnd: sync }
  for (const { event, tools, start } of hookCommands("copilot", COPILOT_HOOKS, bin, "powershell")) {
    const timeoutSec = hookTimeout(HOOK_TIMEOUT_S, bin, "powershell")
    hooks[event] = [...(hooks[event] ?? []), { type: "command", matcher: tools, [shell]: start.command, timeoutSec }]
  }
  return hooks
}

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

/** Parses a session. A subagent's events are in the same log as its parent's events, and each event names its subagent. */
function parseCopilot(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
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
  const uniqueKey = uniqueKeys()
  for (const event of events) {
    const content = contentOf(event, session)
    if (content === "unknown") unknown.add(string(event.type) ?? "(no type)")
    else if (content && content.parts.length > 0) {
      const at = time(event.timestamp)
      const key = uniqueKey(string(event.id) ?? `${session.id}:${string(event.type)}`)
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
  const { text, added } = splitAddedText(
    [string(result.content), problem].filter((one) => one !== undefined).join("\n"),
  )
  const output = added.length > 0 ? text.replace(HOOK_LINE, "") : text
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
  return { role: "tool", parts: [part, ...added], effects: effects.length > 0 ? effects : undefined }
}

/** The line that Copilot CLI writes between an output and what hooks add to it. */
const HOOK_LINE = /\n*Tool "[^"\n]{1,100}" \w{1,20}\. Additional guidance from \w{1,40} hooks:\s*$/

/** Finds the exit code in the output of versions without a field for it. */
function exitCodeIn(output: string): number | undefined {
  const code = /<(?:shellId: \S{1,40} completed|exited) with exit code (\d{1,5})>\s*$/.exec(output)?.[1]
  return code === undefined ? undefined : Number(code)
}

/**
 * Derives the action of a call. If the result of an edit contains a diff, the diff is used instead of the replacement in the
 * call, because the diff has line numbers.
 */
function actionOf({ tool, args }: Call, result: RawRecord): CallAction {
  const requestedAction = actionByName(toolsOf(args), tool, args)
  const [path, diff] = [string(args.path), string(result.detailedContent)]
  if (!requestedAction.hunks || path === undefined || diff === undefined) return requestedAction
  const shownHunks = hunksOfDiff(diff, path)
  return shownHunks.length > 0 ? { ...requestedAction, hunks: shownHunks } : requestedAction
}

/** Returns the names of tools by what they do. In older versions, `command` selects the action of `str_replace_editor`. */
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
 * Returns the events that the person discarded by rewinding: those from the event that the rewind names up to the rewind itself.
 */
function rewoundEventsIn(events: RawRecord[]): Set<RawRecord> {
  const rewound = new Set<RawRecord>()
  for (const [index, event] of events.entries()) {
    if (event.type !== "session.snapshot_rewind") continue
    const rewindStart = events.findIndex(({ id }) => string(id) !== undefined && id === dataOf(event).upToEventId)
    if (rewindStart !== -1) for (const rewoundEvent of events.slice(rewindStart, index)) rewound.add(rewoundEvent)
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

/** Adds each model's total usage to its last answer. Older versions record only totals, at the end of a session. */
function addTotals(messages: Message[], events: RawRecord[]): void {
  const shutdown = events.findLast(({ type }) => type === "session.shutdown")
  for (const [model, metrics] of Object.entries(record(dataOf(shutdown).modelMetrics) ?? {})) {
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

/** Returns the folder and repository in an event. Copilot records them when a session starts, resumes or moves. */
function contextOf(event: RawRecord): RawRecord | undefined {
  return event.type === "session.context_changed" ? dataOf(event) : record(dataOf(event).context)
}

/** Returns the session's title. If nobody named the session, Copilot uses the first prompt as its name, which is not a title. */
function titleOf(events: RawRecord[], messages: Message[]): Title | undefined {
  const facts = events.findLast(({ type }) => type === "dex-session")
  const titleChange = dataOf(events.findLast(({ type }) => type === "session.title_changed"))
  const text = string(facts?.name) ?? string(titleChange.title)
  const firstPrompt = messages.find(({ role }) => role === "user")?.parts[0]?.text ?? ""
  if (text === undefined || (facts?.user_named !== true && firstPrompt.startsWith(text.slice(0, 40)))) return undefined
  return { text, from: facts?.user_named === true ? "person" : "agent" }
}

function subagentConversation(events: RawRecord[], owner: string, messages: Message[], session: Session): Conversation {
  const startEvent = events.find((event) => event.type === "subagent.started" && ownerOf(event) === owner)
  const { cwds, agent_version } = mainConversation(events, [], session)
  return conversationFrom({
    id: string(startEvent?.agentId) ?? `${session.id}-${owner}`,
    title: string(dataOf(startEvent).agentDescription) ?? dataOf(startEvent).agentDisplayName,
    cwds,
    agent_version,
    parent: session.id,
    call_id: string(dataOf(startEvent).toolCallId) ?? (session.calls.has(owner) ? owner : undefined),
    messages,
  })
}

/** Types of events that contain nothing to read: states, telemetry, lists of options, and the steps of one answer. */
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
