import {
  actionByName,
  type CallAction,
  resultOfCall,
  type ToolNames,
  toolCallPart,
} from "../../../../src/agents/kit/calls.ts"
import type { Parsed, UnitName } from "../../../../src/agents/kit/connector.ts"
import { hunksOfDiff } from "../../../../src/agents/kit/effects.ts"
import {
  type ConversationFields,
  imagePart,
  parsedFrom,
  splitInjected,
  uniqueKeys,
} from "../../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../../src/core/by-name.ts"
import type { Hunk, Message, Origin, Part, Title } from "../../../../src/core/conversation.ts"
import { withoutUndefined } from "../../../../src/core/defined.ts"
import { number, type RawRecord, record, records, string, time } from "../../../../src/core/record.ts"
import { addRequest, type Usage } from "../../../../src/core/usage.ts"

const TOOLS: ToolNames = {
  command: ["run_shell_command"],
  read: ["read_file"],
  write: ["write_file"],
  edit: ["edit", "replace"],
}

/** Subtypes of records in the user's turn that nobody typed. */
const INJECTED_SUBTYPES = [
  "notification",
  "cron",
  "background_task_completed",
  "goal_runtime",
  "agent_bootstrap",
  "omni_recall",
]
const INJECTED_TAGS = ["system-reminder"]

/** Types of system records without content. */
const QUIET = [
  "agent_retry",
  "agent_session_ready",
  "at_command",
  "attribution_snapshot",
  "branch_checkpoint",
  "custom_title",
  "file_history_snapshot",
  "goal_state",
  "goal_turn_end",
  "parent_session",
  "rewind",
  "session_approval_mode",
  "session_artifact_event",
  "session_artifact_snapshot",
  "session_execution_engine",
  "session_model",
  "session_notes",
  "session_source",
  "session_sources_snapshot",
  "slash_command",
  "turn_result",
  "ui_telemetry",
  "user_text_elements",
]

type Call = { tool: string; args: RawRecord }
type Content = Pick<Message, "role" | "parts"> & Partial<Pick<Message, "effects" | "model" | "usage">>

export function parseQwenCode(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const all = [...raw]
  const id = idOf(all, unit)
  const isSubagent = unit.key.split("/").length > 2
  const [calls, abandonedIds] = [callsIn(all), abandonedIn(all)]
  const unknown = createCounts()
  const messages: Message[] = []
  const keys = uniqueKeys()
  let pendingUsage: Usage | undefined
  for (const one of all) {
    const content = contentOf(one, calls, isSubagent)
    if (typeof content === "object" && content.usage) {
      // A subagent's answer has its usage in a separate record, before its text.
      pendingUsage = addRequest(pendingUsage, content.usage)
      delete content.usage
    }
    if (content === "unknown") unknown.add([one.type, one.subtype].filter(Boolean).join("/") || "(no type)")
    else if (content && content.parts.length > 0) {
      const at = time(one.timestamp)
      const key = keys(string(one.uuid) ?? `${id}:${content.role}`)
      const usage = content.role === "assistant" && pendingUsage
      if (usage) pendingUsage = undefined
      const abandoned = abandonedIds.has(string(one.uuid) ?? "") && { abandoned: true }
      messages.push({ key, at, ...content, ...withoutUndefined({ usage: usage || undefined }), ...abandoned })
    }
  }
  return parsedFrom(conversationFields(all, id, messages, abandonedIds, isSubagent ? unit : undefined), unknown)
}

function idOf(all: RawRecord[], unit: UnitName): string {
  const [folder, session, file] = unit.key.split("/")
  const named = (file ?? session ?? folder ?? unit.key).replace(/\.jsonl$/, "")
  return file === undefined ? (string(all.find(({ sessionId }) => string(sessionId))?.sessionId) ?? named) : named
}

/** Finds abandoned records. Every record names its predecessor, and the last message is the current position of the session. */
function abandonedIn(all: RawRecord[]): Set<string> {
  const parents = new Map(all.flatMap((one) => (string(one.uuid) ? [[string(one.uuid)!, one.parentUuid]] : [])))
  const last = all.findLast(({ type, subtype, uuid }) => {
    const isMessage = type === "user" || type === "assistant" || type === "tool_result"
    return string(uuid) !== undefined && (isMessage || (type === "system" && subtype === "rewind"))
  })
  const current = new Set<unknown>()
  let at: unknown = last?.uuid
  while (parents.has(at as string) && !current.has(at)) {
    current.add(at)
    at = parents.get(at as string)
  }
  // A missing record hides everything before it, so nothing is marked as abandoned.
  if (at !== null && at !== undefined) return new Set()
  return new Set([...parents.keys()].filter((uuid) => !current.has(uuid)))
}

function callsIn(all: RawRecord[]): Map<string, Call> {
  const calls = new Map<string, Call>()
  for (const { functionCall } of all.flatMap(partsOf)) {
    const { id, name, args } = record(functionCall) ?? {}
    if (string(id)) calls.set(string(id)!, { tool: string(name) ?? "unknown", args: record(args) ?? {} })
  }
  return calls
}

function partsOf(one: RawRecord): RawRecord[] {
  return records(record(one.message)?.parts)
}

function contentOf(one: RawRecord, calls: Map<string, Call>, isSubagent: boolean): Content | "unknown" | undefined {
  switch (one.type) {
    case "user":
      return { role: "user", parts: partsOf(one).flatMap((part) => promptParts(part, originOf(one, isSubagent))) }
    case "assistant":
      return answerOf(one)
    case "tool_result":
      return resultOf(one, calls)
    case "system": {
      const subtype = String(one.subtype)
      if (subtype === "chat_compression") return { role: "system", parts: summaryParts(record(one.systemPayload)) }
      if (INJECTED_SUBTYPES.includes(subtype))
        return { role: "system", parts: partsOf(one).flatMap((part) => promptParts(part, "injected")) }
      return QUIET.includes(subtype) ? undefined : "unknown"
    }
    case "dex-subagent":
      return undefined
    default:
      return "unknown"
  }
}

function originOf({ subtype, provenance }: RawRecord, isSubagent: boolean): Origin {
  if (isSubagent || subtype === "agent_launch_prompt") return "agent"
  const isTyped = provenance === undefined || provenance === "real_user"
  return INJECTED_SUBTYPES.includes(String(subtype)) || !isTyped ? "injected" : "person"
}

function promptParts(part: RawRecord, origin: Origin): Part[] {
  if (part.image !== undefined) return [imagePart(part.image, origin)]
  const text = string(part.text)
  if (text === undefined) return []
  return splitInjected(text, INJECTED_TAGS).map((run) => ({
    type: "text",
    text: run.text,
    origin: run.injected ? "injected" : origin,
  }))
}

function answerOf(one: RawRecord): Content {
  const parts = partsOf(one).flatMap((part): Part[] => {
    const call = record(part.functionCall)
    if (call) return [toolCallPart(string(call.name), call.args, string(call.id))]
    const text = string(part.text)
    if (text === undefined) return part.image === undefined ? [] : [imagePart(part.image, "agent")]
    return [{ type: part.thought === true ? "thinking" : "text", text, origin: "agent" }]
  })
  const [model, usage] = [string(one.model), qwenUsage(record(one.usageMetadata))]
  return { role: "assistant", parts, model, usage }
}

/** The prompt's tokens include the cached ones, and the answer's include the thoughts, which not every provider adds. */
function qwenUsage(counted: RawRecord | undefined): Usage | undefined {
  const of = (field: string) => Math.max(0, number(counted?.[field]) ?? 0)
  const [prompt, cache_read, reasoning] = [
    of("promptTokenCount"),
    of("cachedContentTokenCount"),
    of("thoughtsTokenCount"),
  ]
  const output = Math.max(of("candidatesTokenCount"), of("totalTokenCount") - prompt)
  if (prompt + output === 0) return undefined
  const input = Math.max(0, prompt - cache_read)
  return { input, output, cache_read, cache_write: 0, reasoning: reasoning > 0 ? reasoning : undefined }
}

function resultOf(one: RawRecord, calls: Map<string, Call>): Content {
  const outcome = record(one.toolCallResult) ?? {}
  const responses = partsOf(one)
    .map((part) => record(part.functionResponse))
    .filter((response) => response !== undefined)
  const finished = responses.map((response) => {
    const call_id = string(response.id) ?? string(outcome.callId)
    const call = calls.get(call_id ?? "")
    const given = record(response.response) ?? {}
    const output = (string(given.output) ?? string(given.error) ?? "").replace(PRINTED, "$1\n")
    const display = record(outcome.resultDisplay) ?? {}
    const exit_status = number(display.exitCode) ?? exitIn(output)
    return resultOfCall({
      tool: string(response.name) ?? call?.tool,
      call_id,
      output,
      failed: outcome.status === "error" || (given.output === undefined && string(given.error) !== undefined),
      exit_status: call && exit_status !== undefined ? exit_status : undefined,
      action: call ? actionOf(call, display) : {},
    })
  })
  const images = partsOf(one).flatMap((part) => (part.image === undefined ? [] : [imagePart(part.image, "local_tool")]))
  const effects = finished.flatMap((one) => one.effects)
  return {
    role: "tool",
    parts: [...finished.map(({ part }) => part), ...images],
    effects: effects.length > 0 ? effects : undefined,
  }
}

/** The output of a command, which is put on its own line, so that git's report of a commit is found. */
const PRINTED = /^(Command: [\s\S]*?\nOutput:) (?=\S)/

function exitIn(output: string): number | undefined {
  const code = /^Exit Code: (\d{1,5})$/m.exec(output)?.[1]
  return code === undefined ? undefined : Number(code)
}

/** Derives the action of a call. The displayed diff has line numbers. A diff that was too long was replaced by a sentence. */
function actionOf({ tool, args }: Call, display: RawRecord): CallAction {
  const requested = actionByName(TOOLS, tool, args)
  const [path, diff] = [string(args.file_path) ?? string(display.filePath), string(display.fileDiff)]
  if (!requested.hunks || path === undefined || diff === undefined || display.fileDiffTruncated === true)
    return requested
  const shown: Hunk[] = hunksOfDiff(diff, path)
  return shown.length > 0 ? { ...requested, hunks: shown } : requested
}

/** Returns the summary with which the compressed history begins. */
function summaryParts(payload: RawRecord | undefined): Part[] {
  const [first] = records(payload?.compressedHistory)
  const text = records(first?.parts).flatMap((part) => string(part.text) ?? [])
  return text.length === 0 ? [] : [{ type: "summary", text: text.join("\n"), origin: "agent" }]
}

function conversationFields(
  all: RawRecord[],
  id: string,
  messages: Message[],
  abandonedIds: Set<string>,
  subagent: UnitName | undefined,
): ConversationFields {
  const current = all.filter(({ uuid }) => !abandonedIds.has(string(uuid) ?? ""))
  const last = (field: string) => string(current.findLast((one) => string(one[field]))?.[field])
  const facts = all.findLast(({ type }) => type === "dex-subagent")
  const parent = record(all.find(({ subtype }) => subtype === "parent_session")?.systemPayload)
  return {
    id,
    kind: subagent ? "subagent" : "person",
    title: titleOf(current) ?? describedBy(facts),
    cwds: all.map(({ cwd }) => cwd),
    git_branch: last("gitBranch"),
    agent_version: last("version"),
    parent: subagent?.key.split("/")[1],
    call_id: facts?.call,
    fork_of: subagent ? undefined : parent?.parentSessionId,
    messages,
  }
}

/** Returns the last title, because it is written repeatedly. */
function titleOf(current: RawRecord[]): Title | undefined {
  const payload = record(current.findLast(({ subtype }) => subtype === "custom_title")?.systemPayload)
  const text = string(payload?.customTitle)
  return text === undefined ? undefined : { text, from: payload?.titleSource === "auto" ? "agent" : "person" }
}

function describedBy(facts: RawRecord | undefined): Title | undefined {
  const text = string(facts?.description)
  return text === undefined ? undefined : { text, from: "agent" }
}
