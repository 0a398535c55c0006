import { existsSync } from "node:fs"
import { join } from "node:path"
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
import {
  HOOK_TIMEOUT_S,
  type HookEvent,
  NO_SUBAGENT,
  openSkill,
  proactiveHooks,
  serverStart,
  syncHook,
  type Wiring,
} from "../../../src/agents/kit/wiring.ts"
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

/** Reads Factory's Droid: one file of JSON lines per session, and a settings file next to it that has the token counts. */
export const droidConnector: Connector = {
  source: "droid",
  version: 2,
  roots: droidRoots,
  discover: (root) =>
    withProblems(function* (report) {
      for (const unit of unitsBelow(root, /\.jsonl$/, FOLDER_DEPTH, report))
        yield unitWithFacts(unit, settingsOf(unit.path, report))
    }),
  watched: (root) => [{ folder: root, depth: FOLDER_DEPTH, files: /\.(jsonl|settings\.json)$/ }],
  read: readLines(stripDroid),
  parse: parseDroid,
  identify,
}

const FOLDER_DEPTH = 3
const MAX_SETTINGS_BYTES = 16 << 20

/** Reads the model and the token counts from the settings file next to a session. */
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
  const entries = [...raw]
  const startEntry =
    entries.find(({ type }) => type === "session_start") ?? entries.find(({ type }) => type === "system") ?? {}
  const settings = entries.findLast(({ type }) => type === "dex-settings") ?? {}
  const id = idOf(entries, startEntry, unit)
  const parent = string(startEntry.callingSessionId)
  const model = string(settings.model) ?? string(startEntry.model)
  const unknown = createCounts()
  const uniqueKey = uniqueKeys()
  const calls = new Map<string, DroidCall>()
  const abandonedIds = abandonedIn(entries)
  const messages: Message[] = []
  for (const entry of entries) {
    const content = contentOfRecord(entry, {
      promptOrigin: parent === undefined ? "person" : "agent",
      calls,
      lastMessage: messages.at(-1),
    })
    if (content === "unknown") unknown.add(string(entry.type) ?? "(no type)")
    else if (content && content.parts.length > 0)
      messages.push(messageOf(entry, content, uniqueKey(keyOf(entry, id)), model, abandonedIds))
    if (entry.type === "completion") addUsage(messages, record(entry.usage))
  }
  if (!messages.some(({ usage }) => usage)) addUsage(messages, record(settings.tokenUsage))
  const title = string(startEntry.sessionTitle) ?? string(startEntry.title)
  const fields = {
    id,
    title: /^New Session$/i.test(title ?? "") ? undefined : title,
    cwd: startEntry.cwd,
    agent_version: startEntry.version,
    parent,
    call_id: startEntry.callingToolUseId,
    times: [startEntry.timestamp],
    messages,
  }
  return parsedFrom(fields, unknown)
}

/** Returns the session's id. A stream has the id on every line; a stored session has it only on its first line. */
function idOf(entries: RawRecord[], startEntry: RawRecord, unit: UnitName): string {
  const streamedId = entries
    .map((one) => string(one.session_id) ?? string(one.sessionId))
    .find((id) => id !== undefined)
  return (
    (startEntry.type === "session_start" ? string(startEntry.id) : undefined) ??
    streamedId ??
    unit.key.replace(/^.*\/|\.jsonl$/g, "")
  )
}

/** Builds a record's key. A call and its result have the same id, so their keys also contain the type. */
function keyOf(entry: RawRecord, session: string): string {
  const id = string(entry.id) ?? string(entry.toolCallId)
  if (id === undefined) return `${session}:${String(entry.timestamp ?? "")}:${String(entry.type)}`
  return entry.type === "message" ? id : `${session}:${id}:${String(entry.type)}`
}

function messageOf(
  entry: RawRecord,
  content: DroidContent,
  key: string,
  model: string | undefined,
  abandonedIds: Set<string>,
): Message {
  const at = time(entry.timestamp)
  return {
    key,
    at,
    role: content.role,
    model: content.role === "assistant" && model !== undefined ? model : undefined,
    parts: content.parts,
    effects: content.effects.length > 0 ? content.effects : undefined,
    abandoned: abandonedIds.has(string(entry.id) ?? "") ? true : undefined,
  }
}

/**
 * Finds the ids of messages on abandoned branches. Each message names its predecessor, and the last message is the session's
 * current position. Messages that branch off from the path to it are abandoned.
 */
function abandonedIn(entries: RawRecord[]): Set<string> {
  const messages = entries.filter(({ type, id }) => type === "message" && string(id))
  const parents = new Map(messages.map(({ id, parentId }) => [string(id)!, string(parentId)]))
  const activeIds = new Set<string>()
  for (let id = string(messages.at(-1)?.id); id !== undefined && !activeIds.has(id); id = parents.get(id))
    activeIds.add(id)
  const abandonedIds = new Set<string>()
  for (const [id, parent] of parents)
    if (!activeIds.has(id) && parent !== undefined && (activeIds.has(parent) || abandonedIds.has(parent)))
      abandonedIds.add(id)
  return abandonedIds
}

/** Adds usage to the last answer. A stream has the usage of each answer; a stored session has only a total. */
function addUsage(messages: Message[], counts: RawRecord | undefined): void {
  const lastAnswer = messages.findLast(({ role }) => role === "assistant")
  const usage = droidUsage(counts)
  if (lastAnswer && usage) lastAnswer.usage = usage
}

/** Parses token counts. The field names of the settings and of a stream are different. */
function droidUsage(counts: RawRecord | undefined): Usage | undefined {
  const firstCount = (...names: string[]) => names.map((name) => number(counts?.[name])).find((n) => n !== undefined)
  return usageFrom({
    input: firstCount("inputTokens", "input_tokens"),
    output: firstCount("outputTokens", "output_tokens"),
    cache_read: firstCount("cacheReadTokens", "cache_read_input_tokens"),
    cache_write: firstCount("cacheCreationTokens", "cache_creation_input_tokens"),
    reasoning: firstCount("thinkingTokens"),
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
const IGNORED_TYPES = ["session_start", "session_end", "system", "todo_state", "agent_turn_outcome", "dex-settings"]

type DroidCall = { tool: string | undefined; args: RawRecord }
type DroidContent = { role: Message["role"]; parts: Part[]; effects: Effect[] }
type Context = { promptOrigin: Origin; calls: Map<string, DroidCall>; lastMessage: Message | undefined }

/** Returns undefined for a record without content. */
function contentOfRecord(entry: RawRecord, context: Context): DroidContent | "unknown" | undefined {
  const type = string(entry.type) ?? ""
  switch (type) {
    case "message":
      return contentOfMessage(record(entry.message) ?? entry, context)
    case "tool_call":
      return contentOfCall(entry, context)
    case "tool_result":
      return contentOfResult(entry, context)
    case "completion":
      return completionOf(entry, context)
    case "compaction_state": {
      const text = string(entry.summaryText) ?? string(entry.summary) ?? string(record(entry.summary)?.text)
      return text === undefined
        ? undefined
        : { role: "system", parts: [{ type: "summary", text, origin: "agent" }], effects: [] }
    }
    case "error": {
      const text = string(entry.message) ?? string(record(entry.error)?.message)
      return text === undefined
        ? undefined
        : { role: "system", parts: [{ type: "text", text, origin: "local_tool" }], effects: [] }
    }
    default:
      return IGNORED_TYPES.includes(type) ? undefined : "unknown"
  }
}

function contentOfMessage(message: RawRecord, context: Context): DroidContent | "unknown" {
  const { role } = message
  if (role !== "user" && role !== "assistant" && role !== "system") return "unknown"
  const plainText = string(message.text) ?? string(message.content)
  const blocks = plainText === undefined ? records(message.content) : [{ type: "text", text: plainText }]
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
    else
      parts.push(...textParts(text, role === "user" ? context.promptOrigin : role === "system" ? "injected" : "agent"))
  }
  const isResult = parts.some(({ type }) => type === "tool_result")
  return { role: role === "user" && isResult ? "tool" : role, parts, effects }
}

function textParts(text: string, origin: Origin): Part[] {
  if (origin === "agent") return [{ type: "text", text, origin }]
  return splitInjected(text, ["system-reminder", "system-notification"]).map((run) => ({
    type: "text",
    text: run.text,
    origin: run.injected ? "injected" : origin,
  }))
}

function callIdOf(entry: RawRecord): string | undefined {
  return string(entry.toolCallId) ?? string(entry.tool_use_id) ?? string(entry.toolUseId) ?? string(entry.id)
}

function contentOfCall(entry: RawRecord, { calls }: Context): DroidContent {
  const id = callIdOf(entry)
  const tool = string(entry.name) ?? string(entry.toolName)
  const args = record(entry.input) ?? record(entry.parameters) ?? {}
  if (id !== undefined) calls.set(id, { tool, args })
  return { role: "assistant", parts: [toolCallPart(tool, args, id)], effects: [] }
}

function contentOfResult(entry: RawRecord, { calls }: Context): DroidContent {
  const id = callIdOf(entry)
  const call = calls.get(id ?? "")
  const value = record(entry.value)
  const output = outputOf(entry.content ?? entry.value)
  const code = /\(exit code: (\d{1,5})\)|\[Process exited with code (\d{1,5})\]/.exec(output)
  const exit_status = number(value?.exitCode) ?? (code ? Number(code[1] ?? code[2]) : undefined)
  const { part, effects } = resultOfCall({
    tool: call?.tool ?? string(entry.toolName) ?? string(entry.toolId),
    call_id: id,
    output,
    commandOutput: output.replace(
      /^Error: Command failed \(exit code: \d{1,5}\)$|^\[Process exited with code \d{1,5}\]$/gm,
      "",
    ),
    failed: entry.is_error === true || entry.isError === true,
    exit_status: exit_status !== undefined && call && isCommand(call) ? exit_status : undefined,
    action: call ? actionByName(TOOLS, call.tool, call.args) : {},
  })
  return { role: "tool", parts: [part], effects }
}

function isCommand({ tool }: DroidCall): boolean {
  return tool !== undefined && TOOLS.command!.includes(tool)
}

/** Returns an output as text. The output may be a string, a list of text blocks, or an object with `stdout` and `stderr`. */
function outputOf(value: unknown): string {
  if (typeof value === "string") return value
  if (Array.isArray(value))
    return records(value)
      .flatMap(({ text }) => string(text) ?? [])
      .join("\n")
  const commandOutput = record(value)
  if (!commandOutput) return ""
  const texts = [commandOutput.stdout, commandOutput.stderr].flatMap((text) => string(text) ?? [])
  return texts.length > 0 ? texts.join("\n") : JSON.stringify(commandOutput)
}

/** Returns the answer in a completion. Returns undefined if it only repeats the last answer. */
function completionOf(entry: RawRecord, { lastMessage }: Context): DroidContent | undefined {
  const text = string(entry.finalText) ?? string(entry.final_text)
  if (text === undefined || (lastMessage?.role === "assistant" && lastMessage.parts.at(-1)?.text === text))
    return undefined
  return { role: "assistant", parts: [{ type: "text", text, origin: "agent" }], effects: [] }
}

/** The output of Droid's PreToolUse does not reach the model, and a failed command calls no hook. */
export const DROID_HOOKS: readonly HookEvent[] = [
  { event: "SessionStart" },
  { event: "UserPromptSubmit" },
  { event: "PostToolUse", tools: "Read" },
]

export const droidWiring: Wiring = {
  signs: ({ home }) => ({ paths: [join(home, ".factory")], program: "droid" }),
  files: (machine, bin) => {
    const folder = join(machine.home, ".factory")
    const additions = [
      ...["SessionStart", "SessionEnd"].flatMap((event) => syncHook(event, bin, "any shell")),
      ...proactiveHooks("droid", DROID_HOOKS, HOOK_TIMEOUT_S, bin, "any shell"),
    ]
    return [
      {
        path: join(folder, "mcp.json"),
        additions: [{ type: "property", path: ["mcpServers", "dex"], value: { type: "stdio", ...serverStart(bin) } }],
      },
      // If this file exists, Droid ignores the hooks in its settings.
      existsSync(join(folder, "hooks.json"))
        ? {
            path: join(folder, "hooks.json"),
            additions: additions.map((addition) => ({ ...addition, path: addition.path.slice(1) })),
          }
        : { path: join(folder, "settings.json"), additions },
      openSkill(machine),
    ]
  },
  note: () => NO_SUBAGENT,
}
