import { dirname, join } from "node:path"
import type { Connector, Machine, Parsed, UnitName } from "../../../src/agents/kit/connector.ts"
import {
  commandEffect,
  commitEffects,
  editEffects,
  fileEffect,
  hunkOfNewFile,
  hunksOfReplacement,
  parsePatch,
  patchIn,
  toolOrigin,
} from "../../../src/agents/kit/effects.ts"
import { readLines, unitsBelow, withProblems } from "../../../src/agents/kit/files.ts"
import {
  cutLongTexts,
  digestOf,
  imagePart,
  parsedFrom,
  splitAddedText,
  uniqueKeys,
  usageFrom,
} from "../../../src/agents/kit/messages.ts"
import { openSkill, pluginCode, type Wiring } from "../../../src/agents/kit/wiring.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Effect, Hunk, Message, Origin, Part } from "../../../src/core/conversation.ts"
import { withoutUndefined } from "../../../src/core/defined.ts"
import { array, number, type RawRecord, record, records, string, time } from "../../../src/core/record.ts"
import type { Usage } from "../../../src/core/usage.ts"
import { piRoots } from "./records.ts"

/** Reads Pi: one file per session, in a folder named after its working directory. A session is a tree of entries. */
export const piConnector: Connector = {
  source: "pi",
  version: 3,
  roots: piRoots,
  discover: (root) => withProblems((report) => unitsBelow(root, /\/.*\.jsonl$/, 1, report)),
  watched: (root) => [{ folder: root, depth: 1, files: /\.jsonl$/ }],
  read: readLines(stripPiEntry),
  parse: parsePi,
  identify,
}

function identify(entry: RawRecord): string | undefined {
  const id = string(entry.id)
  return id && `${entry.type} ${id}`
}

/** Removes image bytes, signatures, and all details of a result except its diff and exit code. */
export function stripPiEntry(entry: RawRecord): RawRecord {
  const message = record(entry.message)
  if (!message) return cutLongTexts(entry)
  const { details, ...rest } = message
  const { diff, exitCode } = record(details) ?? {}
  const storedDetails = withoutUndefined({ diff, exitCode })
  const content = Array.isArray(rest.content) ? { content: records(rest.content).map(stripPart) } : {}
  return cutLongTexts({
    ...entry,
    message: {
      ...rest,
      ...content,
      ...withoutUndefined({ details: Object.keys(storedDetails).length > 0 ? storedDetails : undefined }),
    },
  })
}

function stripPart({ thinkingSignature: _, textSignature: __, thoughtSignature: ___, ...part }: RawRecord): RawRecord {
  if (part.type !== "image" || typeof part.data !== "string") return part
  const { data, ...rest } = part
  return { ...rest, image: digestOf(Buffer.from(data, "base64"), string(part.mimeType)) }
}

/** Adapts Pi's connector to omp, which stores a session's title in the file's first line and rewrites that line in place. */
export function ompDifferences(parent: Connector): Partial<Connector> {
  return {
    parse: (raw, unit) => {
      const records = [...raw]
      const { conversations, unknown } = parent.parse(records, unit)
      const text = string(records.findLast(({ type }: RawRecord) => type === "title")?.title)
      const titledConversations = conversations.map((one) =>
        text === undefined || one.title ? one : { ...one, title: { text, from: "agent" as const } },
      )
      return { conversations: titledConversations, unknown }
    },
  }
}

/** Types of entries without content. */
const IGNORED_TYPES = ["session", "session_info", "model_change", "thinking_level_change", "label", "custom", "title"]
const KNOWN_TYPES = [...IGNORED_TYPES, "message", "compaction", "branch_summary", "custom_message"]

/** The differences between the agents that write Pi's file format. */
export type PiDialect = {
  /** The names of the tools that run commands, and of those that read or change files. */
  tools: Record<"command" | "read" | "write" | "edit", readonly string[]>
  /** Splits a message from the person, into which the agent may insert its own text. */
  promptParts(text: string): Part[]
}

const PI: PiDialect = {
  tools: { command: ["bash"], read: ["read"], write: ["write"], edit: ["edit"] },
  promptParts: (text) => [{ type: "text", text, origin: "person" }],
}

/** A tool call. A separate message contains its result. */
type Call = { tool: string; kind?: keyof PiDialect["tools"]; args: RawRecord }

export function parsePi(raw: Iterable<RawRecord>, unit: UnitName, dialect = PI): Parsed {
  const entries = [...raw]
  const header = entries.find(({ type }) => type === "session") ?? {}
  const calls = callsIn(entries, dialect)
  const abandonedIds = abandonedIn(entries)
  const keyOf = keysFor(string(header.id) ?? unit.key)
  const unknown = createCounts()
  const messages: Message[] = []
  for (const entry of entries) {
    const content = contentOf(entry, calls, dialect)
    if (content === "unknown") unknown.add(typeOf(entry))
    else if (content && content.parts.length > 0) {
      const at = time(entry.timestamp) ?? time(record(entry.message)?.timestamp)
      const key = keyOf(entry, content.role)
      messages.push({
        key,
        at,
        ...content,
        abandoned: abandonedIds.has(string(entry.id) ?? "") ? true : undefined,
      })
    }
  }
  const nameEntry = entries.findLast(({ type, name }) => type === "session_info" && string(name))
  const fields = {
    id: string(header.id) ?? idIn(unit.key) ?? unit.key,
    title: nameEntry && { text: string(nameEntry.name)!, from: "person" },
    cwd: header.cwd,
    fork_of: idIn(string(header.parentSession) ?? string(header.branchedFrom) ?? ""),
    times: [header.timestamp],
    messages,
  }
  return parsedFrom(fields, unknown)
}

function typeOf(entry: RawRecord): string {
  const type = string(entry.type) ?? "(no type)"
  return type === "message" ? `message/${string(record(entry.message)?.role) ?? "(no role)"}` : type
}

/**
 * Returns a function that builds the keys of entries. A fork copies entries unchanged, so an entry's timestamp and short id
 * identify it in both files. The first versions had no ids, and some entries have no timestamp. Entries that would have the
 * same key are numbered.
 */
function keysFor(session: string): (entry: RawRecord, role: string) => string {
  const unique = uniqueKeys()
  return (entry, role) => {
    const [id, at] = [string(entry.id), string(entry.timestamp)]
    return unique(at === undefined ? `${session}:${id ?? role}` : `${at}:${id ?? role}`)
  }
}

/**
 * Finds abandoned entries. Every entry names its predecessor, and the last entry is the current position of the session, so
 * entries that are not on the path to it are abandoned. A tool's result may name its call as predecessor, instead of the entry
 * that contains the call.
 */
function abandonedIn(entries: RawRecord[]): Set<string> {
  const entryOfCall = new Map(
    entries.flatMap(({ id, message }) => records(record(message)?.content).map((part) => [part.id, id] as const)),
  )
  const entriesWithId = entries.filter(({ id }) => string(id))
  const ids = new Set(entriesWithId.map(({ id }) => id))
  const parents = new Map(
    entriesWithId.map(({ id, parentId }) => [string(id)!, ids.has(parentId) ? parentId : entryOfCall.get(parentId)]),
  )
  const last = entries.findLast(
    ({ type, id }) => type !== "session" && KNOWN_TYPES.includes(String(type)) && string(id),
  )
  const activeIds = new Set<unknown>()
  for (let id: unknown = last?.id; parents.has(id as string) && !activeIds.has(id); id = parents.get(id as string))
    activeIds.add(id)
  return new Set([...parents.keys()].filter((id) => activeIds.size > 0 && !activeIds.has(id)))
}

function callsIn(entries: RawRecord[], { tools }: PiDialect): Map<string, Call> {
  const kinds = Object.keys(tools) as (keyof typeof tools)[]
  const kindOf = (tool: string) => kinds.find((kind) => tools[kind].includes(tool))
  const callOf = (tool: string, args: unknown): Call => {
    const kind = kindOf(tool)
    return { tool, kind, args: record(args) ?? {} }
  }
  const calls = entries.flatMap((entry) => records(record(entry.message)?.content))
  return new Map(
    calls.flatMap(({ type, id, name, arguments: args }) =>
      type === "toolCall" && string(id) ? [[string(id)!, callOf(string(name) ?? "unknown", args)] as const] : [],
    ),
  )
}

type Content = Pick<Message, "role" | "parts" | "effects" | "model" | "usage">

/** Returns undefined for an entry without content. */
function contentOf(entry: RawRecord, calls: Map<string, Call>, dialect: PiDialect): Content | "unknown" | undefined {
  const type = string(entry.type) ?? ""
  if (type === "message") return messageOf(record(entry.message) ?? {}, calls, dialect)
  if (type === "compaction" || type === "branch_summary") {
    const summary = string(entry.summary)
    return summary === undefined
      ? undefined
      : { role: "system", parts: [{ type: "summary", text: summary, origin: "agent" }] }
  }
  if (type === "custom_message") return { role: "system", parts: textParts(entry.content, "injected") }
  return IGNORED_TYPES.includes(type) ? undefined : "unknown"
}

function messageOf(message: RawRecord, calls: Map<string, Call>, dialect: PiDialect): Content | "unknown" {
  switch (message.role) {
    case "user":
      return {
        role: "user",
        parts: textParts(message.content, "person").flatMap((part) =>
          part.type === "text" ? dialect.promptParts(part.text) : [part],
        ),
      }
    case "assistant":
      return answerContent(message)
    case "toolResult":
      return resultOf(message, calls)
    case "bashExecution":
      return commandOf(message)
    case "system":
    case "custom":
      return { role: "system", parts: [...textParts(message.content, "injected"), ...sectionsOf(message.sections)] }
    case "branchSummary":
    case "compactionSummary": {
      const text = string(message.summary)
      return { role: "system", parts: text === undefined ? [] : [{ type: "summary", text, origin: "agent" }] }
    }
    default:
      return "unknown"
  }
}

function answerContent(message: RawRecord): Content {
  const model = string(message.model)
  const usage = piUsage(record(message.usage))
  const problem = string(message.errorMessage)
  const parts = records(message.content).flatMap((part): Part[] => {
    const text = string(part.text) ?? string(part.thinking)
    if (part.type === "toolCall") return [callPart(part)]
    if (part.type === "image") return [imagePart(part.image, "agent")]
    if (text === undefined) return []
    return [{ type: part.type === "thinking" ? "thinking" : "text", text, origin: "agent" }]
  })
  const content = typeof message.content === "string" ? textParts(message.content, "agent") : parts
  return {
    role: "assistant",
    parts: problem === undefined ? content : [...content, { type: "text", text: problem, origin: "local_tool" }],
    model,
    usage,
  }
}

function callPart(part: RawRecord): Part {
  const id = string(part.id)
  return {
    type: "tool_call",
    text: JSON.stringify(part.arguments ?? {}),
    origin: "agent",
    tool: string(part.name) ?? "unknown",
    call_id: id,
  }
}

function resultOf(message: RawRecord, calls: Map<string, Call>): Content {
  const id = string(message.toolCallId)
  const call = calls.get(id ?? "")
  const tool = string(message.toolName) ?? call?.tool
  const is_error = message.isError === true
  const origin = toolOrigin(tool)
  const content = textParts(message.content, origin)
  const { text, added } = splitAddedText(content.map((part) => part.text).join("\n"))
  const hunks = call && !is_error ? hunksOf(call) : []
  const exit = number(record(message.details)?.exitCode)
  const effects = call ? [...effectsOf(call, { text, failed: is_error, exit }, id), ...editEffects(hunks, id)] : []
  const result: Part = {
    type: "tool_result",
    text,
    origin,
    tool,
    call_id: id,
    is_error,
    hunks: hunks.length > 0 ? hunks : undefined,
  }
  const images = content.filter(({ type }) => type === "image")
  return { role: "tool", parts: [result, ...images, ...added], effects: effects.length > 0 ? effects : undefined }
}

/** Parses a command that the person ran. */
function commandOf(message: RawRecord): Content {
  const command = string(message.command)
  if (command === undefined) return { role: "tool", parts: [] }
  const output = string(message.output) ?? ""
  const exit_status = number(message.exitCode)
  const failed = exit_status !== undefined && exit_status !== 0
  return {
    role: "tool",
    parts: [
      { type: "tool_result", text: `$ ${command}\n${output}`, origin: "local_tool", tool: "bash", is_error: failed },
    ],
    effects: [commandEffect(command, { exit_status, output }), ...(failed ? [] : commitEffects(command, output))],
  }
}

type Outcome = { text: string; failed: boolean; exit: number | undefined }

function effectsOf({ kind, args }: Call, { text, failed, exit }: Outcome, call_id: string | undefined): Effect[] {
  const command = kind === "command" ? string(args.command) : undefined
  if (command !== undefined) {
    const printedCode = /^\(?Command exited with code (\d{1,5})\)?$/m.exec(text)?.[1]
    const exit_status = exit ?? (printedCode === undefined ? undefined : Number(printedCode))
    const outcome = {
      failed: failed || (exit ?? 0) !== 0,
      output: text,
      exit_status,
      call_id,
    }
    return [commandEffect(command, outcome), ...(outcome.failed ? [] : commitEffects(command, text, call_id))]
  }
  const path = pathOf(args)
  return kind === "read" && path !== undefined ? [fileEffect(path, "read", call_id)] : []
}

function pathOf(args: RawRecord): string | undefined {
  return string(args.path) ?? string(args.file_path) ?? string(args.filePath)
}

function hunksOf({ tool, kind, args }: Call): Hunk[] {
  if (tool === "apply_patch") return parsePatch(patchIn(string(args.input) ?? string(args.patch) ?? "") ?? "").hunks
  const path = pathOf(args)
  if (path === undefined) return []
  if (kind === "write") return typeof args.content === "string" ? [hunkOfNewFile(path, args.content)] : []
  if (kind !== "edit") return []
  const edits = array(args.edits).length > 0 ? records(args.edits) : [args]
  return edits.flatMap((edit) =>
    hunksOfReplacement(path, edit.oldText ?? edit.old_string, edit.newText ?? edit.new_string),
  )
}

function textParts(content: unknown, origin: Origin): Part[] {
  const pieces = typeof content === "string" ? [{ type: "text", text: content }] : records(content)
  return pieces.flatMap((piece: RawRecord): Part[] => {
    if (piece.type === "image") return [imagePart(piece.image, origin)]
    const text = string(piece.text)
    return text === undefined ? [] : [{ type: "text", text, origin }]
  })
}

/** Parses the system prompt that Pi writes before the first message. */
function sectionsOf(sections: unknown): Part[] {
  const texts = Object.values(record(sections) ?? {}).flatMap((text) => string(text) ?? [])
  return texts.length === 0 ? [] : [{ type: "text", text: texts.join("\n\n"), origin: "injected" }]
}

function piUsage(usage: RawRecord | undefined): Usage | undefined {
  return usageFrom({
    input: usage?.input,
    output: usage?.output,
    cache_read: usage?.cacheRead,
    cache_write: usage?.cacheWrite,
    reasoning: usage?.reasoning,
    cost: record(usage?.cost)?.total,
  })
}

/** Returns the id in the name of a session's file, which consists of a time and the id. */
function idIn(path: string): string | undefined {
  return /_([\w-]+)\.jsonl$/.exec(path)?.[1]
}

/** Pi has no servers for MCP, so its agent uses dex in the shell, as the skill says. */
export const piWiring: Wiring = {
  signs: (machine) => ({ paths: [piFolder(machine)], program: "pi" }),
  files: (machine, bin) => [
    ...(bin.hook === undefined
      ? []
      : [
          {
            path: join(piFolder(machine), "extensions", "dex.js"),
            additions: [{ type: "file" as const, content: piExtension(bin.hook, bin.windows?.node) }],
          },
        ]),
    openSkill(machine),
  ],
  note: () => "no tools and no sub-agent: Pi does not use MCP servers. Its agent runs `dex search` in the shell",
}

function piFolder(machine: Machine): string {
  return dirname(piRoots(machine)[0]!)
}

/** Returns the code of an extension that Pi loads. It imports only Node's modules and never throws. */
function piExtension(hook: string, node?: string): string {
  return `${pluginCode("pi", hook, node)}
export default function (pi) {
  const started = new Set()
  const callerOf = ({ cwd, sessionManager }) => ({
    session_id: sessionManager.getSessionId(),
    cwd,
    transcript_path: sessionManager.getSessionFile(),
  })
  pi.on("before_agent_start", async ({ prompt }, context) => {
    try {
      const input = { ...callerOf(context), prompt }
      const isFirst = !started.has(input.session_id)
      started.add(input.session_id)
      const said = await Promise.all([isFirst ? ask("session.start", input) : "", ask("chat.message", input)])
      const content = said.filter(Boolean).join("\\n")
      if (content) return { message: { customType: "dex", content, display: false } }
    } catch {}
  })
  pi.on("tool_result", async ({ toolName, input, content, isError }, context) => {
    try {
      const output = content.map(({ text }) => text ?? "").join("\\n")
      const exit = /\\n*Command exited with code (\\d+)\\s*$/.exec(output)
      const isRead = toolName === "read" && !isError
      if (!isRead && !(toolName === "bash" && isError && exit)) return
      const said = await ask("tool.execute.after", {
        ...callerOf(context),
        tool_name: toolName,
        tool_input: { filePath: input.path, command: input.command },
        ...(!isRead && { exit: Number(exit[1]), output: output.slice(0, exit.index) }),
      })
      if (said) return { content: [...content, { type: "text", text: said }] }
    } catch {}
  })
}
`
}
