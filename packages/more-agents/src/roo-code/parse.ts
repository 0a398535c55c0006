import { isAbsolute, join } from "node:path"
import {
  actionByName,
  type CallAction,
  resultOfCall,
  type ToolNames,
  toolCallPart,
} from "../../../../src/agents/kit/calls.ts"
import type { Parsed, UnitName } from "../../../../src/agents/kit/connector.ts"
import { hunksOfBlocks } from "../../../../src/agents/kit/effects.ts"
import { imagePart, parsedFrom, splitInjected, uniqueKeys } from "../../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../../src/core/by-name.ts"
import type { Effect, Message, Origin, Part } from "../../../../src/core/conversation.ts"
import { withoutUndefined } from "../../../../src/core/defined.ts"
import {
  array,
  number,
  parseObject,
  type RawRecord,
  record,
  records,
  string,
  time,
} from "../../../../src/core/record.ts"
import { addRequest, type Usage } from "../../../../src/core/usage.ts"

export function parseRooCode(rows: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  let history: RawRecord = {}
  const turns: RawRecord[] = []
  const windowRows: RawRecord[] = []
  for (const row of rows) {
    if (row.file === "history") history = row
    else if (row.file === "window") windowRows.push(row)
    else if (row.file === "api" || row.file === "older")
      (string(row.role) || row.type === "reasoning" ? turns : windowRows).push(row)
    else unknown.add(`file ${String(row.file)}`)
  }
  const parent = string(history.parentTaskId)
  const promptOrigin: Origin = parent === undefined ? "person" : "agent"
  const workspace = string(history.workspace) ?? string(history.cwd) ?? findWorkspace(turns)
  const countUnknown = (type: string) => unknown.add(type)
  const messages =
    turns.length > 0
      ? messagesOfTurns(turns, { id: unit.key, promptOrigin, workspace, countUnknown })
      : windowMessages(windowRows, { id: unit.key, promptOrigin, countUnknown })
  addUsages(messages, windowRows, history)
  const times = messages.some(({ at }) => at !== undefined) ? [] : [history.ts]
  return parsedFrom({ id: unit.key, cwd: workspace, parent, times, messages }, unknown)
}

type TaskContext = {
  id: string
  promptOrigin: Origin
  workspace: string | undefined
  countUnknown: (type: string) => void
}

function messagesOfTurns(turns: RawRecord[], { id, promptOrigin, workspace, countUnknown }: TaskContext): Message[] {
  const uniqueKey = uniqueKeys()
  const calls = new Map<string, RooCall>()
  const messages: Message[] = []
  let model: string | undefined
  for (const [index, turn] of turns.entries()) {
    const at = time(turn.ts)
    model = findModel(turn) ?? model
    const content = contentOfTurn(turn, { promptOrigin, workspace, calls, countUnknown })
    if (content.parts.length === 0) continue
    messages.push({
      key: uniqueKey(`${id}:${number(turn.ts) ?? index}:${string(turn.role) ?? "assistant"}`),
      at,
      ...content,
      model: content.role === "assistant" && model !== undefined ? model : undefined,
    })
  }
  return messages
}

/**
 * Adds usage to the answers. The window records the usage of each request before its answer. Without these records, only the
 * total is known; it is added to the last answer.
 */
function addUsages(messages: Message[], window: RawRecord[], history: RawRecord): void {
  const answers = messages.filter(({ role }) => role === "assistant")
  if (answers.length === 0) return
  const requests = window.flatMap((row) => {
    const usage =
      row.say === "api_req_started" ? rooUsage(parseObject(string(row.text) ?? "") ?? {}, "cost") : undefined
    return usage ? [{ usage, at: time(row.ts) ?? 0 }] : []
  })
  let nextAnswerIndex = 0
  for (const { usage, at } of requests) {
    const answerIndex = answers.findIndex(
      (answer, index) => index >= nextAnswerIndex && (answer.at === undefined || answer.at >= at),
    )
    const answer = answers[answerIndex === -1 ? answers.length - 1 : answerIndex]!
    answer.usage = addRequest(answer.usage, usage)
    nextAnswerIndex = answerIndex === -1 ? answers.length : answerIndex + (answer.at === undefined ? 1 : 0)
  }
  const total = requests.length === 0 ? rooUsage(history, "totalCost") : undefined
  if (total) answers.at(-1)!.usage = total
}

/** Parses token counts. The number of sent tokens includes the tokens that were read from and written to the cache. */
function rooUsage(counts: RawRecord, costField: string): Usage | undefined {
  const countOf = (field: string) => number(counts[field]) ?? 0
  const [sent, output, cache_read, cache_write] = [
    countOf("tokensIn"),
    countOf("tokensOut"),
    countOf("cacheReads"),
    countOf("cacheWrites"),
  ]
  if (sent + output === 0) return undefined
  const cost = countOf(costField)
  const input = sent >= cache_read + cache_write ? sent - cache_read - cache_write : sent // older versions did not count cached tokens as sent
  return { input, output, cache_read, cache_write, cost: cost > 0 ? cost : undefined }
}

export type RooCall = { tool: string | undefined; args: RawRecord }
/**
 * The state while turns are parsed. `calls` maps ids to the earlier calls. The id `""` stands for the last call that was written
 * inside a text.
 */
type TurnContext = {
  promptOrigin: Origin
  workspace: string | undefined
  calls: Map<string, RooCall>
  countUnknown: (type: string) => void
}
type Content = Pick<Message, "role" | "parts" | "effects">

/** Parses a turn that was sent to the model, or the model's answer. */
function contentOfTurn(turn: RawRecord, context: TurnContext): Content {
  const blocks = typeof turn.content === "string" ? [{ type: "text", text: turn.content }] : records(turn.content)
  if (turn.type === "reasoning")
    return { role: "assistant", parts: thinkingParts(turn.text, ...records(turn.summary).map(({ text }) => text)) }
  if (turn.isSummary === true) return { role: "system", parts: summaryOf(blocks) }
  if (turn.isTruncationMarker === true) return { role: "system", parts: textParts(blocks, "injected") }
  return turn.role === "assistant" ? answerOf(turn, blocks, context) : promptOf(blocks, context)
}

/** Finds the model in a turn's own field, or in the text that Roo Code adds to a prompt. */
export function findModel(turn: RawRecord): string | undefined {
  if (string(turn.model)) return string(turn.model)
  const texts = records(turn.content).flatMap(({ text }) => string(text) ?? [])
  return texts.map((text) => /<model>([^<\n]{1,100})<\/model>/.exec(text)?.[1]).find((name) => name !== undefined)
}

/** Finds the folder in the text that Kilo Code and older versions of Roo Code add to a prompt, if there is no history entry. */
function findWorkspace(turns: RawRecord[]): string | undefined {
  for (const { role, content } of turns) {
    if (role !== "user") continue
    for (const block of typeof content === "string" ? [{ text: content }] : records(content)) {
      const text = string(block.text) ?? ""
      const details = text.slice(text.lastIndexOf("<environment_details>"))
      const folder = /^# Current Workspace Directory \(([^)\n]{1,4000})\)/m.exec(details)?.[1]
      if (folder !== undefined && text.includes("<environment_details>")) return folder
    }
  }
  return undefined
}

function answerOf(turn: RawRecord, blocks: RawRecord[], { calls, countUnknown }: TurnContext): Content {
  const parts = thinkingParts(turn.reasoning_content)
  for (const block of blocks) {
    if (block.type === "text") parts.push(...writtenParts(string(block.text) ?? "", calls))
    else if (block.type === "thinking" || block.type === "reasoning")
      parts.push(...thinkingParts(block.thinking ?? block.text))
    else if (block.type === "tool_use") {
      const [id, tool, args] = [string(block.id), string(block.name), record(block.input) ?? {}]
      if (id !== undefined) calls.set(id, { tool, args })
      parts.push(callPart(tool, args, id))
    } else if (block.type !== "redacted_thinking" && block.type !== "thoughtSignature")
      countUnknown(`content ${String(block.type)}`)
  }
  return { role: "assistant", parts }
}

/** Builds the part for a call. `attempt_completion` becomes text, because its result is addressed to the person. */
function callPart(tool: string | undefined, args: RawRecord, id: string | undefined): Part {
  const result = tool === "attempt_completion" ? string(args.result) : undefined
  return result === undefined ? toolCallPart(tool, args, id) : { type: "text", text: result, origin: "agent" }
}

function thinkingParts(...texts: unknown[]): Part[] {
  return texts.flatMap((text): Part[] =>
    string(text) ? [{ type: "thinking", text: string(text)!, origin: "agent" }] : [],
  )
}

/** Splits a text into prose and the calls that are written inside it. */
function writtenParts(text: string, calls: Map<string, RooCall>): Part[] {
  const parts: Part[] = []
  let from = 0
  const addText = (piece: string) => {
    if (piece.trim() !== "") parts.push({ type: "text", text: piece.trim(), origin: "agent" })
  }
  for (const { tool, args, from: callStart, to } of findWrittenCalls(text)) {
    addText(text.slice(from, callStart))
    parts.push(callPart(tool, args, undefined))
    calls.set("", { tool, args })
    from = to
  }
  addText(text.slice(from))
  return parts
}

const INJECTED_TAGS = ["environment_details"]
const TYPED_TEXT = /^<(task|feedback|user_message|answer)>\n?([\s\S]*?)\n?<\/\1>$/

/** Parses a user's turn: the person's text, tool results, and the text that Roo Code adds. */
function promptOf(blocks: RawRecord[], context: TurnContext): Content {
  const parts: Part[] = []
  const effects: Effect[] = []
  let isOutputNext = false
  for (const block of blocks) {
    const text = string(block.text) ?? ""
    if (block.type === "tool_result") {
      const id = string(block.tool_use_id)
      add(resultOf(context.calls.get(id ?? ""), id, resultText(block.content), block.is_error === true, context))
    } else if (block.type === "image") parts.push(imagePart(block.image, context.promptOrigin))
    else if (block.type !== "text") context.countUnknown(`content ${String(block.type)}`)
    else if (/^\[[\w ]{3,60}( for '[^\n]{0,4000}')?\] Result:/.test(text)) {
      isOutputNext = true
      const output = text.slice(text.indexOf("Result:") + "Result:".length).trim()
      if (output !== "") addWrittenResult(output)
    } else if (isOutputNext && !TYPED_TEXT.test(text.trim()) && !text.startsWith("<environment_details>"))
      addWrittenResult(text)
    else parts.push(...personParts(text, context.promptOrigin))
  }
  return { role: parts.some(({ type }) => type === "tool_result") ? "tool" : "user", parts, effects }

  function addWrittenResult(output: string): void {
    isOutputNext = false
    add(
      resultOf(context.calls.get(""), undefined, output, /^(<error>|The tool execution failed)/.test(output), context),
    )
  }
  function add(result: { part: Part; effects: Effect[] }): void {
    parts.push(result.part)
    effects.push(...result.effects)
  }
}

function personParts(text: string, promptOrigin: Origin): Part[] {
  return splitInjected(text, INJECTED_TAGS).map(({ text: run, injected }) => ({
    type: "text",
    text: injected ? run : (TYPED_TEXT.exec(run)?.[2] ?? run),
    origin: injected || /^\[(TASK RESUMPTION|ERROR)\]/.test(run) ? "injected" : promptOrigin,
  }))
}

function resultOf(
  call: RooCall | undefined,
  id: string | undefined,
  output: string,
  is_error: boolean,
  { workspace }: TurnContext,
) {
  const preamble =
    call?.tool === "execute_command" ? /^Command executed [\s\S]{0,2000}?\nOutput:\n/.exec(output)?.[0] : undefined
  const code = /\bExit code: (-?\d{1,10})/.exec(preamble ?? "")?.[1]
  return resultOfCall({
    tool: call?.tool,
    call_id: id,
    output,
    commandOutput: output.slice(preamble?.length ?? 0),
    failed: is_error,
    exit_status: code === undefined ? undefined : Number(code),
    action: call ? actionOfRooCode(call.tool, call.args, workspace) : {},
  })
}

function resultText(content: unknown): string {
  if (typeof content === "string") return content
  return records(content)
    .flatMap(({ text }) => string(text) ?? [])
    .join("\n")
}

function summaryOf(blocks: RawRecord[]): Part[] {
  return textParts(blocks, "agent").map(({ text }) => ({ type: "summary", text, origin: "agent" }))
}

function textParts(blocks: RawRecord[], origin: Origin): Part[] {
  return blocks.flatMap(({ text }): Part[] => (string(text) ? [{ type: "text", text: string(text)!, origin }] : []))
}

const TOOLS: ToolNames = {
  command: ["execute_command"],
  read: ["read_file"],
  write: ["write_to_file"],
  edit: ["edit", "edit_file", "search_replace", "search_and_replace"],
  patch: ["apply_patch"],
}

/** Derives the action of a call. Paths are relative to the workspace. */
function actionOfRooCode(tool: string | undefined, args: RawRecord, workspace: string | undefined): CallAction {
  const absolutePath = (path: string) => (workspace === undefined || isAbsolute(path) ? path : join(workspace, path))
  const files = array(args.files).flatMap((file) => string(record(file)?.path) ?? string(file) ?? [])
  if (tool === "read_file" && files.length > 0) return { reads: files.map(absolutePath) }
  const [path, diff] = [string(args.path) ?? string(args.file_path), string(args.diff)]
  if (tool === "apply_diff" && path !== undefined)
    return { hunks: diff === undefined ? [] : hunksOfBlocks(diff, absolutePath(path)) }
  const action = actionByName(TOOLS, tool, args)
  return {
    ...action,
    ...withoutUndefined({
      reads: action.reads?.map(absolutePath),
      hunks: action.hunks?.map((hunk) => ({ ...hunk, path: absolutePath(hunk.path) })),
    }),
  }
}

/** A call that is written inside the text of an answer, as models did before they had native tool calls. */
type WrittenCall = { tool: string; args: RawRecord; from: number; to: number }

const WRITTEN_TOOLS = [
  ...[
    "read_file",
    "write_to_file",
    "apply_diff",
    "search_and_replace",
    "insert_content",
    "execute_command",
    "list_files",
  ],
  ...[
    "search_files",
    "codebase_search",
    "list_code_definition_names",
    "use_mcp_tool",
    "access_mcp_resource",
    "new_task",
  ],
  ...[
    "ask_followup_question",
    "attempt_completion",
    "switch_mode",
    "update_todo_list",
    "browser_action",
    "fetch_instructions",
  ],
]

/**
 * Finds calls in a text. A tag that is never closed is text. Takes linear time, because a missing closing tag is searched for
 * only once.
 */
export function findWrittenCalls(text: string): WrittenCall[] {
  const calls: WrittenCall[] = []
  const unclosedTools = new Set<string>()
  for (let tagStart = text.indexOf("<"); tagStart !== -1; tagStart = text.indexOf("<", tagStart + 1)) {
    if (!/[a-z]/.test(text[tagStart + 1] ?? "")) continue
    const tool = WRITTEN_TOOLS.find((name) => text.startsWith(`${name}>`, tagStart + 1) && !unclosedTools.has(name))
    const end = tool === undefined ? -1 : text.indexOf(`</${tool}>`, tagStart)
    if (tool !== undefined && end === -1) unclosedTools.add(tool)
    if (tool === undefined || end === -1) continue
    calls.push({
      tool,
      args: writtenArgs(text.slice(tagStart + tool.length + 2, end)),
      from: tagStart,
      to: end + tool.length + 3,
    })
    tagStart = end
  }
  return calls
}

const ARGUMENT_NAMES = (
  "path content diff command regex query result question mode message " +
  "server_name tool_name arguments uri search replace line todos"
).split(" ")

function writtenArgs(inner: string): RawRecord {
  const args: RawRecord = {}
  for (const name of ARGUMENT_NAMES) {
    const [openTag, closeTag] = [`<${name}>`, `</${name}>`]
    const from = inner.indexOf(openTag)
    const to = inner.lastIndexOf(closeTag)
    if (from !== -1 && to > from) args[name] = inner.slice(from + openTag.length, to).replace(/^\n|\n$/g, "")
  }
  return args
}

const AGENT_KINDS = ["text", "completion_result", "followup"]
const TOOL_KINDS = [
  "tool",
  "command",
  "command_output",
  "mcp_server_response",
  "error",
  "codebase_search_result",
  "diff_error",
]
const IGNORED_KINDS = [
  ...["api_req_started", "api_req_finished", "api_req_retried", "api_req_retry_delayed", "api_req_rate_limit_wait"],
  ...["api_req_deleted", "api_req_failed", "resume_task", "resume_completed_task", "mistake_limit_reached", "image"],
  ...[
    "checkpoint_saved",
    "shell_integration_warning",
    "mcp_server_request_started",
    "use_mcp_server",
    "rooignore_error",
  ],
  ...["condense_context", "condense_context_error", "sliding_window_truncation", "user_edit_todos", "subtask_result"],
  ...["too_many_tools_warning", "auto_approval_max_req_reached"],
]

/** Parses the content of the window, which replaces the file of turns if a task no longer has one. */
function windowMessages(
  windowRows: RawRecord[],
  { id, promptOrigin, countUnknown }: { id: string; promptOrigin: Origin; countUnknown: (type: string) => void },
): Message[] {
  const uniqueKey = uniqueKeys()
  let isFirst = true
  return windowRows.flatMap((row, index): Message[] => {
    const kind = string(row.say) ?? string(row.ask)
    const text = string(row.text)
    if (kind === undefined || row.partial === true || IGNORED_KINDS.includes(kind)) return []
    const isPrompt = kind === "user_feedback" || kind === "user_feedback_diff" || (kind === "text" && isFirst)
    if (kind === "text") isFirst = false
    const part = text === undefined ? undefined : partOf(kind, text, isPrompt ? promptOrigin : undefined)
    if (part === "unknown") countUnknown(`shown ${kind}`)
    if (part === undefined || part === "unknown") return []
    const at = time(row.ts)
    const role = isPrompt ? "user" : part.origin === "agent" ? "assistant" : "tool"
    return [{ key: uniqueKey(`${id}:${number(row.ts) ?? index}`), role, at, parts: [part] }]
  })
}

function partOf(kind: string, text: string, promptOrigin: Origin | undefined): Part | "unknown" {
  if (promptOrigin !== undefined) return { type: "text", text, origin: promptOrigin }
  if (kind === "reasoning") return { type: "thinking", text, origin: "agent" }
  if (AGENT_KINDS.includes(kind)) return { type: "text", text, origin: "agent" }
  return TOOL_KINDS.includes(kind) ? { type: "text", text, origin: "local_tool" } : "unknown"
}
