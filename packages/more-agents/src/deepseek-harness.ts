import { join } from "node:path"
import {
  actionByName,
  type CallAction,
  resultOfCall,
  type ToolNames,
  toolCallPart,
} from "../../../src/agents/kit/calls.ts"
import type { Connector, Parsed, Unit, UnitName } from "../../../src/agents/kit/connector.ts"
import { entriesOf, type Report, readLines, subfolders, unitAt, withProblems } from "../../../src/agents/kit/files.ts"
import { hunksBetween } from "../../../src/agents/kit/hunks-between.ts"
import { cutLongTexts, imagePart, parsedFrom, uniqueKeys, usageFrom } from "../../../src/agents/kit/messages.ts"
import { readZstdLines } from "../../../src/agents/kit/zstd.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Effect, Message, Origin, Part } from "../../../src/core/conversation.ts"
import { parseObject, type RawRecord, record, records, string, time } from "../../../src/core/record.ts"
import { deepseekHarnessRoots } from "./records.ts"

/** Reads DeepSeek Harness: a log of events in a folder for each session. */
export const deepseekHarnessConnector: Connector = {
  source: "deepseek_harness",
  version: 1,
  roots: deepseekHarnessRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched: (root) => [{ folder: root, depth: 2, files: /^[^/]+\/[^/]+\/session[^/]*$/ }],
  read: (unit, after, scratch) =>
    unit.path.endsWith(".zstd")
      ? readZstdLines(unit.path, stripEvent, after, scratch)
      : readLines(stripEvent)(unit, after),
  parse: parseDeepseekHarness,
  // A later generation of the log numbers its events anew.
  identify: (event) => string(messageIn(event)?.id),
}

/** A newer version writes the whole log anew, in its own format, next to the older one. */
const LOG = /^session(?:\.v(\d{1,6}))?\.jsonl(\.zstd)?$/
const COMPRESSION_RATIO = 8

function* discover(root: string, report: Report): Generator<Unit> {
  for (const project of subfolders(root, report))
    for (const session of subfolders(join(root, project), report)) {
      const unit = newestLog(join(root, project, session), `${project}/${session}`, report)
      if (unit) yield unit
    }
}

function newestLog(folder: string, key: string, report: Report): Unit | undefined {
  const logs = entriesOf(folder, report).flatMap(({ name }) => {
    const match = LOG.exec(name)
    const unit = match ? unitAt(join(folder, name), key, report) : undefined
    if (!match || !unit) return []
    return [
      { generation: Number(match[1] ?? 0), unit: match[2] ? { ...unit, bytes: unit.bytes * COMPRESSION_RATIO } : unit },
    ]
  })
  logs.sort((a, b) => b.generation - a.generation || b.unit.modifiedAt - a.unit.modifiedAt)
  return logs[0]?.unit
}

/** The rows and chunks of a streamed answer, which its message repeats. */
const STREAM_ROWS = new Set(["text-chunks", "reasoning-chunks", "tool-call-chunks"])

/** Removes streamed pieces, system prompts and the schemas of tools. */
function stripEvent(event: RawRecord): RawRecord | undefined {
  const data = record(event.data)
  if (STREAM_ROWS.has(String(event.type))) return undefined
  if (event.type === "assistant/chunk" && record(data?.chunk)?.type !== "usage") return undefined
  if (event.type === "request/header") {
    const config = record(data?.header)?.config
    return { ...event, data: { ...data, header: { config } } }
  }
  if (!Array.isArray(data?.stream)) return cutLongTexts(event)
  const { stream, ...rest } = data
  const usage = records(stream).findLast(({ chunk }) => record(chunk)?.type === "usage")
  return cutLongTexts({ ...event, data: { usage: record(usage?.chunk)?.usage, ...rest } })
}

/** The events that dex uses, and those that say nothing about the conversation. */
const KNOWN = new Set([
  ...[
    "session",
    "user/message",
    "system/message",
    "assistant/message",
    "assistant/chunk",
    "tool/result",
    "session/title",
  ],
  ...["agent-preset/selected", "agent/inbox/spliced", "approval/asked", "approval/decided", "approval/policy"],
  ...["assistant/attempt", "command/done", "command/run", "compaction/end", "compaction/prune", "compaction/start"],
  ...["compaction/summary", "feedback/record", "feedback/message-put", "feedback/message-delete", "goal/change"],
  ...["hook/invoked", "hook/result", "llm/retry", "llm/retry-started", "permission/preset", "plan/mode"],
  ...["request/context", "request/header", "sandbox/mode", "schedule/change", "session/end-seed"],
  ...["session/title-llm-request", "step/end", "step/start", "subagent/descriptor", "team/member"],
  ...["team/message/delivered", "team/message/queued", "team/task", "todo/write", "tool-workflow/agent-end"],
  ...[
    "tool-workflow/agent-start",
    "tool-workflow/run-end",
    "tool-workflow/run-start",
    "tool/call",
    "tool/code-dispatch",
  ],
  ...["tool/code-dispatch-start", "tool/ptc-dispatch", "tool/ptc-dispatch-start", "turn/end", "turn/start"],
  ...["session-log-deepseek/delivery-accepted", "web/deepseek-search-llm-request"],
])

const TOOLS: ToolNames = {
  command: ["bash", "pwsh"],
  read: ["read", "read_image"],
  write: ["write"],
  edit: ["edit"],
  editor: ["str_replace_editor"],
}

type Call = { tool: string | undefined; arguments: string }

function parseDeepseekHarness(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const uniqueKey = uniqueKeys()
  const calls = new Map<string, Call>()
  const messages: Message[] = []
  let header: RawRecord = {}
  let title: string | undefined
  let model: string | undefined
  let streamedUsage: unknown
  for (const event of raw) {
    const type = string(event.type) ?? "(no type)"
    const data = record(event.data) ?? {}
    if (!KNOWN.has(type)) unknown.add(type)
    else if (type === "session") header = event
    else if (type === "subagent/descriptor") title = string(data.label) ?? title
    // The program cuts a title from the prompt until the model has made one.
    else if (type === "session/title" && record(data.source)?.kind !== "fallback") title = string(data.title) ?? title
    else if (type === "request/header") model = string(record(record(data.header)?.config)?.model) ?? model
    else if (type === "assistant/chunk") streamedUsage = record(data.chunk)?.usage
    const message = messageIn(event)
    if (!message) continue
    const { parts, effects } = contentOf(event, message, calls, header, (block) => unknown.add(`block ${block}`))
    if (parts.length === 0) continue
    const isAnswer = type === "assistant/message"
    messages.push({
      key: uniqueKey(string(message.id) ?? `${header.id ?? unit.key}:${event.seq}`),
      role: roleOf(type, parts),
      at: time(event.time),
      model: isAnswer ? (string(record(message.source)?.model) ?? model) : undefined,
      parts,
      effects: effects.length > 0 ? effects : undefined,
      usage: isAnswer ? harnessUsage(data.usage ?? streamedUsage) : undefined,
    })
    if (isAnswer) streamedUsage = undefined
  }
  const isSubagent = header.origin === "subagent"
  const fields = {
    id: string(header.id) ?? unit.key.replace(/^.*\//, ""),
    title,
    cwd: header.cwd,
    parent: isSubagent ? header.parentSession : undefined,
    fork_of: isSubagent ? undefined : header.parentSession,
    times: [header.createdAt],
    messages,
  }
  return parsedFrom(fields, unknown)
}

function messageIn({ type, data }: RawRecord): RawRecord | undefined {
  if (type === "user/message") return record(data)
  if (type !== "system/message" && type !== "assistant/message" && type !== "tool/result") return undefined
  return record(record(data)?.message)
}

function roleOf(type: string, parts: Part[]): Message["role"] {
  if (type === "assistant/message") return "assistant"
  if (type === "tool/result") return "tool"
  return type === "system/message" || parts[0]!.type === "summary" ? "system" : "user"
}

/** Whose words a message of the user's role has: the person's, another agent's, or those of the program and its plugins. */
function originOf(type: unknown, message: RawRecord, header: RawRecord): Origin {
  if (type === "assistant/message") return "agent"
  if (type !== "user/message" || record(message.source)?.kind !== "user") return "injected"
  return header.origin === "subagent" ? "agent" : "person"
}

function contentOf(
  event: RawRecord,
  message: RawRecord,
  calls: Map<string, Call>,
  header: RawRecord,
  countUnknown: (type: string) => void,
): { parts: Part[]; effects: Effect[] } {
  const origin = originOf(event.type, message, header)
  // A message that replaces others is what a compaction left of them. A shortened result of a tool is already there in full.
  const isReplacement = record(event.surfaceOp)?.op === "replace"
  if (isReplacement && event.type === "tool/result") return { parts: [], effects: [] }
  const parts: Part[] = []
  const effects: Effect[] = []
  for (const block of records(message.content)) {
    const text = string(block.text)
    if (block.type === "text") {
      if (text && isReplacement && event.type === "user/message") parts.push({ type: "summary", text, origin: "agent" })
      else if (text) parts.push({ type: "text", text, origin })
    } else if (block.type === "reasoning") {
      if (text) parts.push({ type: "thinking", text, origin: "agent" })
    } else if (block.type === "image" || block.type === "file") {
      parts.push(imagePart(digestOf(record(block.attachment)), origin))
    } else if (block.type === "tool-call") {
      const call = { tool: string(block.name), arguments: string(block.arguments) ?? "{}" }
      if (string(block.id)) calls.set(string(block.id)!, call)
      parts.push(toolCallPart(call.tool, call.arguments, string(block.id)))
    } else if (block.type === "tool-result") {
      const result = resultOf(block, calls, record(record(event.data)?.meta))
      parts.push(result.part)
      effects.push(...result.effects)
    } else countUnknown(String(block.type))
  }
  return { parts, effects }
}

function digestOf(attachment: RawRecord | undefined): RawRecord {
  return {
    media_type: attachment?.mediaType ?? attachment?.mimeType,
    sha256: attachment?.sha256,
    bytes: attachment?.byteLength ?? attachment?.bytes,
  }
}

function resultOf(block: RawRecord, calls: Map<string, Call>, meta: RawRecord | undefined) {
  const call_id = string(block.toolCallId)
  const call = calls.get(call_id ?? "")
  const output = records(block.content)
    .flatMap(({ text }) => string(text) ?? [])
    .join("\n")
  const action = call ? actionByName(TOOLS, call.tool, parseObject(call.arguments) ?? {}) : {}
  const code = action.command === undefined ? undefined : /\[exit code: (\d{1,5})\]\s*$/.exec(output)?.[1]
  return resultOfCall({
    tool: call?.tool,
    call_id,
    output,
    commandOutput: output.replace(/\n?\[exit code: \d{1,5}\]\s*$/, ""),
    failed: block.isError === true,
    exit_status: code === undefined ? undefined : Number(code),
    action: withDiffs(action, meta),
  })
}

/** Prefers the changes that the tool reports, which have no line numbers, to what the call asked for. */
function withDiffs(action: CallAction, meta: RawRecord | undefined): CallAction {
  const hunks = records(meta?.diffs).flatMap(({ path, oldText, newText }) =>
    string(path) ? hunksBetween(string(path)!, string(oldText) ?? "", string(newText) ?? "") : [],
  )
  return hunks.length > 0
    ? { ...action, hunks: hunks.map((hunk) => ({ ...hunk, old_start: 0, new_start: 0 })) }
    : action
}

/** DeepSeek Harness counts as input only what did not come from a cache. */
function harnessUsage(value: unknown) {
  const usage = record(value) ?? {}
  return usageFrom({
    input: usage.inputTokens,
    output: usage.outputTokens,
    cache_read: usage.cacheReadTokens,
    cache_write: usage.cacheWriteTokens,
    reasoning: usage.reasoningTokens,
  })
}
