import type { Conversation, Effect, Hunk, Message, Origin, Part } from "../../core/conversation.ts"
import { CONTEXT_TAG } from "../../core/conversation.ts"
import { array, isRecord, number, type RawRecord, record, records, string, time } from "../../core/record.ts"
import type { Usage } from "../../core/usage.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import {
  commandEffect,
  commitEffects,
  editEffects,
  fileEffect,
  hunkOfNewFile,
  hunksOfDiff,
  hunksOfReplacement,
  toolOrigin,
} from "../kit/effects.ts"
import { imagePart, spanOf, splitInjected, type TextRun } from "../kit/messages.ts"

type GeminiSession = {
  unit: UnitName
  root: string | undefined
  header: RawRecord
  messages: Map<string, RawRecord>
  abandoned: Set<string>
  unknown: Map<string, number>
}

const MESSAGE_TYPES = new Set(["user", "gemini", "info", "warning", "error"])

/**
 * Replays the log of patches: a rewritten message replaces its earlier version, and rewound messages stay readable.
 * `$set.messages` is the history that the model receives after a compression, a masking of long outputs or a resume. It is
 * shorter than the conversation, but not because the person went back. So its new messages are added, and none are removed.
 */
export function parseGemini(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const session: GeminiSession = {
    unit,
    root: undefined,
    header: {},
    messages: new Map(),
    abandoned: new Set(),
    unknown: new Map(),
  }
  for (const line of raw) handleRecord(session, line)
  const messages = messagesOf(session)
  const conversations = messages.length === 0 ? [] : [conversationOf(session, messages)]
  return { conversations, unknown: Object.fromEntries(session.unknown) }
}

function handleRecord(session: GeminiSession, line: RawRecord): void {
  const patch = record(line.$set)
  const id = string(line.id)
  if (line.type === "dex-project") session.root = string(line.root)
  else if (typeof line.$rewindTo === "string") rewind(session, line.$rewindTo)
  else if (patch) {
    const { messages, ...rest } = patch
    session.header = { ...session.header, ...rest }
    for (const message of records(messages)) {
      const messageId = string(message.id)
      if (!messageId || !MESSAGE_TYPES.has(String(message.type))) countUnknown(session, `$set.messages/${message.type}`)
      else if (session.messages.has(messageId)) session.abandoned.delete(messageId)
      else session.messages.set(messageId, message)
    }
  } else if (id && MESSAGE_TYPES.has(String(line.type))) putMessage(session, id, line)
  else if (string(line.sessionId)) session.header = { ...line, ...session.header, lastUpdated: line.lastUpdated }
  else countUnknown(session, typeof line.type === "string" ? line.type : "(no type)")
}

function putMessage(session: GeminiSession, id: string, message: RawRecord): void {
  session.header.sessionId ??= message.dex_session
  const earlierVersion = session.messages.get(id)
  // the message was written again after a rewind, so it moves to the end
  if (session.abandoned.delete(id)) session.messages.delete(id)
  session.messages.set(id, { ...earlierVersion, ...message })
}

/** Marks a message and everything after it as abandoned, or all messages if it is not found. */
function rewind(session: GeminiSession, target: string): void {
  const activeIds = [...session.messages.keys()].filter((id) => !session.abandoned.has(id))
  for (const id of activeIds.slice(Math.max(0, activeIds.indexOf(target)))) session.abandoned.add(id)
}

function countUnknown(session: GeminiSession, type: string): void {
  session.unknown.set(type, (session.unknown.get(type) ?? 0) + 1)
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

function messagesOf(session: GeminiSession): Message[] {
  const answeredIds = new Set<string>()
  for (const message of session.messages.values()) {
    for (const call of records(message.toolCalls)) if (string(call.id) && call.result) answeredIds.add(String(call.id))
  }
  const messages: Message[] = []
  for (const [id, raw] of session.messages) {
    const { role, parts, effects } = contentOf(session, raw, answeredIds)
    if (parts.length === 0) continue
    const at = time(raw.timestamp)
    const model = string(raw.model)
    const usage = geminiUsage(record(raw.tokens))
    messages.push({
      // Other ids are hashes of a text, such as the session's context, so several sessions may have the same id.
      key: UUID.test(id) ? id : `${idOf(session)}:${id}`,
      role,
      at,
      model: model || undefined,
      parts,
      effects: effects.length > 0 ? effects : undefined,
      usage,
      abandoned: session.abandoned.has(id) ? true : undefined,
    })
  }
  return messages
}

type Content = Pick<Message, "role" | "parts"> & { effects: Effect[] }

function contentOf(session: GeminiSession, raw: RawRecord, answeredIds: Set<string>): Content {
  const pieces = partsOf(raw.content)
  if (raw.type === "user") {
    const speaker: Origin = isSubagent(session) ? "agent" : "person"
    const prompt = readPrompt(pieces, partsOf(raw.displayContent), speaker)
    const results = resultParts(pieces, answeredIds)
    return { role: roleOf(prompt, results), parts: [...prompt.parts, ...results], effects: [] }
  }
  if (raw.type !== "gemini") return { role: "system", parts: textParts(pieces, "local_tool"), effects: [] }
  const thoughts = records(raw.thoughts).flatMap(thoughtPart)
  const calls = records(raw.toolCalls)
  const callIds = new Set(calls.map(({ id }) => id))
  const requests = pieces.flatMap((piece): Part[] => {
    const call = record(piece.functionCall)
    return call && !callIds.has(call.id) ? [callPart(call)] : []
  })
  const outcomes = calls.map(callContent)
  return {
    role: "assistant",
    parts: [...thoughts, ...textParts(pieces, "agent"), ...requests, ...outcomes.flatMap(({ parts }) => parts)],
    effects: outcomes.flatMap(({ effects }) => effects),
  }
}

function roleOf(prompt: PromptParts, results: Part[]): Message["role"] {
  if (prompt.isSummary) return "system"
  return prompt.parts.length === 0 && results.length > 0 ? "tool" : "user"
}

function partsOf(content: unknown): RawRecord[] {
  if (typeof content === "string") return [{ text: content }]
  if (isRecord(content)) return [content]
  return array(content).flatMap((piece) =>
    typeof piece === "string" ? [{ text: piece }] : isRecord(piece) ? [piece] : [],
  )
}

function textParts(pieces: RawRecord[], origin: Origin): Part[] {
  return pieces.flatMap((piece): Part[] => {
    if (record(piece.inlineData)) return [imagePart(piece.inlineData, origin)]
    const text = string(piece.text)
    if (!text || text.trim() === "") return []
    return piece.thought === true ? [{ type: "thinking", text, origin: "agent" }] : [{ type: "text", text, origin }]
  })
}

function thoughtPart(thought: RawRecord): Part[] {
  const text = [thought.subject, thought.description].flatMap((line) => string(line) ?? []).join(": ")
  return text === "" ? [] : [{ type: "thinking", text, origin: "agent" }]
}

/**
 * Returns a user message's results, except those that a tool call also contains. Gemini CLI writes most results in both places.
 */
function resultParts(pieces: RawRecord[], answeredIds: Set<string>): Part[] {
  return pieces.flatMap((piece): Part[] => {
    const response = record(piece.functionResponse)
    if (!response || answeredIds.has(String(response.id))) return []
    const { parts } = resultOf([piece], string(response.name) ?? "unknown", string(response.id), false)
    return parts
  })
}

function callPart(call: RawRecord): Part {
  const id = string(call.id)
  const tool = string(call.name) ?? "unknown"
  return { type: "tool_call", text: JSON.stringify(call.args ?? {}), origin: "agent", tool, call_id: id || undefined }
}

/** Returns a call with its result and its effects. */
function callContent(call: RawRecord): { parts: Part[]; effects: Effect[] } {
  const tool = string(call.name) ?? "unknown"
  const id = string(call.id)
  const status = string(call.status)
  const isStopped = status === "error" || status === "cancelled"
  const isRemote = /MCP Server\)$/.test(string(call.displayName) ?? "")
  const { parts, text } = resultOf(partsOf(call.result), tool, id, isRemote)
  const result = parts.find((part) => part.type === "tool_result")
  const exitCode = tool === "run_shell_command" ? exitStatusIn(text) : undefined
  const failed = isStopped || (exitCode !== undefined && exitCode !== 0)
  if (result) result.is_error ||= failed
  const args = record(call.args) ?? {}
  const hunks = !failed && status === "success" ? hunksOf(tool, args, call, text) : []
  if (result && hunks.length > 0) result.hunks = hunks
  const effects: Effect[] = [...editEffects(hunks, id)]
  const path = string(args.file_path) ?? string(args.absolute_path) ?? string(args.path)
  if (tool === "read_file" && path) effects.push(fileEffect(path, "read", id))
  const command = tool === "run_shell_command" ? string(args.command) : undefined
  if (command) {
    effects.push(commandEffect(command, { call_id: id, exit_status: exitCode, failed, output: outputIn(text) }))
    if (!failed) effects.push(...commitEffects(command, text, id))
  }
  return { parts: [callPart(call), ...parts], effects }
}

/** Builds the parts of a result. Text that hooks added to it becomes a separate part, because it is not the tool's output. */
function resultOf(pieces: RawRecord[], tool: string, id: string | undefined, isRemote: boolean) {
  if (pieces.length === 0) return { parts: [], text: "" }
  let isError = false
  const images: Part[] = []
  const origin = isRemote ? "web" : toolOrigin(tool)
  const texts = pieces.flatMap((piece) => {
    const response = record(piece.functionResponse)
    const fields = record(response?.response)
    if (fields?.error !== undefined) isError = true
    for (const inner of [piece, ...records(response?.parts)]) {
      if (record(inner.inlineData)) images.push(imagePart(inner.inlineData, origin))
    }
    return [string(piece.text), fields && textOfResponse(fields)].flatMap((text) => text ?? [])
  })
  const combined = texts.join("\n")
  const hasHookText = combined.includes("<hook_context")
  const runs = hasHookText ? splitInjected(combined, ["hook_context"]) : [{ text: combined, injected: false }]
  const unwrap = (text: string) => text.replace(/^<untrusted_context>\n?|\n?<\/untrusted_context>$/g, "")
  const text = runs.flatMap((run) => (run.injected ? [] : unwrap(run.text))).join("\n")
  const callField = id === undefined ? {} : { call_id: id }
  const result: Part = { type: "tool_result", text, origin, tool, ...callField, is_error: isError }
  const hooks = runs.flatMap((run): Part[] =>
    run.injected ? [{ type: "text", text: run.text, origin: "injected" }] : [],
  )
  return { parts: [result, ...images, ...hooks], text }
}

function textOfResponse(fields: RawRecord): string {
  return string(fields.output) ?? string(fields.error) ?? (fields.output === "" ? "" : JSON.stringify(fields))
}

/** Removes the lines that Gemini CLI writes around the output, which do not say what went wrong. */
function outputIn(text: string): string {
  const lines = text.replace(/^Output: /m, "").split("\n")
  const wrapperLine =
    /^(?:Command|Directory|Exit Code|Signal|Background PIDs|Process Group PGID): |^Error: \(none\)$|^\(empty\)$/
  return lines.filter((line) => !wrapperLine.test(line)).join("\n")
}

/** The exit status is written below the output, so the last match is the genuine one. */
function exitStatusIn(text: string): number | undefined {
  const codes = [...text.matchAll(/^Exit Code: (-?\d{1,10})$/gm)]
  return codes.length === 0 ? undefined : Number(codes.at(-1)![1])
}

function hunksOf(tool: string, args: RawRecord, call: RawRecord, output: string): Hunk[] {
  const path = string(args.file_path) ?? string(args.path)
  if (!path || !/^(write_file|replace|edit)$/.test(tool)) return []
  const diff = string(record(call.resultDisplay)?.fileDiff)
  if (diff) return hunksOfDiff(diff, path)
  const content = string(args.content)
  if (content !== undefined) return /new file/i.test(output) ? [hunkOfNewFile(path, content)] : []
  return hunksOfReplacement(path, args.old_string, args.new_string)
}

/** Converts token counts. The input count includes cached tokens. The output count excludes thoughts, which cost the same. */
function geminiUsage(tokens: RawRecord | undefined): Usage | undefined {
  const countOf = (field: string) => number(tokens?.[field]) ?? 0
  if (countOf("input") + countOf("output") + countOf("thoughts") === 0) return undefined
  return {
    input: Math.max(0, countOf("input") - countOf("cached")) + countOf("tool"),
    output: countOf("output") + countOf("thoughts"),
    cache_read: countOf("cached"),
    cache_write: 0,
    reasoning: countOf("thoughts"),
  }
}

function isSubagent({ header, unit }: GeminiSession): boolean {
  return header.kind === "subagent" || unit.key.split("/").length > 3
}

/** Returns the parent's id in a subagent's key, which is `<project>/chats/<parent>/<id>.jsonl`. */
function parentOf({ unit }: GeminiSession): string | undefined {
  const segments = unit.key.split("/")
  return segments.length > 3 ? segments.at(-2) : undefined
}

function idOf({ header, unit }: GeminiSession): string {
  return (
    string(header.sessionId) ??
    unit.key
      .split("/")
      .at(-1)!
      .replace(/\.jsonl?$/, "")
  )
}

function conversationOf(session: GeminiSession, messages: Message[]): Conversation {
  const { header, root, unit } = session
  const parent = parentOf(session)
  const summary = string(header.summary)
  const directories = array(header.directories).flatMap((path) => string(path) ?? [])
  const cwds = [root ?? folderIn(messages), ...directories].flatMap((path) => path ?? [])
  return {
    id: idOf(session),
    kind: isSubagent(session) ? "subagent" : "person",
    title: summary ? { text: summary, from: "agent" } : undefined,
    cwds: [...new Set(cwds)],
    parent: parent ? { id: parent } : undefined,
    ...spanOf([time(header.startTime), ...messages.map(({ at }) => at)]),
    messages,
    authority: authorityOf(unit.key),
  }
}

/**
 * Returns the authority of a file, which decides which of a session's two files is shown. A session that began as `.json`
 * continues in a `.jsonl`, and project folders were copied from hashed to short names: in both cases the old file remains.
 */
function authorityOf(key: string): number {
  const isHashed = /^[0-9a-f]{64}\//.test(key)
  return (key.endsWith(".json") ? 9 : 10) - (isHashed ? 2 : 0)
}

/** Finds the workspace that Gemini CLI names in the context before the first prompt. */
function folderIn(messages: Message[]): string | undefined {
  for (const part of messages[0]?.parts ?? []) {
    if (part.origin !== "injected") continue
    const match = /Workspace Directories:\*\*\n {2}- (.{1,4000})$/m.exec(part.text)
    if (match) return match[1]!.trim()
  }
  return undefined
}

type PromptParts = { parts: Part[]; isSummary: boolean }

/** Tags that Gemini CLI and its hooks insert into the user's turn. */
const INJECTED_TAGS = [
  CONTEXT_TAG,
  "session_context",
  "hook_context",
  "loaded_context",
  "project_context",
  "environment_context",
]
const INJECTED_OPENINGS = [
  "This is the Gemini CLI. We are setting up the context for our chat.",
  "Here is the user's editor context",
  "Here is a summary of changes in the user's editor context",
  "System: Please continue.",
]
const FILES_BEGIN = "--- Content from referenced files ---"
const FILES_END = "--- End of content ---"

/**
 * Splits a user message without its tool results. `displayed` is the prompt as the person saw it, if Gemini CLI recorded that.
 * Everything else was then added by Gemini CLI (files named with @, a command's template).
 */
function readPrompt(pieces: RawRecord[], displayed: RawRecord[], speaker: Origin): PromptParts {
  const texts = pieces.flatMap((piece) => string(piece.text) ?? [])
  const combined = texts.join("\n").trim()
  if (combined.startsWith("<state_snapshot>")) {
    return { parts: [{ type: "summary", text: combined, origin: "agent" }], isSummary: true }
  }
  const images = pieces.filter((piece) => record(piece.inlineData)).map((piece) => imagePart(piece.inlineData, speaker))
  const shownText = displayed.flatMap((piece) => string(piece.text) ?? []).join("\n")
  const runs = splitPieces(texts).map((run) => ({ ...run, injected: run.injected || !isShown(run.text, shownText) }))
  const shownOnlyRuns = splitPieces([shownText]).filter(
    (run) => !run.injected && !runs.some((other) => isPartOf(other, run)),
  )
  const parts = [...shownOnlyRuns, ...runs].map(
    (run): Part => ({ type: "text", text: run.text, origin: run.injected ? "injected" : speaker }),
  )
  return { parts: [...parts, ...images], isSummary: false }
}

function isShown(text: string, shownText: string): boolean {
  return shownText === "" || shownText.includes(text)
}

function isPartOf(run: TextRun, shownRun: TextRun): boolean {
  return !run.injected && (shownRun.text.includes(run.text) || run.text.includes(shownRun.text))
}

/** Separates the typed text from the files that the person named, which follow it as separate pieces or in the same text. */
function splitPieces(texts: string[]): TextRun[] {
  let inFiles = false
  return texts.flatMap((text) => {
    if (inFiles) {
      inFiles = !text.includes(FILES_END)
      return injectedRun(text)
    }
    const begin = text.indexOf(FILES_BEGIN)
    if (begin === -1) return splitText(text)
    const end = text.indexOf(FILES_END, begin)
    inFiles = end === -1
    const restStart = end === -1 ? text.length : end + FILES_END.length
    return [
      ...splitText(text.slice(0, begin)),
      ...injectedRun(text.slice(begin, restStart)),
      ...splitText(text.slice(restStart)),
    ]
  })
}

function splitText(text: string): TextRun[] {
  if (INJECTED_OPENINGS.some((opening) => text.trimStart().startsWith(opening))) return injectedRun(text)
  return splitInjected(text, INJECTED_TAGS)
}

function injectedRun(text: string): TextRun[] {
  return text.trim() === "" ? [] : [{ text: text.trim(), injected: true }]
}
