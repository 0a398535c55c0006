import { fileURLToPath } from "node:url"
import {
  actionByName,
  type CallAction,
  resultOfCall,
  type ToolNames,
  toolCallPart,
} from "../../../../src/agents/kit/calls.ts"
import type { Parsed, UnitName } from "../../../../src/agents/kit/connector.ts"
import { editEffects, hunksOfReplacement } from "../../../../src/agents/kit/effects.ts"
import { parsedFrom, uniqueKeys, usageFrom } from "../../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../../src/core/by-name.ts"
import type { Effect, Hunk, Message, Part } from "../../../../src/core/conversation.ts"
import {
  array,
  isRecord,
  number,
  parseObject,
  type RawRecord,
  record,
  records,
  string,
  time,
} from "../../../../src/core/record.ts"
import type { Usage } from "../../../../src/core/usage.ts"

export function parseVscode(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const log: RawRecord[] = []
  const session: RawRecord = {}
  const requests: RawRecord[] = []
  let folder: string | undefined
  for (const entry of raw) {
    if (entry.type === "dex-workspace") folder = string(entry.folder)
    else if (entry.type === "dex-session") Object.assign(session, entry)
    else if (isLogEntry(entry)) log.push(entry)
    else if (string(entry.requestId) !== undefined) requests.push(entry)
    else
      unknown.add(
        string(entry.type) ?? (entry.kind === undefined ? "(no kind)" : `kind ${String(entry.kind).slice(0, 20)}`),
      )
  }
  const replayedSession = replaySession(log, () => unknown.add("(a change to a missing field)"))
  const current = replayedSession ?? session
  const id = string(current.sessionId) ?? unit.key.replace(/\.jsonl?$/, "")
  const uniqueKey = uniqueKeys()
  const messages = [...requests, ...records(replayedSession?.requests)]
    .flatMap((request, index) => messagesOf(request, `${id}:${index}`, (type) => unknown.add(type)))
    .map((message) => ({ ...message, key: uniqueKey(message.key) }))
  const fields = {
    id,
    title: string(current.customTitle) ?? current.computedTitle,
    cwd: folder,
    times: [current.creationDate, current.lastMessageDate],
    messages,
    // A session that began as JSON continues in a log, which therefore wins.
    authority: unit.key.endsWith(".json") ? 9 : 10,
  }
  return parsedFrom(fields, unknown)
}

function messagesOf(request: RawRecord, defaultKey: string, countUnknown: (type: string) => void): Message[] {
  const key = string(request.requestId) ?? defaultKey
  const at = time(request.timestamp)
  const result = record(request.result)
  const isAbandoned = request.shouldBeRemovedOnSend !== undefined && request.shouldBeRemovedOnSend !== false
  const prompt = string(record(request.message)?.text) ?? string(request.message)
  const { parts, effects } = parseResponse(request, countUnknown)
  const metadata = record(result?.metadata)
  const model = string(metadata?.resolvedModel) ?? string(request.modelId)?.replace(/^copilot\//, "")
  const usage = vscodeUsage(metadata)
  const answeredAt = at === undefined ? undefined : at + (number(record(result?.timings)?.firstProgress) ?? 0)
  const messages: Message[] = []
  if (prompt !== undefined)
    messages.push({
      key,
      role: "user",
      at,
      parts: [{ type: "text", text: prompt, origin: "person" }],
    })
  const problem = string(record(result?.errorDetails)?.message)
  if (problem !== undefined) parts.push({ type: "text", text: problem, origin: "local_tool" })
  if (parts.length > 0)
    messages.push({
      key: `${key}:response`,
      role: "assistant",
      at: answeredAt,
      model,
      parts,
      effects: effects.length > 0 ? effects : undefined,
      usage,
    })
  return isAbandoned ? messages.map((message) => ({ ...message, abandoned: isAbandoned })) : messages
}

/** Parses token counts. They cover only the last round of a request, and do not include cached tokens. */
function vscodeUsage(metadata: RawRecord | undefined): Usage | undefined {
  return usageFrom({ input: metadata?.promptTokens, output: metadata?.outputTokens })
}

/** Types of items that show progress, ask the person a question, or repeat other content. */
const IGNORED_ITEMS = new Set([
  ...["undoStop", "codeblockUri", "prepareToolInvocation", "progressMessage", "progressTask", "progressTaskSerialized"],
  ...[
    "confirmation",
    "elicitation",
    "elicitation2",
    "elicitationSerialized",
    "mcpServersStarting",
    "treeData",
    "command",
  ],
  ...[
    "multiDiffData",
    "move",
    "extensions",
    "pullRequest",
    "references",
    "codeCitation",
    "usedContext",
    "contentReference",
  ],
  ...["agentDetection", "clearToPreviousToolInvocation", "questionCarousel", "hook", "externalEdits", "todoList"],
  ...["notebookEditGroup", "notebookEdit", "workspaceEdit", "disabledClaudeHooks", "markdownVuln"],
])

type Content = { parts: Part[]; effects: Effect[] }
/** A tool call as the model requested it, with its output. The window's record of the call lacks these details. */
type Call = { name: string | undefined; args: RawRecord; output: string | undefined }

export function parseResponse(request: RawRecord, countUnknown: (type: string) => void): Content {
  const calls = callsOf(record(record(request.result)?.metadata))
  const content: Content = { parts: [], effects: [] }
  const edits: Hunk[] = []
  for (const item of records(request.response)) {
    const kind = string(item.kind)
    if (kind === undefined || kind === "markdownContent") addText(content.parts, textIn(item.content ?? item))
    else if (kind === "inlineReference") addText(content.parts, referenceIn(item))
    else if (kind === "thinking") addThought(content.parts, item.value)
    else if (kind === "warning") addNotice(content.parts, textIn(item.content))
    else if (kind === "toolInvocationSerialized" || kind === "toolInvocation") addCall(content, item, calls)
    else if (kind === "textEditGroup") edits.push(...hunksOfGroup(item))
    else if (!IGNORED_ITEMS.has(kind)) countUnknown(`response ${kind}`)
  }
  addEdits(content, edits)
  return content
}

function callsOf(metadata: RawRecord | undefined): Map<string, Call> {
  const results = record(metadata?.toolCallResults) ?? {}
  const requestedCalls = records(metadata?.toolCallRounds).flatMap(({ toolCalls }) => records(toolCalls))
  return new Map(
    requestedCalls.flatMap((call) => {
      const id = string(call.id)
      if (id === undefined) return []
      const args = parseObject(string(call.arguments) ?? "") ?? record(call.arguments) ?? {}
      const result = record(results[id])
      const output = result && array(result.content).map(textOfResult).join("")
      return [[plainId(id), { name: string(call.name), args, output }] as const]
    }),
  )
}

/** Removes the numeric suffix that a call's id has in the requests to the model. */
function plainId(id: string): string {
  return id.replace(/__vscode-\d{1,15}$/, "")
}

/** Returns the text of a result: a string, or the texts in the tree from which the prompt was rendered. */
function textOfResult(piece: unknown): string {
  const value = record(piece)?.value
  if (typeof value === "string") return value
  const texts: string[] = []
  const walk = (node: unknown): void => {
    if (Array.isArray(node)) for (const child of node) walk(child)
    else if (isRecord(node)) {
      if (typeof node.text === "string") texts.push(node.text)
      walk(node.node ?? node.children)
    }
  }
  walk(value)
  return texts.join("")
}

function addText(parts: Part[], text: string | undefined): void {
  if (text === undefined) return
  const lastPart = parts.at(-1)
  if (lastPart?.type === "text" && lastPart.origin === "agent") lastPart.text += text
  else if (text.trim() !== "") parts.push({ type: "text", text, origin: "agent" })
}

function addThought(parts: Part[], value: unknown): void {
  const text = Array.isArray(value) ? value.filter((line) => typeof line === "string").join("\n") : string(value)
  if (text) parts.push({ type: "thinking", text, origin: "agent" })
}

function addNotice(parts: Part[], text: string | undefined): void {
  if (text !== undefined) parts.push({ type: "text", text, origin: "local_tool" })
}

/** Returns the text of a field, which is a string or an object `{ value }`. */
function textIn(value: unknown): string | undefined {
  return string(value) ?? string(record(value)?.value)
}

function referenceIn(item: RawRecord): string | undefined {
  const reference = record(item.inlineReference)
  const name =
    string(item.name) ?? string(reference?.name) ?? pathOfUri(reference) ?? pathOfUri(record(reference?.location)?.uri)
  return name === undefined ? undefined : `\`${name}\``
}

function addCall({ parts, effects }: Content, item: RawRecord, calls: Map<string, Call>): void {
  const id = string(item.toolCallId)
  const request = id === undefined ? undefined : calls.get(plainId(id))
  const data = record(item.toolSpecificData)
  const details = record(item.resultDetails)
  const tool = request?.name ?? string(item.toolId)
  const command = string(record(data?.commandLine)?.userEdited) ?? string(record(data?.commandLine)?.original)
  const input = request?.args ?? parseObject(string(details?.input) ?? "") ?? shownInput(item, command)
  const exit_status = number(record(data?.terminalCommandState)?.exitCode)
  const action = actionOfVscode(tool, input)
  const { part, effects: newEffects } = resultOfCall({
    tool,
    call_id: id,
    output: request?.output ?? outputIn(data, details) ?? textIn(item.pastTenseMessage) ?? "",
    failed: details?.isError === true,
    exit_status,
    action: command === undefined ? action : { ...action, command },
    isRemote: record(item.source)?.type === "mcp",
  })
  parts.push(toolCallPart(tool, input, id), part)
  effects.push(...newEffects)
}

function shownInput(item: RawRecord, command: string | undefined): RawRecord {
  const message = textIn(item.invocationMessage)
  return { message, command }
}

function outputIn(data: RawRecord | undefined, details: RawRecord | undefined): string | undefined {
  const printed = string(record(data?.terminalCommandOutput)?.text)
  if (printed !== undefined) return printed
  const pieces = records(details?.output).flatMap(({ value }) => string(value) ?? [])
  return pieces.length === 0 ? undefined : pieces.join("\n")
}

/**
 * Returns hunks with only the inserted lines, because VS Code does not record the replaced lines. Skips changes inside a line.
 */
function hunksOfGroup(item: RawRecord): Hunk[] {
  const path = pathOfUri(item.uri)
  if (path === undefined) return []
  return array(item.edits).flatMap((edits) =>
    records(edits).flatMap(({ text, range }) =>
      number(record(range)?.startColumn) === 1 ? hunksOfReplacement(path, undefined, text) : [],
    ),
  )
}

function pathOfUri(value: unknown): string | undefined {
  const uri = record(value)
  const path = string(uri?.fsPath) ?? string(uri?.path)
  if (path !== undefined) return path
  const fileUri = string(uri?.external) ?? string(value)
  try {
    return fileUri?.startsWith("file:") ? fileURLToPath(fileUri) : undefined
  } catch {
    return undefined // a URI from another platform cannot be converted
  }
}

/** Adds edits, except edits to files that a tool call has already reported, because the window shows such edits again. */
function addEdits({ parts, effects }: Content, edits: Hunk[]): void {
  const editedPaths = new Set(
    effects.flatMap((effect) => (effect.type === "file" && effect.action === "edited" ? effect.path : [])),
  )
  const hunks = edits.filter(({ path }) => !editedPaths.has(path))
  if (hunks.length === 0) return
  const text = [...new Set(hunks.map(({ path }) => path))].map((path) => `Edited ${path}`).join("\n")
  parts.push({ type: "tool_result", text, origin: "local_tool", is_error: false, hunks })
  effects.push(...editEffects(hunks))
}

/** The names that tools have in requests to the model and in the window. */
const TOOLS: ToolNames = {
  command: ["run_in_terminal", "copilot_runInTerminal"],
  read: ["read_file", "copilot_readFile"],
  write: ["create_file", "copilot_createFile"],
  patch: ["apply_patch", "copilot_applyPatch"],
}
const REPLACE_TOOLS = [
  "replace_string_in_file",
  "copilot_replaceString",
  "multi_replace_string_in_file",
  "copilot_multiReplaceString",
]

function actionOfVscode(tool: string | undefined, args: RawRecord): CallAction {
  if (tool === undefined || !REPLACE_TOOLS.includes(tool)) return actionByName(TOOLS, tool, args)
  const edits = Array.isArray(args.replacements) ? records(args.replacements) : [args]
  return {
    hunks: edits.flatMap(({ filePath, oldString, newString }) =>
      string(filePath) === undefined ? [] : hunksOfReplacement(string(filePath)!, oldString, newString),
    ),
  }
}

/** The kinds of log entries. The kind determines how an entry changes the session. */
const SNAPSHOT = 0
const SET = 1
const APPEND = 2
const DELETE = 3

/**
 * Replays a log of changes and returns the resulting session, or undefined if the log has no snapshot. Calls `skip` for each
 * entry that cannot be applied because an earlier line was damaged. Does not modify the entries.
 */
export function replaySession(entries: Iterable<RawRecord>, skip: () => void): RawRecord | undefined {
  let session: RawRecord | undefined
  for (const entry of entries) {
    const value = structuredClone(entry.v)
    if (entry.kind === SNAPSHOT) session = isRecord(value) ? value : session
    else if (!session || !tryToApply(session, entry, value)) skip()
  }
  return session
}

function isLogEntry({ kind }: RawRecord): boolean {
  return kind === SNAPSHOT || kind === SET || kind === APPEND || kind === DELETE
}

function tryToApply(session: RawRecord, { kind, k, i }: RawRecord, value: unknown): boolean {
  const path = array(k)
  const parent = path.slice(0, -1).reduce<unknown>((container, step) => fieldIn(container, step)?.get(), session)
  const field = fieldIn(parent, path.at(-1))
  if (!field) return false
  if (kind === DELETE) field.set(undefined)
  else if (kind === SET) field.set(value)
  else {
    const list = array(field.get())
    const length = number(i)
    field.set([...(length === undefined ? list : list.slice(0, Math.max(0, length))), ...array(value)])
  }
  return true
}

type Field = { get(): unknown; set(value: unknown): void }

/** Finds a field of an object or an item of a list. The index of an item may be at most one past the end of the list. */
function fieldIn(container: unknown, key: unknown): Field | undefined {
  if (Array.isArray(container)) {
    if (typeof key !== "number" || !Number.isInteger(key) || key < 0 || key > container.length) return undefined
    return { get: () => container[key] as unknown, set: (value) => void Reflect.set(container, key, value) }
  }
  if (!isRecord(container) || typeof key !== "string" || key === "__proto__") return undefined
  return {
    get: () => (Object.hasOwn(container, key) ? container[key] : undefined),
    set: (value) => void Reflect.set(container, key, value),
  }
}
