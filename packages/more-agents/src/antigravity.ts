import { join } from "node:path"
import { type CallAction, resultOfCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
import type {
  Connector,
  Cursor,
  Parsed,
  Reading,
  Unit,
  UnitName,
  Unreadable,
  Watched,
} from "../../../src/agents/kit/connector.ts"
import { hunkOfNewFile, hunksOfReplacement } from "../../../src/agents/kit/effects.ts"
import {
  entriesOf,
  objectAt,
  prependFacts,
  type Report,
  type UnitWithFacts,
  unitAt,
  unitWithFacts,
  withProblems,
} from "../../../src/agents/kit/files.ts"
import { readJsonl } from "../../../src/agents/kit/jsonl.ts"
import { cutLongTexts, parsedFrom, splitInjected, uniqueKeys } from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Message, Origin, Part } from "../../../src/core/conversation.ts"
import { number, parseObject, type RawRecord, record, records, string, time } from "../../../src/core/record.ts"
import { antigravityRoots } from "./records.ts"

/**
 * Reads the transcripts that Antigravity writes in addition to its protobuf databases and encrypted files. `transcript_full` is
 * preferred, because the texts in `transcript` are shortened.
 */
export const antigravityConnector: Connector = {
  source: "antigravity",
  version: 1,
  roots: antigravityRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched,
  read,
  parse: parseAntigravity,
  identify,
}

const LOGS = join(".system_generated", "logs")
const TRANSCRIPTS = ["transcript_full.jsonl", "transcript.jsonl"]
const MAX_INDEX_BYTES = 16 << 20

function watched(root: string): Watched[] {
  return [
    { folder: join(root, "brain"), depth: 3, files: /\/logs\/transcript(_full)?\.jsonl$/ },
    { folder: join(root, "cache"), depth: 0, files: /^last_conversations\.json$/ },
  ]
}

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  const folders = foldersIn(join(root, "cache", "last_conversations.json"), report)
  for (const entry of entriesOf(join(root, "brain"), report)) {
    if (!entry.isDirectory()) continue
    const unit = transcriptOf(join(root, "brain", entry.name), entry.name, report)
    const cwd = folders.get(entry.name)
    if (unit) yield unitWithFacts(unit, cwd === undefined ? undefined : { type: "dex-session", cwd })
  }
}

function transcriptOf(folder: string, id: string, report: Report): Unit | undefined {
  for (const name of TRANSCRIPTS) {
    const path = join(folder, LOGS, name)
    const unit = unitAt(path, id, report)
    if (unit) return unit
  }
  return undefined
}

/** Maps the last conversation of each folder to the folder. The folders of older conversations are not recorded anywhere. */
function foldersIn(path: string, report: Report): Map<string, string> {
  const index = objectAt(path, MAX_INDEX_BYTES, report) ?? {}
  return new Map(Object.entries(index).flatMap(([folder, id]) => (string(id) ? [[string(id)!, folder]] : [])))
}

function read(unit: UnitWithFacts, after?: Cursor): Reading {
  return prependFacts(readJsonl(unit.path, after, { strip: (step) => cutLongTexts(step) }), unit, after)
}

function identify(step: RawRecord): string | undefined {
  if (step.type === "dex-session") return "dex-session"
  const stepNumber = number(step.step_index)
  return stepNumber === undefined ? undefined : `${stepNumber} ${step.type} ${step.created_at}`
}

/** Maps the types of result steps to the name of a tool, which is used if the result has no call. */
const RESULT_TOOLS: Record<string, string> = {
  RUN_COMMAND: "run_command",
  COMMAND_STATUS: "command_status",
  VIEW_FILE: "view_file",
  LIST_DIRECTORY: "list_dir",
  CODE_ACTION: "write_to_file",
  GREP_SEARCH: "grep_search",
  FIND: "find_by_name",
  SEARCH_WEB: "search_web",
  READ_URL_CONTENT: "read_url_content",
  GENERIC: "tool",
}
const INJECTED = ["USER_SETTINGS_CHANGE", "ADDITIONAL_METADATA", "USER_INFORMATION", "EPHEMERAL_MESSAGE"]

type Content = Pick<Message, "role" | "parts" | "effects">
/** The calls that have no result yet, oldest first. A result does not name its call, so it is matched with the oldest one. */
type OpenCalls = { calls: (AntigravityCall & { id: string })[]; callCount: number }

function parseAntigravity(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const id = unit.key
  const uniqueKey = uniqueKeys()
  const unknown = createCounts()
  const openCalls: OpenCalls = { calls: [], callCount: 0 }
  const messages: Message[] = []
  const cwds = new Set<string>()
  let model: string | undefined
  for (const step of raw) {
    if (step.type === "dex-session") {
      if (string(step.cwd)) cwds.add(string(step.cwd)!)
      continue
    }
    model = modelIn(step) ?? model
    const contents = contentOf(step, openCalls, cwds)
    if (!contents) unknown.add(string(step.type) ?? "(no type)")
    for (const content of contents ?? []) {
      const at = time(step.created_at)
      const stepNumber = number(step.step_index) ?? messages.length
      messages.push({
        key: uniqueKey(`${id}:${stepNumber}:${content.role}`),
        at,
        model: model !== undefined && content.role === "assistant" ? model : undefined,
        ...content,
      })
    }
  }
  return parsedFrom({ id, cwds, messages }, unknown)
}

/** Returns undefined for an unknown type. */
function contentOf(step: RawRecord, openCalls: OpenCalls, cwds: Set<string>): Content[] | undefined {
  const type = string(step.type) ?? ""
  if (type === "USER_INPUT") return listUnlessEmpty({ role: "user", parts: promptParts(string(step.content) ?? "") })
  if (type === "PLANNER_RESPONSE")
    return listUnlessEmpty({ role: "assistant", parts: answerParts(step, openCalls, cwds) })
  if (type === "SYSTEM_MESSAGE" || type === "CONVERSATION_HISTORY")
    return listUnlessEmpty({ role: "system", parts: textParts(step.content, "injected") })
  if (type === "CHECKPOINT") {
    const text = string(step.content)
    return text === undefined ? [] : [{ role: "system", parts: [{ type: "summary", text, origin: "agent" }] }]
  }
  if (Object.hasOwn(RESULT_TOOLS, type)) {
    const callMessages = listUnlessEmpty({ role: "assistant", parts: callParts(step, openCalls, cwds) })
    return [...callMessages, resultOf(step, RESULT_TOOLS[type]!, openCalls)]
  }
  if (step.source === "MODEL") openCalls.calls.shift() // an unknown type of result also belongs to the oldest call
  return undefined
}

function listUnlessEmpty(content: Content): Content[] {
  return content.parts.length > 0 ? [content] : []
}

function promptParts(content: string): Part[] {
  return splitInjected(content, INJECTED).map(({ text, injected }) => ({
    type: "text",
    text: injected ? text : unwrapRequest(text),
    origin: injected ? "injected" : "person",
  }))
}

function unwrapRequest(text: string): string {
  const [openTag, closeTag] = ["<USER_REQUEST>", "</USER_REQUEST>"]
  return text.startsWith(openTag) && text.endsWith(closeTag)
    ? text.slice(openTag.length, -closeTag.length).trim()
    : text
}

/** Returns the model that the person selected in this step, if any. */
function modelIn({ type, content }: RawRecord): string | undefined {
  if (type !== "USER_INPUT") return undefined
  return /`Model Selection` from [^\n]{1,100}? to ([^\n]{1,100}?)\.?$/m.exec(string(content) ?? "")?.[1]
}

function answerParts(step: RawRecord, openCalls: OpenCalls, cwds: Set<string>): Part[] {
  const thinking = string(step.thinking)
  return [
    ...(thinking === undefined ? [] : [{ type: "thinking", text: thinking, origin: "agent" } as const]),
    ...textParts(step.content, "agent"),
    ...callParts(step, openCalls, cwds),
  ]
}

function callParts(step: RawRecord, openCalls: OpenCalls, cwds: Set<string>): Part[] {
  return records(step.tool_calls).map((raw) => {
    const call = antigravityCall(raw)
    const id = `${number(step.step_index) ?? "step"}.${++openCalls.callCount}`
    openCalls.calls.push({ ...call, id })
    const cwd = string(call.args.Cwd)
    if (cwd !== undefined) cwds.add(cwd)
    return toolCallPart(call.tool, call.args, id)
  })
}

function resultOf(step: RawRecord, tool: string, openCalls: OpenCalls): Content {
  const call = openCalls.calls.shift()
  const text = string(step.content) ?? ""
  const exit = call?.tool === "run_command" || tool === "run_command" ? exitCodeIn(text) : undefined
  const { part, effects } = resultOfCall({
    tool: call?.tool ?? tool,
    call_id: call?.id,
    output: text,
    failed: step.status === "ERROR" || step.status === "error" || step.status === "CANCELED",
    exit_status: exit,
    action: call ? actionOfAntigravity(call) : {},
  })
  return { role: "tool", parts: [part], effects: effects.length > 0 ? effects : undefined }
}

function exitCodeIn(text: string): number | undefined {
  const beginning = text.slice(0, 500)
  const code = /exit code:? (\d{1,5})/i.exec(beginning)?.[1]
  if (code !== undefined) return Number(code)
  return beginning.includes("The command completed successfully") ? 0 : undefined
}

function textParts(content: unknown, origin: Origin): Part[] {
  const text = string(content)
  return text === undefined ? [] : [{ type: "text", text, origin }]
}

type AntigravityCall = { tool: string; args: RawRecord }

/** Parses a call. Each argument is JSON text, or in some versions a plain value. */
function antigravityCall(call: RawRecord): AntigravityCall {
  const args = Object.entries(record(call.args) ?? {}).map(([name, value]) => [name, plainValue(value)] as const)
  return { tool: string(call.name) ?? "unknown", args: Object.fromEntries(args) }
}

function plainValue(value: unknown): unknown {
  if (typeof value !== "string" || !/^["[{]/.test(value)) return value
  return parseObject(`{"value":${value}}`)?.value ?? value
}

const READ_TOOLS = ["view_file", "view_file_outline", "view_code_item"]
const WRITE_TOOLS = ["write_to_file", "write_file"]
const EDIT_TOOLS = ["replace_file_content", "multi_replace_file_content", "edit_file"]

function actionOfAntigravity({ tool, args }: AntigravityCall): CallAction {
  if (tool === "run_command") {
    const command = string(args.CommandLine)
    return command === undefined ? {} : { command }
  }
  const path = string(args.TargetFile) ?? string(args.AbsolutePath) ?? string(args.File)
  if (path === undefined) return {}
  if (READ_TOOLS.includes(tool)) return { reads: [path] }
  if (WRITE_TOOLS.includes(tool))
    return typeof args.CodeContent === "string" ? { hunks: [hunkOfNewFile(path, args.CodeContent)] } : {}
  if (!EDIT_TOOLS.includes(tool)) return {}
  const chunks = records(args.ReplacementChunks)
  return {
    hunks: (chunks.length > 0 ? chunks : [args]).flatMap(({ TargetContent, ReplacementContent }) =>
      hunksOfReplacement(path, TargetContent, ReplacementContent),
    ),
  }
}
