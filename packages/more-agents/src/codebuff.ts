import { join } from "node:path"
import {
  actionByName,
  type CallAction,
  resultOfCall,
  type ToolNames,
  toolCallPart,
} from "../../../src/agents/kit/calls.ts"
import type {
  Connector,
  Cursor,
  Parsed,
  Reading,
  Skipped,
  Unit,
  UnitName,
  Unreadable,
} from "../../../src/agents/kit/connector.ts"
import { readingOfRows } from "../../../src/agents/kit/database-units.ts"
import { hunksOfReplacement } from "../../../src/agents/kit/effects.ts"
import { objectAt, type Report, subfolders, textAt, unitAt, withProblems } from "../../../src/agents/kit/files.ts"
import { cutLongTexts, imagePart, parsedFrom, uniqueKeys } from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Effect, Message, Part } from "../../../src/core/conversation.ts"
import { array, parseArray, type RawRecord, record, records, string, time } from "../../../src/core/record.ts"
import { codebuffRoots } from "./records.ts"

/** Reads Codebuff: a folder for each chat, with the messages of its window and the state of its last run. */
export const codebuffConnector: Connector = {
  source: "codebuff",
  version: 1,
  roots: codebuffRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched: (root) => [{ folder: root, depth: 3, files: /^[^/]+\/chats\/[^/]+\/chat-messages\.json$/ }],
  read,
  parse: parseCodebuff,
  identify: (raw) => `${raw.file}:${raw.id}`,
}

const MAX_FILE_BYTES = 256 << 20

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  for (const project of subfolders(root, report))
    for (const chat of subfolders(join(root, project, "chats"), report)) {
      const unit = unitAt(join(root, project, "chats", chat, "chat-messages.json"), `${project}/${chat}`, report)
      if (unit) yield unit
    }
}

/** Of the state, which contains the project's files, only the folder is read. */
function read(unit: Unit, after?: Cursor): Reading {
  const skipped: Skipped[] = []
  const report: Report = ({ unreadable, path }) => void skipped.push({ reason: unreadable, where: path })
  const messages = parseArray(textAt(unit.path, MAX_FILE_BYTES, report) ?? "")
  if (!messages) skipped.push({ reason: "not a complete JSON list", where: "chat-messages.json" })
  const state = objectAt(join(unit.path, "..", "run-state.json"), MAX_FILE_BYTES, report)
  const cwd = string(record(record(state?.sessionState)?.fileContext)?.cwd)
  const rows = [
    ...(cwd === undefined ? [] : [{ file: "state", id: "state", cwd }]),
    ...records(messages).map((message, index) => ({ id: index, ...message, file: "messages" })),
  ]
  return readingOfRows(rows, cutLongTexts, skipped, after)
}

const TOOLS: ToolNames = { command: ["run_terminal_command"], write: ["write_file", "create_plan"] }
/** Blocks that say nothing about the conversation. */
const SILENT = new Set(["mode-divider", "agent-list", "html"])

function parseCodebuff(rows: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const uniqueKey = uniqueKeys()
  const messages: Message[] = []
  let cwd: string | undefined
  for (const row of rows) {
    if (row.file === "state") cwd = string(row.cwd)
    else if (row.variant === "user" || row.variant === "ai" || row.variant === "agent" || row.variant === "error") {
      const at = time(row.timestamp)
      const { own, returned, effects } = contentOf(row, (type) => unknown.add(type))
      const role = row.variant === "user" ? "user" : row.variant === "error" ? "system" : "assistant"
      const key = uniqueKey(`${unit.key}:${row.id}`)
      if (own.length > 0) messages.push({ key, role, at, parts: own })
      if (returned.length > 0)
        messages.push({
          key: `${key}:results`,
          role: "tool",
          at,
          parts: returned,
          effects: effects.length > 0 ? effects : undefined,
        })
    } else unknown.add(string(row.variant) ?? string(row.type) ?? "(no variant)")
  }
  const chat = unit.key.replace(/^.*\//, "")
  // The folder is named after the time at which the chat began: 2026-07-16T00-09-00.236Z
  const times = [chat.replace(/T(\d\d)-(\d\d)-(\d\d)/, "T$1:$2:$3")]
  return parsedFrom({ id: unit.key, cwd, times, messages }, unknown)
}

type Content = { own: Part[]; returned: Part[]; effects: Effect[] }

function contentOf(message: RawRecord, countUnknown: (type: string) => void): Content {
  const content: Content = { own: [], returned: [], effects: [] }
  const text = string(message.content)
  const origin = message.variant === "user" ? "person" : message.variant === "error" ? "local_tool" : "agent"
  if (text) content.own.push({ type: "text", text, origin })
  for (const block of records(message.blocks)) {
    const words = string(block.content)
    if (block.type === "text" && block.textType === "reasoning") {
      if (words) content.own.push({ type: "thinking", text: words, origin: "agent" })
    } else if (block.type === "text" || block.type === "plan") {
      if (words && words !== text) content.own.push({ type: "text", text: words, origin })
    } else if (block.type === "image") content.own.push(imagePart({ media_type: block.mediaType }, origin))
    else if (block.type === "ask-user")
      for (const { question } of records(block.questions)) {
        if (string(question)) content.own.push({ type: "text", text: string(question)!, origin: "agent" })
      }
    else if (block.type === "tool")
      addCall(content, string(block.toolName), string(block.toolCallId), block.input, block.output)
    else if (block.type === "agent")
      addCall(
        content,
        string(block.agentType),
        string(block.agentId),
        { prompt: block.initialPrompt, params: block.params },
        words,
      )
    else if (!SILENT.has(String(block.type))) countUnknown(`block ${String(block.type)}`)
  }
  return content
}

function addCall(
  { own, returned, effects }: Content,
  tool: string | undefined,
  call_id: string | undefined,
  input: unknown,
  output: unknown,
): void {
  own.push(toolCallPart(tool, input, call_id))
  if (output === undefined || output === null) return
  const text = typeof output === "string" ? output : JSON.stringify(output)
  const code = tool === "run_terminal_command" ? /^\s*"?exitCode"?: (-?\d{1,5})/m.exec(text)?.[1] : undefined
  const exit_status = code === undefined ? undefined : Number(code)
  const action = actionOf(tool, record(input) ?? {})
  const result = resultOfCall({
    tool,
    call_id,
    output: text,
    failed: /"?errorMessage"?: /.test(text),
    exit_status,
    action,
  })
  returned.push(result.part)
  effects.push(...result.effects)
}

/** The text for a file may be only a sketch, in which a comment stands for what stays. */
function actionOf(tool: string | undefined, input: RawRecord): CallAction {
  if (tool === "read_files") return { reads: array(input.paths).flatMap((path) => string(path) ?? []) }
  if (tool === "str_replace")
    return {
      hunks: records(input.replacements).flatMap((one) =>
        hunksOfReplacement(string(input.path) ?? "", one.old ?? one.oldString, one.new ?? one.newString),
      ),
    }
  return /\.\.\. existing code/.test(string(input.content) ?? "") ? {} : actionByName(TOOLS, tool, input)
}
