import { join } from "node:path"
import { crc32 } from "node:zlib"
import { actionByName, type CallAction, resultOfCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
import type {
  Connector,
  Cursor,
  Parsed,
  Reading,
  Skipped,
  Unit,
  UnitName,
  Unreadable,
  Watched,
} from "../../../src/agents/kit/connector.ts"
import {
  entriesOf,
  fileAt,
  objectAt,
  prependFacts,
  type Report,
  type UnitWithFacts,
  unitOfFile,
  unitWithFacts,
  withProblems,
} from "../../../src/agents/kit/files.ts"
import { hunksBetween, storedHunks } from "../../../src/agents/kit/hunks-between.ts"
import { isSettled } from "../../../src/agents/kit/jsonl.ts"
import {
  addSessionUsage,
  cutLongTexts,
  digestOfDataUri,
  imagePart,
  parsedFrom,
  uniqueKeys,
} from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Message, Origin, Part } from "../../../src/core/conversation.ts"
import { withoutUndefined } from "../../../src/core/defined.ts"
import { messageOf } from "../../../src/core/error.ts"
import { readText } from "../../../src/core/read-file.ts"
import {
  isDeeperThan,
  MAX_DEPTH,
  number,
  parseObject,
  type RawRecord,
  record,
  records,
  string,
  time,
} from "../../../src/core/record.ts"
import { totalUsage, type Usage } from "../../../src/core/usage.ts"
import { openhandsRoots } from "./records.ts"

/**
 * Reads the conversations of OpenHands' command line: a folder per conversation, with one file for its state and one for each
 * event. The file of an event never changes.
 */
export const openhandsConnector: Connector = {
  source: "openhands",
  version: 1,
  roots: openhandsRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched: (root): Watched[] => [{ folder: root, depth: 2, files: /^[^/]+\/(base_state|events\/event-[^/]+)\.json$/ }],
  read,
  parse: parseOpenhands,
  identify: (event) => (event.type === "dex-session" ? "dex-session" : string(event.id)),
}

const STATE_FILE = "base_state.json"
const EVENT_FILE = /^event-\d+-.*\.json$/
const MAX_STATE_BYTES = 64 << 20
const MAX_EVENT_BYTES = 64 << 20
/** The assumed size of an event, in bytes. Checking the size of every event would take too long. */
const EVENT_BYTES = 4096

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  for (const entry of entriesOf(root, report)) {
    if (!entry.isDirectory()) continue
    const names = eventsIn(join(root, entry.name), report)
    const path = join(root, entry.name, STATE_FILE)
    const stat = fileAt(path, report)
    if (!stat || names.length === 0) continue
    const unit = unitOfFile(path, entry.name, stat)
    const bytes = names.length * EVENT_BYTES
    yield unitWithFacts({ ...unit, bytes, stamp: `${names.length}:${names.at(-1)}` }, factsAt(path, report))
  }
}

function eventsIn(folder: string, report: Report): string[] {
  return entriesOf(join(folder, "events"), report).flatMap(({ name }) => (EVENT_FILE.test(name) ? [name] : []))
}

/** Reads the facts about a conversation. The agent's settings in that file are not stored, because they contain API keys. */
function factsAt(path: string, report: Report): RawRecord | undefined {
  const state = objectAt(path, MAX_STATE_BYTES, report)
  if (!state) return undefined
  const metrics = records(Object.values(record(record(state.stats)?.usage_to_metrics) ?? {}))
  return {
    type: "dex-session",
    id: state.id,
    working_dir: record(state.workspace)?.working_dir,
    model: record(record(state.agent)?.llm)?.model,
    usage: metrics.map(({ accumulated_cost, accumulated_token_usage }) => ({
      accumulated_cost,
      accumulated_token_usage,
    })),
  }
}

/** Reads new events. The cursor has the number of events that were read, and a checksum of their file names. */
function read(unit: UnitWithFacts, after?: Cursor): Reading {
  const folder = join(unit.path, "..")
  const names = eventsIn(folder, () => {})
  const isContinued = after !== undefined && after.offset <= names.length && after.crc === crcOf(names, after.offset)
  let offset = isContinued ? after.offset : 0
  let pending = false
  const skipped: Skipped[] = []
  function* events(): Generator<RawRecord> {
    for (const name of names.slice(offset)) {
      const path = join(folder, "events", name)
      const event = eventAt(path)
      if (typeof event === "string") {
        pending = !isSettled(fileAt(path, () => {})?.mtimeMs ?? 0, Date.now())
        if (pending) return // the agent may still be writing this file
        skipped.push({ reason: event, where: path })
      } else yield event
      offset++
    }
  }
  const end = () => ({ cursor: { offset, crc: crcOf(names, offset) }, skipped, pending })
  return prependFacts({ mode: isContinued || !after ? "append" : "replace", records: events(), end }, unit, after)
}

function crcOf(names: string[], count: number): number {
  return crc32(names.slice(0, count).join("\n"))
}

/** Returns the event, or the reason why it could not be read. */
function eventAt(path: string): RawRecord | string {
  try {
    const event = parseObject(readText(path, MAX_EVENT_BYTES))
    if (!event) return "not a complete JSON object"
    return isDeeperThan(event, MAX_DEPTH) ? `nested deeper than ${MAX_DEPTH} levels` : stripOpenhandsEvent(event)
  } catch (error) {
    return messageOf(error)
  }
}

/**
 * Removes tool descriptions, image bytes, and data that only a provider can read. Replaces the old and the new version of a
 * file with their difference.
 */
export function stripOpenhandsEvent(event: RawRecord): RawRecord {
  const { tools: _, reasoning_details: __, responses_reasoning_item: ___, critic_result: ____, ...rest } = event
  const observation = record(rest.observation)
  const message = record(rest.llm_message)
  return cutLongTexts({
    ...rest,
    ...withoutUndefined({
      observation: observation && stripObservation(observation),
      llm_message: message && { ...message, content: stripContent(message.content) },
    }),
    ...withoutUndefined({
      thinking_blocks: Array.isArray(rest.thinking_blocks)
        ? records(rest.thinking_blocks).map(stripThinking)
        : undefined,
    }),
  })
}

function stripObservation({ old_content, new_content, hunks: _, ...observation }: RawRecord): RawRecord {
  const path = string(observation.path)
  const [before, after] = [string(old_content) ?? "", string(new_content)]
  const isChange = path !== undefined && after !== undefined && observation.command !== "view"
  return {
    ...observation,
    content: stripContent(observation.content),
    ...withoutUndefined({ hunks: isChange ? hunksBetween(path, before, after) : undefined }),
  }
}

function stripContent(content: unknown): unknown {
  return Array.isArray(content) ? records(content).flatMap(withoutImageBytes) : content
}

function withoutImageBytes(piece: RawRecord): RawRecord[] {
  if (!Array.isArray(piece.image_urls)) return [piece]
  return piece.image_urls.flatMap((url) => {
    const image = digestOfDataUri(string(url) ?? "")
    return image ? [{ type: "image", image }] : []
  })
}

function stripThinking({ signature: _, data: __, ...block }: RawRecord): RawRecord {
  return block
}

const TOOLS = {
  command: ["terminal", "execute_bash"],
  editor: ["file_editor", "str_replace_editor", "planning_file_editor"],
}
/** Kinds of events that contain nothing to read. */
const IGNORED_KINDS = [
  ...["ConversationStateUpdateEvent", "CondensationRequest", "TokenEvent", "PauseEvent", "LLMCompletionLogEvent"],
  ...["InterruptEvent", "StreamingDeltaEvent"],
]

type Content = Pick<Message, "role" | "parts" | "effects">
type Call = { tool: string | undefined; args: RawRecord }

function parseOpenhands(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const events: RawRecord[] = []
  let session: RawRecord = {}
  for (const event of raw) {
    if (event.type === "dex-session") session = event
    else events.push(event)
  }
  const id = string(session.id) ?? unit.key
  const actions = events.filter(({ kind }) => kind === "ActionEvent")
  const calls = new Map(actions.map((event) => [string(event.tool_call_id) ?? "", callOf(event)]))
  const unknown = createCounts()
  const uniqueKey = uniqueKeys()
  const messages: Message[] = []
  for (const event of events) {
    const content = contentOf(event, calls)
    if (!content) unknown.add(string(event.kind) ?? string(event.type) ?? "(no kind)")
    else if (content.parts.length > 0) {
      const at = time(event.timestamp)
      const key = uniqueKey(`${id}:${string(event.id) ?? messages.length}`)
      messages.push({ key, at, ...content })
    }
  }
  addSessionUsage(messages, string(session.model), totalUsageOf(session))
  const folders = events.map(({ observation }) => record(record(observation)?.metadata)?.working_dir)
  const cwds = [session.working_dir, ...folders].filter((folder) => string(folder))
  return parsedFrom({ id, cwds: [...new Set(cwds)].slice(0, 20), messages }, unknown)
}

function callOf(event: RawRecord): Call {
  const call = record(event.tool_call)
  const args = record(event.action) ?? parseObject(string(call?.arguments) ?? "") ?? {}
  return { tool: string(event.tool_name) ?? string(call?.name), args }
}

/** Parses an event. Returns undefined for an unknown kind of event. */
function contentOf(event: RawRecord, calls: Map<string, Call>): Content | undefined {
  switch (event.kind) {
    case "MessageEvent":
      return spokenContent(event)
    case "ActionEvent":
      return { role: "assistant", parts: actionParts(event) }
    case "ObservationEvent":
    case "UserRejectObservation":
    case "AgentErrorEvent":
      return resultOf(event, calls)
    case "SystemPromptEvent":
      return { role: "system", parts: textParts([record(event.system_prompt)], "injected") }
    case "Condensation":
    case "CondensationSummaryEvent": {
      const text = string(event.summary)
      return { role: "system", parts: text === undefined ? [] : [{ type: "summary", text, origin: "agent" }] }
    }
    case "ConversationErrorEvent":
      return { role: "system", parts: textParts(string(event.detail) ?? string(event.code) ?? "", "local_tool") }
    default:
      return IGNORED_KINDS.includes(String(event.kind)) ? { role: "system", parts: [] } : undefined
  }
}

function spokenContent(event: RawRecord): Content {
  const { content, role } = record(event.llm_message) ?? {}
  const addedParts = textParts(event.extended_content, "injected")
  if (role === "assistant")
    return { role: "assistant", parts: [...thinkingOf(event), ...textParts(content, "agent"), ...addedParts] }
  if (role === "system") return { role: "system", parts: textParts(content, "injected") }
  return {
    role: "user",
    parts: [...textParts(content, event.source === "user" ? "person" : "injected"), ...addedParts],
  }
}

function thinkingOf(event: RawRecord): Part[] {
  const message = record(event.llm_message)
  const texts = [event, message].flatMap((source) =>
    records(source?.thinking_blocks).map(({ thinking }) => string(thinking)),
  )
  const thoughts = texts.filter((text) => text !== undefined)
  const text =
    thoughts.length > 0
      ? thoughts.join("\n\n")
      : (string(event.reasoning_content) ?? string(message?.reasoning_content))
  return text === undefined ? [] : [{ type: "thinking", text, origin: "agent" }]
}

/** Returns the parts of an action. A task ends with a call of `finish`, whose argument is the answer. */
function actionParts(event: RawRecord): Part[] {
  const { tool, args } = callOf(event)
  const { kind: _, ...input } = args
  const leadingParts = [...thinkingOf(event), ...textParts(event.thought, "agent")]
  const answer = tool === "finish" ? string(args.message) : undefined
  if (answer !== undefined) return [...leadingParts, { type: "text", text: answer, origin: "agent" }]
  return [...leadingParts, toolCallPart(tool, input, string(event.tool_call_id))]
}

function resultOf(event: RawRecord, calls: Map<string, Call>): Content {
  const call_id = string(event.tool_call_id)
  const call = calls.get(call_id ?? "")
  if (call?.tool === "finish") return { role: "tool", parts: [] }
  const observation = record(event.observation) ?? {}
  const content = textParts(observation.content, "local_tool")
  const refusal = string(event.rejection_reason) ?? string(event.error)
  const exitCode = number(observation.exit_code) ?? number(record(observation.metadata)?.exit_code)
  const { part, effects } = resultOfCall({
    tool: string(event.tool_name) ?? call?.tool,
    call_id,
    output: refusal ?? content.map(({ text }) => text).join("\n"),
    failed: refusal !== undefined || observation.is_error === true || string(observation.error) !== undefined,
    exit_status: exitCode !== undefined && exitCode >= 0 ? exitCode : undefined, // a negative code means that the command is still running
    action: actionOf(call, observation),
    isRemote: string(observation.kind)?.startsWith("MCP") === true,
  })
  const images = content.filter(({ type }) => type === "image")
  return { role: "tool", parts: [part, ...images], effects: effects.length > 0 ? effects : undefined }
}

function actionOf(call: Call | undefined, { hunks }: RawRecord): CallAction {
  const recordedHunks = storedHunks(hunks)
  if (recordedHunks.length > 0) return { hunks: recordedHunks }
  return call ? actionByName(TOOLS, call.tool, call.args) : {}
}

function textParts(content: unknown, origin: Origin): Part[] {
  const pieces = typeof content === "string" ? [{ text: content }] : records(content)
  return pieces.flatMap((piece: RawRecord): Part[] => {
    if (piece.type === "image") return [imagePart(piece.image, origin)]
    const text = string(piece.text)
    return text === undefined ? [] : [{ type: "text", text, origin }]
  })
}

function totalUsageOf(session: RawRecord): Usage | undefined {
  const usage = totalUsage(records(session.usage).map(openhandsUsage))
  return usage && usage.input + usage.output + usage.cache_read > 0 ? usage : undefined
}

/** Parses token counts. OpenHands' prompt tokens include the tokens that were read from and written to the cache. */
function openhandsUsage({ accumulated_cost, accumulated_token_usage }: RawRecord): Usage {
  const counts = record(accumulated_token_usage)
  const countOf = (field: string) => number(counts?.[field]) ?? 0
  const [cache_read, cache_write, reasoning] = [
    countOf("cache_read_tokens"),
    countOf("cache_write_tokens"),
    countOf("reasoning_tokens"),
  ]
  const cost = number(accumulated_cost) ?? 0
  return {
    input: Math.max(0, countOf("prompt_tokens") - cache_read - cache_write),
    output: countOf("completion_tokens"),
    cache_read,
    cache_write,
    reasoning: reasoning > 0 ? reasoning : undefined,
    cost: cost > 0 ? cost : undefined,
  }
}
