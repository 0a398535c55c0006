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
  splitAddedText,
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

/** Subtypes of records that Qwen Code inserted into the user's turn. */
const INJECTED_SUBTYPES = [
  "notification",
  "cron",
  "background_task_completed",
  "goal_runtime",
  "agent_bootstrap",
  "omni_recall",
]
const INJECTED_TAGS = ["system-reminder", "qwen:user-prompt-submit-context"]

/** Types of system records without content. */
const IGNORED_SUBTYPES = [
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
  const entries = [...raw]
  const id = idOf(entries, unit)
  const isSubagent = unit.key.split("/").length > 2
  const [calls, abandonedIds] = [callsIn(entries), abandonedIn(entries)]
  const unknown = createCounts()
  const messages: Message[] = []
  const uniqueKey = uniqueKeys()
  let pendingUsage: Usage | undefined
  for (const entry of entries) {
    const content = contentOf(entry, calls, isSubagent)
    if (typeof content === "object" && content.usage) {
      // A subagent's answer has its usage in a separate record, before its text.
      pendingUsage = addRequest(pendingUsage, content.usage)
      delete content.usage
    }
    if (content === "unknown") unknown.add([entry.type, entry.subtype].filter(Boolean).join("/") || "(no type)")
    else if (content && content.parts.length > 0) {
      const at = time(entry.timestamp)
      const key = uniqueKey(string(entry.uuid) ?? `${id}:${content.role}`)
      const usage = content.role === "assistant" && pendingUsage
      if (usage) pendingUsage = undefined
      const abandonedField = abandonedIds.has(string(entry.uuid) ?? "") && { abandoned: true }
      messages.push({ key, at, ...content, ...withoutUndefined({ usage: usage || undefined }), ...abandonedField })
    }
  }
  return parsedFrom(conversationFields(entries, id, messages, abandonedIds, isSubagent ? unit : undefined), unknown)
}

function idOf(entries: RawRecord[], unit: UnitName): string {
  const [folder, session, file] = unit.key.split("/")
  const fileId = (file ?? session ?? folder ?? unit.key).replace(/\.jsonl$/, "")
  return file === undefined ? (string(entries.find(({ sessionId }) => string(sessionId))?.sessionId) ?? fileId) : fileId
}

/**
 * Finds abandoned records. Every record names its predecessor, and the last message is the current position of the session, so
 * records that are not on the path to it are abandoned.
 */
function abandonedIn(entries: RawRecord[]): Set<string> {
  const parents = new Map(
    entries.flatMap((entry) => (string(entry.uuid) ? [[string(entry.uuid)!, entry.parentUuid]] : [])),
  )
  const lastMessage = entries.findLast(({ type, subtype, uuid }) => {
    const isMessage = type === "user" || type === "assistant" || type === "tool_result"
    return string(uuid) !== undefined && (isMessage || (type === "system" && subtype === "rewind"))
  })
  const activeUuids = new Set<unknown>()
  let currentUuid: unknown = lastMessage?.uuid
  while (parents.has(currentUuid as string) && !activeUuids.has(currentUuid)) {
    activeUuids.add(currentUuid)
    currentUuid = parents.get(currentUuid as string)
  }
  // If a record is missing, its predecessors are unknown, so nothing is marked as abandoned.
  if (currentUuid !== null && currentUuid !== undefined) return new Set()
  return new Set([...parents.keys()].filter((uuid) => !activeUuids.has(uuid)))
}

function callsIn(entries: RawRecord[]): Map<string, Call> {
  const calls = new Map<string, Call>()
  for (const { functionCall } of entries.flatMap(partsOf)) {
    const { id, name, args } = record(functionCall) ?? {}
    if (string(id)) calls.set(string(id)!, { tool: string(name) ?? "unknown", args: record(args) ?? {} })
  }
  return calls
}

function partsOf(entry: RawRecord): RawRecord[] {
  return records(record(entry.message)?.parts)
}

function contentOf(entry: RawRecord, calls: Map<string, Call>, isSubagent: boolean): Content | "unknown" | undefined {
  switch (entry.type) {
    case "user":
      return { role: "user", parts: partsOf(entry).flatMap((part) => promptParts(part, originOf(entry, isSubagent))) }
    case "assistant":
      return answerOf(entry)
    case "tool_result":
      return resultOf(entry, calls)
    case "system": {
      const subtype = String(entry.subtype)
      if (subtype === "chat_compression") return { role: "system", parts: summaryParts(record(entry.systemPayload)) }
      if (INJECTED_SUBTYPES.includes(subtype))
        return { role: "system", parts: partsOf(entry).flatMap((part) => promptParts(part, "injected")) }
      return IGNORED_SUBTYPES.includes(subtype) ? undefined : "unknown"
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

function answerOf(entry: RawRecord): Content {
  const parts = partsOf(entry).flatMap((part): Part[] => {
    const call = record(part.functionCall)
    if (call) return [toolCallPart(string(call.name), call.args, string(call.id))]
    const text = string(part.text)
    if (text === undefined) return part.image === undefined ? [] : [imagePart(part.image, "agent")]
    return [{ type: part.thought === true ? "thinking" : "text", text, origin: "agent" }]
  })
  const [model, usage] = [string(entry.model), qwenUsage(record(entry.usageMetadata))]
  return { role: "assistant", parts, model, usage }
}

/**
 * Parses token counts. The prompt's tokens include the cached ones. Some providers do not count thoughts as part of the answer,
 * so dex uses the total minus the prompt if that is larger.
 */
function qwenUsage(counts: RawRecord | undefined): Usage | undefined {
  const countOf = (field: string) => Math.max(0, number(counts?.[field]) ?? 0)
  const [prompt, cache_read, reasoning] = [
    countOf("promptTokenCount"),
    countOf("cachedContentTokenCount"),
    countOf("thoughtsTokenCount"),
  ]
  const output = Math.max(countOf("candidatesTokenCount"), countOf("totalTokenCount") - prompt)
  if (prompt + output === 0) return undefined
  const input = Math.max(0, prompt - cache_read)
  return { input, output, cache_read, cache_write: 0, reasoning: reasoning > 0 ? reasoning : undefined }
}

function resultOf(entry: RawRecord, calls: Map<string, Call>): Content {
  const outcome = record(entry.toolCallResult) ?? {}
  const responses = partsOf(entry)
    .map((part) => record(part.functionResponse))
    .filter((response) => response !== undefined)
  const results = responses.map((response) => {
    const call_id = string(response.id) ?? string(outcome.callId)
    const call = calls.get(call_id ?? "")
    const answer = record(response.response) ?? {}
    const { text, added } = splitAddedText(string(answer.output) ?? string(answer.error) ?? "")
    const output = text.replace(OUTPUT_LABEL, "$1\n")
    const display = record(outcome.resultDisplay) ?? {}
    const exit_status = number(display.exitCode) ?? exitCodeIn(output)
    const result = resultOfCall({
      tool: string(response.name) ?? call?.tool,
      call_id,
      output,
      failed: outcome.status === "error" || (answer.output === undefined && string(answer.error) !== undefined),
      exit_status: call && exit_status !== undefined ? exit_status : undefined,
      action: call ? actionOf(call, display) : {},
    })
    return { ...result, parts: [result.part, ...added] }
  })
  const images = partsOf(entry).flatMap((part) =>
    part.image === undefined ? [] : [imagePart(part.image, "local_tool")],
  )
  const effects = results.flatMap((result) => result.effects)
  return {
    role: "tool",
    parts: [...results.flatMap(({ parts }) => parts), ...images],
    effects: effects.length > 0 ? effects : undefined,
  }
}

/**
 * Matches the text before a command's output. The output is moved to a new line, because git's report of a commit is recognised
 * only at the beginning of a line.
 */
const OUTPUT_LABEL = /^(Command: [\s\S]*?\nOutput:) (?=\S)/

function exitCodeIn(output: string): number | undefined {
  const code = /^Exit Code: (\d{1,5})$/m.exec(output)?.[1]
  return code === undefined ? undefined : Number(code)
}

/**
 * Derives the action of a call. The displayed diff is preferred, because it has line numbers. If the diff was too long, Qwen Code
 * displayed a sentence instead.
 */
function actionOf({ tool, args }: Call, display: RawRecord): CallAction {
  const requestedAction = actionByName(TOOLS, tool, args)
  const [path, diff] = [string(args.file_path) ?? string(display.filePath), string(display.fileDiff)]
  if (!requestedAction.hunks || path === undefined || diff === undefined || display.fileDiffTruncated === true)
    return requestedAction
  const shownHunks: Hunk[] = hunksOfDiff(diff, path)
  return shownHunks.length > 0 ? { ...requestedAction, hunks: shownHunks } : requestedAction
}

/** Returns the summary with which the compressed history begins. */
function summaryParts(payload: RawRecord | undefined): Part[] {
  const [firstEntry] = records(payload?.compressedHistory)
  const text = records(firstEntry?.parts).flatMap((part) => string(part.text) ?? [])
  return text.length === 0 ? [] : [{ type: "summary", text: text.join("\n"), origin: "agent" }]
}

function conversationFields(
  entries: RawRecord[],
  id: string,
  messages: Message[],
  abandonedIds: Set<string>,
  subagent: UnitName | undefined,
): ConversationFields {
  const currentEntries = entries.filter(({ uuid }) => !abandonedIds.has(string(uuid) ?? ""))
  const lastValue = (field: string) => string(currentEntries.findLast((entry) => string(entry[field]))?.[field])
  const facts = entries.findLast(({ type }) => type === "dex-subagent")
  const parent = record(entries.find(({ subtype }) => subtype === "parent_session")?.systemPayload)
  return {
    id,
    kind: subagent ? "subagent" : "person",
    title: titleOf(currentEntries) ?? titleFromDescription(facts),
    cwds: entries.map(({ cwd }) => cwd),
    git_branch: lastValue("gitBranch"),
    agent_version: lastValue("version"),
    parent: subagent?.key.split("/")[1],
    call_id: facts?.call,
    fork_of: subagent ? undefined : parent?.parentSessionId,
    messages,
  }
}

/** Returns the session's title. Qwen Code records the title repeatedly, so the last record is used. */
function titleOf(currentEntries: RawRecord[]): Title | undefined {
  const payload = record(currentEntries.findLast(({ subtype }) => subtype === "custom_title")?.systemPayload)
  const text = string(payload?.customTitle)
  return text === undefined ? undefined : { text, from: payload?.titleSource === "auto" ? "agent" : "person" }
}

function titleFromDescription(facts: RawRecord | undefined): Title | undefined {
  const text = string(facts?.description)
  return text === undefined ? undefined : { text, from: "agent" }
}
