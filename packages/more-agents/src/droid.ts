import { actionByName, resultOfCall, type ToolNames, toolCallPart } from "../../../src/agents/kit/calls.ts"
import type { Connector, Parsed, UnitName } from "../../../src/agents/kit/connector.ts"
import {
  type Report,
  readLines,
  textAt,
  unitsBelow,
  unitWithFacts,
  withProblems,
} from "../../../src/agents/kit/files.ts"
import {
  cutLongTexts,
  digestOf,
  imagePart,
  parsedFrom,
  splitInjected,
  uniqueKeys,
  usageFrom,
} from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Effect, Message, Origin, Part } from "../../../src/core/conversation.ts"
import { withoutUndefined } from "../../../src/core/defined.ts"
import {
  isRecord,
  number,
  parseObject,
  type RawRecord,
  record,
  records,
  string,
  time,
} from "../../../src/core/record.ts"
import type { Usage } from "../../../src/core/usage.ts"
import { droidRoots } from "./records.ts"

/** Factory's Droid: a file of JSON lines per session, with a settings file next to it that has the token counts. */
export const droidConnector: Connector = {
  source: "droid",
  version: 1,
  roots: droidRoots,
  discover: (root) =>
    withProblems(function* (report) {
      for (const unit of unitsBelow(root, /\.jsonl$/, MAX_FOLDERS, report))
        yield unitWithFacts(unit, settingsOf(unit.path, report))
    }),
  watched: (root) => [{ folder: root, depth: MAX_FOLDERS, files: /\.(jsonl|settings\.json)$/ }],
  read: readLines(stripDroid),
  parse: parseDroid,
  identify,
}

const MAX_FOLDERS = 3
const MAX_SETTINGS_BYTES = 16 << 20

/** Keeps only the model and the token counts of the settings. */
function settingsOf(path: string, report: Report): RawRecord | undefined {
  const text = textAt(path.replace(/\.jsonl$/, ".settings.json"), MAX_SETTINGS_BYTES, report)
  const settings = text === undefined ? undefined : parseObject(text)
  if (!settings) return undefined
  return { type: "dex-settings", model: settings.model, tokenUsage: settings.tokenUsage }
}

function identify(raw: RawRecord): string | undefined {
  const id = string(raw.id)
  return raw.type === "dex-settings" ? raw.type : id && `${raw.type} ${id}`
}

/** Removes image bytes and signatures. */
function stripDroid(raw: RawRecord): RawRecord {
  const message = record(raw.message)
  const strip = (content: unknown) => (Array.isArray(content) ? content.map(stripBlock) : content)
  return cutLongTexts({
    ...raw,
    ...withoutUndefined({
      content: Array.isArray(raw.content) ? strip(raw.content) : undefined,
      message: message && { ...message, content: strip(message.content) },
    }),
  })
}

function stripBlock(value: unknown): unknown {
  if (!isRecord(value)) return value
  const { signature: _, ...block } = value
  if (block.type === "redacted_thinking") return { type: block.type }
  const source = record(block.source)
  const bytes = string(source?.data)
  if (block.type === "image" && bytes !== undefined)
    return {
      type: "image",
      image: digestOf(Buffer.from(bytes, "base64"), string(source?.media_type) ?? string(source?.mediaType)),
    }
  return Array.isArray(block.content) ? { ...block, content: block.content.map(stripBlock) } : block
}

function parseDroid(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const all = [...raw]
  const start = all.find(({ type }) => type === "session_start") ?? all.find(({ type }) => type === "system") ?? {}
  const settings = all.findLast(({ type }) => type === "dex-settings") ?? {}
  const id = idOf(all, start, unit)
  const parent = string(start.callingSessionId)
  const model = string(settings.model) ?? string(start.model)
  const unknown = createCounts()
  const keys = uniqueKeys()
  const calls = new Map<string, DroidCall>()
  const abandoned = abandonedIn(all)
  const messages: Message[] = []
  for (const one of all) {
    const content = contentOfRecord(one, {
      promptOrigin: parent === undefined ? "person" : "agent",
      calls,
      last: messages.at(-1),
    })
    if (content === "unknown") unknown.add(string(one.type) ?? "(no type)")
    else if (content && content.parts.length > 0)
      messages.push(messageOf(one, content, keys(keyOf(one, id)), model, abandoned))
    if (one.type === "completion") addUsage(messages, record(one.usage))
  }
  if (!messages.some(({ usage }) => usage)) addUsage(messages, record(settings.tokenUsage))
  const title = string(start.sessionTitle) ?? string(start.title)
  const fields = {
    id,
    title: /^New Session$/i.test(title ?? "") ? undefined : title,
    cwd: start.cwd,
    agent_version: start.version,
    parent,
    call_id: start.callingToolUseId,
    times: [start.timestamp],
    messages,
  }
  return parsedFrom(fields, unknown)
}

/** A stream has the id on every line, a stored session on its first. */
function idOf(all: RawRecord[], start: RawRecord, unit: UnitName): string {
  const streamed = all.map((one) => string(one.session_id) ?? string(one.sessionId)).find((id) => id !== undefined)
  return (
    (start.type === "session_start" ? string(start.id) : undefined) ??
    streamed ??
    unit.key.replace(/^.*\/|\.jsonl$/g, "")
  )
}

/** A key that distinguishes a call and its result, which have the same id. */
function keyOf(one: RawRecord, session: string): string {
  const id = string(one.id) ?? string(one.toolCallId)
  if (id === undefined) return `${session}:${String(one.timestamp ?? "")}:${String(one.type)}`
  return one.type === "message" ? id : `${session}:${id}:${String(one.type)}`
}

function messageOf(
  one: RawRecord,
  content: DroidContent,
  key: string,
  model: string | undefined,
  abandoned: Set<string>,
): Message {
  const at = time(one.timestamp)
  return {
    key,
    at,
    role: content.role,
    model: content.role === "assistant" && model !== undefined ? model : undefined,
    parts: content.parts,
    effects: content.effects.length > 0 ? content.effects : undefined,
    abandoned: abandoned.has(string(one.id) ?? "") ? true : undefined,
  }
}

/**
 * Finds abandoned branches. Each message names its predecessor; the last one is the current position of the session. Branches off
 * the path to it are abandoned.
 */
function abandonedIn(all: RawRecord[]): Set<string> {
  const messages = all.filter(({ type, id }) => type === "message" && string(id))
  const parents = new Map(messages.map(({ id, parentId }) => [string(id)!, string(parentId)]))
  const path = new Set<string>()
  for (let id = string(messages.at(-1)?.id); id !== undefined && !path.has(id); id = parents.get(id)) path.add(id)
  const abandoned = new Set<string>()
  for (const [id, parent] of parents)
    if (!path.has(id) && parent !== undefined && (path.has(parent) || abandoned.has(parent))) abandoned.add(id)
  return abandoned
}

/** Adds the usage. A stream counts per answer; a stored session has only a total, which is added to its last answer. */
function addUsage(messages: Message[], counted: RawRecord | undefined): void {
  const last = messages.findLast(({ role }) => role === "assistant")
  const usage = droidUsage(counted)
  if (last && usage) last.usage = usage
}

/** Accepts the field names of the settings and of a stream. */
function droidUsage(counted: RawRecord | undefined): Usage | undefined {
  const of = (...names: string[]) => names.map((name) => number(counted?.[name])).find((n) => n !== undefined)
  return usageFrom({
    input: of("inputTokens", "input_tokens"),
    output: of("outputTokens", "output_tokens"),
    cache_read: of("cacheReadTokens", "cache_read_input_tokens"),
    cache_write: of("cacheCreationTokens", "cache_creation_input_tokens"),
    reasoning: of("thinkingTokens"),
  })
}

const TOOLS: ToolNames = {
  command: ["Execute", "Shell"],
  read: ["Read"],
  write: ["Create", "Write"],
  edit: ["Edit", "MultiEdit"],
  patch: ["ApplyPatch"],
}

/** Types of records without content. */
const QUIET = ["session_start", "session_end", "system", "todo_state", "dex-settings"]

type DroidCall = { tool: string | undefined; args: RawRecord }
type DroidContent = { role: Message["role"]; parts: Part[]; effects: Effect[] }
type Context = { promptOrigin: Origin; calls: Map<string, DroidCall>; last: Message | undefined }

/** Returns undefined if there is no content. */
function contentOfRecord(one: RawRecord, context: Context): DroidContent | "unknown" | undefined {
  const type = string(one.type) ?? ""
  switch (type) {
    case "message":
      return contentOfMessage(record(one.message) ?? one, context)
    case "tool_call":
      return contentOfCall(one, context)
    case "tool_result":
      return contentOfResult(one, context)
    case "completion":
      return completionOf(one, context)
    case "compaction_state": {
      const text = string(one.summaryText) ?? string(one.summary) ?? string(record(one.summary)?.text)
      return text === undefined
        ? undefined
        : { role: "system", parts: [{ type: "summary", text, origin: "agent" }], effects: [] }
    }
    case "error": {
      const text = string(one.message) ?? string(record(one.error)?.message)
      return text === undefined
        ? undefined
        : { role: "system", parts: [{ type: "text", text, origin: "local_tool" }], effects: [] }
    }
    default:
      return QUIET.includes(type) ? undefined : "unknown"
  }
}

function contentOfMessage(message: RawRecord, context: Context): DroidContent | "unknown" {
  const { role } = message
  if (role !== "user" && role !== "assistant" && role !== "system") return "unknown"
  const flat = string(message.text) ?? string(message.content)
  const blocks = flat === undefined ? records(message.content) : [{ type: "text", text: flat }]
  const parts: Part[] = []
  const effects: Effect[] = []
  for (const block of blocks) {
    const text = string(block.text) ?? string(block.thinking)
    if (block.type === "tool_use") parts.push(...(contentOfCall(block, context)?.parts ?? []))
    else if (block.type === "tool_result") {
      const result = contentOfResult(block, context)
      parts.push(...result.parts)
      effects.push(...result.effects)
    } else if (block.type === "image")
      parts.push(imagePart(block.image, role === "user" ? context.promptOrigin : "agent"))
    else if (text === undefined) continue
    else if (block.type === "thinking") parts.push({ type: "thinking", text, origin: "agent" })
    else parts.push(...spoken(text, role === "user" ? context.promptOrigin : role === "system" ? "injected" : "agent"))
  }
  const isResult = parts.some(({ type }) => type === "tool_result")
  return { role: role === "user" && isResult ? "tool" : role, parts, effects }
}

function spoken(text: string, origin: Origin): Part[] {
  if (origin === "agent") return [{ type: "text", text, origin }]
  return splitInjected(text, ["system-reminder", "system-notification"]).map((run) => ({
    type: "text",
    text: run.text,
    origin: run.injected ? "injected" : origin,
  }))
}

function callIdOf(one: RawRecord): string | undefined {
  return string(one.toolCallId) ?? string(one.tool_use_id) ?? string(one.toolUseId) ?? string(one.id)
}

function contentOfCall(one: RawRecord, { calls }: Context): DroidContent {
  const id = callIdOf(one)
  const tool = string(one.name) ?? string(one.toolName)
  const args = record(one.input) ?? record(one.parameters) ?? {}
  if (id !== undefined) calls.set(id, { tool, args })
  return { role: "assistant", parts: [toolCallPart(tool, args, id)], effects: [] }
}

function contentOfResult(one: RawRecord, { calls }: Context): DroidContent {
  const id = callIdOf(one)
  const call = calls.get(id ?? "")
  const value = record(one.value)
  const output = outputOf(one.content ?? one.value)
  const code = /\(exit code: (\d{1,5})\)|\[Process exited with code (\d{1,5})\]/.exec(output)
  const exit_status = number(value?.exitCode) ?? (code ? Number(code[1] ?? code[2]) : undefined)
  const { part, effects } = resultOfCall({
    tool: call?.tool ?? string(one.toolName) ?? string(one.toolId),
    call_id: id,
    output,
    commandOutput: output.replace(
      /^Error: Command failed \(exit code: \d{1,5}\)$|^\[Process exited with code \d{1,5}\]$/gm,
      "",
    ),
    failed: one.is_error === true || one.isError === true,
    exit_status: exit_status !== undefined && call && isCommand(call) ? exit_status : undefined,
    action: call ? actionByName(TOOLS, call.tool, call.args) : {},
  })
  return { role: "tool", parts: [part], effects }
}

function isCommand({ tool }: DroidCall): boolean {
  return tool !== undefined && TOOLS.command!.includes(tool)
}

/** Returns the text of an output: a text, blocks of text, or the output of a command. */
function outputOf(value: unknown): string {
  if (typeof value === "string") return value
  if (Array.isArray(value))
    return records(value)
      .flatMap(({ text }) => string(text) ?? [])
      .join("\n")
  const printed = record(value)
  if (!printed) return ""
  const texts = [printed.stdout, printed.stderr].flatMap((text) => string(text) ?? [])
  return texts.length > 0 ? texts.join("\n") : JSON.stringify(printed)
}

/** A completion repeats the last answer, unless there was none. */
function completionOf(one: RawRecord, { last }: Context): DroidContent | undefined {
  const text = string(one.finalText) ?? string(one.final_text)
  if (text === undefined || (last?.role === "assistant" && last.parts.at(-1)?.text === text)) return undefined
  return { role: "assistant", parts: [{ type: "text", text, origin: "agent" }], effects: [] }
}
