import { join } from "node:path"
import { resultOfCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
import type { Connector, Parsed, Unit, UnitName, Unreadable } from "../../../src/agents/kit/connector.ts"
import {
  type Report,
  readLines,
  subfolders,
  textAt,
  unitAt,
  unitWithFacts,
  withProblems,
} from "../../../src/agents/kit/files.ts"
import { hunksBetween, storedHunks } from "../../../src/agents/kit/hunks-between.ts"
import { cutLongTexts, parsedFrom, uniqueKeys, usageFrom } from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Message, Origin } from "../../../src/core/conversation.ts"
import { array, number, parseObject, type RawRecord, record, records, string, time } from "../../../src/core/record.ts"
import { addRequest, type Usage } from "../../../src/core/usage.ts"
import { junieRoots } from "./records.ts"

/** Reads Junie: a file of events in a folder for each session, and a list of sessions. */
export const junieConnector: Connector = {
  source: "junie",
  version: 1,
  roots: junieRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched: (root) => [{ folder: root, depth: 1, files: /^(?:[^/]+\/events|index)\.jsonl$/ }],
  read: readLines(stripEvent),
  parse: parseJunie,
  identify: (event) => (event.type === "dex-session" ? "dex-session" : undefined),
}

const MAX_INDEX_BYTES = 64 << 20

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  const facts = factsIn(textAt(join(root, "index.jsonl"), MAX_INDEX_BYTES, report) ?? "")
  for (const session of subfolders(root, report)) {
    const unit = unitAt(join(root, session, "events.jsonl"), session, report)
    if (unit) yield unitWithFacts(unit, facts.get(session))
  }
}

/** Maps each session to its last entry in the list: Junie appends an entry for every change. */
function factsIn(index: string): Map<string, RawRecord> {
  return new Map(
    index.split("\n").flatMap((line) => {
      const { sessionId, projectDir, taskName, createdAt } = parseObject(line) ?? {}
      const facts = { type: "dex-session", projectDir, taskName, createdAt }
      return string(sessionId) ? [[string(sessionId)!, facts] as const] : []
    }),
  )
}

/** Removes environment variables and the agent's state, and replaces copies of files with their changes. */
function stripEvent(entry: RawRecord): RawRecord | undefined {
  const event = record(entry.event)
  const agentEvent = record(event?.agentEvent)
  if (!agentEvent) return cutLongTexts(entry)
  if (DROPPED.has(String(agentEvent.kind))) return undefined
  const { changes, ...rest } = agentEvent
  const stripped = Array.isArray(changes) ? { ...rest, hunks: records(changes).flatMap(hunksOfChange) } : rest
  return cutLongTexts({ ...entry, event: { ...event, agentEvent: stripped } })
}

const DROPPED = new Set(["EnvironmentVariablesUpdatedEvent", "AgentStateUpdatedEvent"])

function hunksOfChange(change: RawRecord) {
  const path = string(change.afterRelativePath) ?? string(change.beforeRelativePath)
  const [before, after] = [change.beforeContent, change.afterContent].map(
    (content) => string(record(content)?.text) ?? "",
  )
  return path === undefined ? [] : hunksBetween(path, before!, after!)
}

/** Events that say nothing about the conversation. */
const SILENT = new Set([
  ...["TaskStartedEvent", "TaskFinishedEvent", "SendToAgentEvent", "UserMessagesCommittedToHistory"],
  ...["AgentStatusUpdatedEvent", "CustomAgentBlockUpdatedEvent"],
])

/** The parts of an answer. Junie writes each part again whenever it grows; the last one counts. */
const BLOCKS = new Set([
  ...["MarkdownBlockUpdatedEvent", "ResultBlockUpdatedEvent", "AgentFailureEvent", "ToolBlockUpdatedEvent"],
  ...[
    "TerminalBlockUpdatedEvent",
    "ViewFilesBlockUpdatedEvent",
    "FileChangesBlockUpdatedEvent",
    "McpBlockUpdatedEvent",
  ],
])

type Block = { key: string; at: number | undefined; event: RawRecord; usage?: Usage; model?: string }

function parseJunie(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const uniqueKey = uniqueKeys()
  const blocks = new Map<string, Block>()
  const entries: (Message | Block)[] = []
  const dropped = new Set<unknown>()
  let facts: RawRecord = {}
  let title: string | undefined
  let usage: Usage | undefined
  let model: string | undefined
  let index = 0
  const say = (id: string | undefined, role: Message["role"], at: number | undefined, text: string, origin: Origin) => {
    const key = uniqueKey(id ?? `${unit.key}:${index}`)
    if (text !== "") entries.push({ key, role, at, parts: [{ type: "text", text, origin }] })
  }
  for (const entry of raw) {
    if (entry.type === "dex-session") {
      facts = entry
      continue
    }
    index++
    const at = time(entry.timestampMs)
    const event = record(record(entry.event)?.agentEvent) ?? entry
    const kind = string(event.kind) ?? string(event.type) ?? "(no kind)"
    if (BLOCKS.has(kind)) {
      const step = string(event.stepId)
      const known = step === undefined ? undefined : blocks.get(step)
      if (known) Object.assign(known, { event: { ...known.event, ...event } })
      else {
        const block: Block = { key: uniqueKey(`${unit.key}:${step ?? index}`), at, event }
        entries.push(block)
        if (step !== undefined) blocks.set(step, block)
      }
    } else if (kind === "LlmResponseMetadataEvent") {
      for (const one of records(event.modelUsage)) {
        const request = usageOfRequest(one)
        if (request) usage = addRequest(usage, request)
        model = string(one.model) ?? model
      }
      const answer = entries.findLast((one): one is Block => "event" in one)
      if (answer) {
        answer.usage = answer.usage && usage ? addRequest(answer.usage, usage) : usage
        answer.model = model
        usage = undefined
      }
    } else if (kind === "UserPromptEvent")
      say(string(event.requestId), "user", at, string(event.presentablePrompt) ?? string(event.prompt) ?? "", "person")
    else if (kind === "UserAsyncResponseEvent")
      for (const { question, answer } of records(event.entries)) {
        say(undefined, "assistant", at, string(question) ?? "", "agent")
        say(undefined, "user", at, string(answer) ?? "", "person")
      }
    else if (kind === "UserMessagesDroppedFromHistory" || kind === "UserMessagesFailedInHistory")
      for (const id of array(event.userMessageIds)) dropped.add(id)
    else if (kind === "SessionTitleSetEvent") title = string(event.name) ?? title
    else if (kind === "SystemMessageEvent")
      say(
        undefined,
        "system",
        at,
        [event.text, event.details].flatMap((text) => string(text) ?? []).join("\n"),
        "local_tool",
      )
    else if (kind === "AgentTaskFailedEvent") say(undefined, "system", at, "The task failed.", "local_tool")
    else if (!SILENT.has(kind)) unknown.add(kind)
  }
  const messages = entries.flatMap((entry) => ("event" in entry ? messagesOfBlock(entry) : [entry]))
  // Tokens from before the first block are counted at the last one.
  const answer = messages.findLast(({ role }) => role === "assistant")
  if (usage && answer) answer.usage = answer.usage ? addRequest(answer.usage, usage) : usage
  for (const message of messages) if (dropped.has(message.key)) message.abandoned = true
  const times = [facts.createdAt]
  return parsedFrom({ id: unit.key, title: title ?? facts.taskName, cwd: facts.projectDir, times, messages }, unknown)
}

function messagesOfBlock({ key, at, event, usage, model }: Block): Message[] {
  const answer = { key, role: "assistant", at, model, usage } as const
  if (event.kind === "AgentFailureEvent") return textMessage(event.message, "local_tool")
  if (event.kind === "MarkdownBlockUpdatedEvent") return textMessage(event.text, "agent")
  if (event.kind === "ResultBlockUpdatedEvent")
    return textMessage(string(event.result)?.replace(/^<!-- ANSWER -->/, ""), "agent")
  const { tool, input, output, action } = stepOf(event)
  const exit_status = number(event.exitCode)
  const failed = /^(failed|error)$/i.test(string(event.status) ?? "")
  const result = resultOfCall({ tool, call_id: key, output, failed, exit_status, action })
  const { part, effects } = result
  return [
    { ...answer, parts: [toolCallPart(tool, input, key)] },
    { key: `${key}:result`, role: "tool", at, parts: [part], effects: effects.length > 0 ? effects : undefined },
  ]

  function textMessage(text: unknown, origin: Origin): Message[] {
    return string(text) ? [{ ...answer, parts: [{ type: "text", text: string(text)!, origin }] }] : []
  }
}

function stepOf(event: RawRecord) {
  const output = string(event.details) ?? ""
  const label = string(event.text) ?? ""
  if (event.kind === "TerminalBlockUpdatedEvent") {
    const command = string(event.command) ?? ""
    return { tool: "terminal", input: { command }, output, action: { command } }
  }
  if (event.kind === "ViewFilesBlockUpdatedEvent") {
    const reads = array(event.files).flatMap((file) => {
      const fields = record(file)
      return string(file) ?? string(fields?.relativePath) ?? string(fields?.path) ?? []
    })
    return { tool: "view_files", input: { files: reads }, output, action: { reads } }
  }
  if (event.kind === "FileChangesBlockUpdatedEvent") {
    const hunks = storedHunks(event.hunks)
    const files = [...new Set(hunks.map(({ path }) => path))]
    return { tool: "edit_files", input: { files }, output: output || files.join("\n"), action: { hunks } }
  }
  return { tool: event.kind === "McpBlockUpdatedEvent" ? "mcp" : "tool", input: { text: label }, output, action: {} }
}

function usageOfRequest(usage: RawRecord): Usage | undefined {
  const { inputTokens, outputTokens, cacheInputTokens, cacheCreateTokens, cost } = usage
  const counted = {
    input: inputTokens,
    output: outputTokens,
    cache_read: cacheInputTokens,
    cache_write: cacheCreateTokens,
  }
  return usageFrom({ ...counted, cost })
}
