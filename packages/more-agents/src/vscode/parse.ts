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
  for (const one of raw) {
    if (one.type === "dex-workspace") folder = string(one.folder)
    else if (one.type === "dex-session") Object.assign(session, one)
    else if (isLogEntry(one)) log.push(one)
    else if (string(one.requestId) !== undefined) requests.push(one)
    else
      unknown.add(string(one.type) ?? (one.kind === undefined ? "(no kind)" : `kind ${String(one.kind).slice(0, 20)}`))
  }
  const replayed = replaySession(log, () => unknown.add("(a change to what is not there)"))
  const current = replayed ?? session
  const id = string(current.sessionId) ?? unit.key.replace(/\.jsonl?$/, "")
  const keys = uniqueKeys()
  const messages = [...requests, ...records(replayed?.requests)]
    .flatMap((request, index) => messagesOf(request, `${id}:${index}`, (type) => unknown.add(type)))
    .map((message) => ({ ...message, key: keys(message.key) }))
  const fields = {
    id,
    title: string(current.customTitle) ?? current.computedTitle,
    cwd: folder,
    times: [current.creationDate, current.lastMessageDate],
    messages,
    // A session that began as JSON continues in a log.
    authority: unit.key.endsWith(".json") ? 9 : 10,
  }
  return parsedFrom(fields, unknown)
}

function messagesOf(request: RawRecord, place: string, count: (type: string) => void): Message[] {
  const key = string(request.requestId) ?? place
  const at = time(request.timestamp)
  const result = record(request.result)
  const abandoned = request.shouldBeRemovedOnSend !== undefined && request.shouldBeRemovedOnSend !== false
  const prompt = string(record(request.message)?.text) ?? string(request.message)
  const { parts, effects } = parseResponse(request, count)
  const metadata = record(result?.metadata)
  const model = string(metadata?.resolvedModel) ?? string(request.modelId)?.replace(/^copilot\//, "")
  const usage = vscodeUsage(metadata)
  const begun = at === undefined ? undefined : at + (number(record(result?.timings)?.firstProgress) ?? 0)
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
      at: begun,
      model,
      parts,
      effects: effects.length > 0 ? effects : undefined,
      usage,
    })
  return abandoned ? messages.map((message) => ({ ...message, abandoned })) : messages
}

/** The usage covers only the last round of a request; cached tokens are not reported. */
function vscodeUsage(metadata: RawRecord | undefined): Usage | undefined {
  return usageFrom({ input: metadata?.promptTokens, output: metadata?.outputTokens })
}

/** Types of items that show progress, ask, or repeat other content. */
const QUIET = new Set([
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
/** The model's own request, which the window's record of a call omits. */
type Call = { name: string | undefined; args: RawRecord; output: string | undefined }

export function parseResponse(request: RawRecord, count: (type: string) => void): Content {
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
    else if (!QUIET.has(kind)) count(`response ${kind}`)
  }
  addEdits(content, edits)
  return content
}

function callsOf(metadata: RawRecord | undefined): Map<string, Call> {
  const results = record(metadata?.toolCallResults) ?? {}
  const requested = records(metadata?.toolCallRounds).flatMap(({ toolCalls }) => records(toolCalls))
  return new Map(
    requested.flatMap((call) => {
      const id = string(call.id)
      if (id === undefined) return []
      const args = parseObject(string(call.arguments) ?? "") ?? record(call.arguments) ?? {}
      const result = record(results[id])
      const output = result && array(result.content).map(textOfResult).join("")
      return [[plainId(id), { name: string(call.name), args, output }] as const]
    }),
  )
}

/** Removes the numeric suffix that the id of a call has in the model's rounds. */
function plainId(id: string): string {
  return id.replace(/__vscode-\d{1,15}$/, "")
}

/** Returns a text, or the text of the tree from which the prompt was rendered. */
function textOfResult(piece: unknown): string {
  const value = record(piece)?.value
  if (typeof value === "string") return value
  const texts: string[] = []
  const walk = (node: unknown): void => {
    if (Array.isArray(node)) for (const one of node) walk(one)
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
  const last = parts.at(-1)
  if (last?.type === "text" && last.origin === "agent") last.text += text
  else if (text.trim() !== "") parts.push({ type: "text", text, origin: "agent" })
}

function addThought(parts: Part[], value: unknown): void {
  const text = Array.isArray(value) ? value.filter((one) => typeof one === "string").join("\n") : string(value)
  if (text) parts.push({ type: "thinking", text, origin: "agent" })
}

function addNotice(parts: Part[], text: string | undefined): void {
  if (text !== undefined) parts.push({ type: "text", text, origin: "local_tool" })
}

/** Returns a text, or the value of `{ value }`. */
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
  const { part, effects: done } = resultOfCall({
    tool,
    call_id: id,
    output: request?.output ?? outputIn(data, details) ?? textIn(item.pastTenseMessage) ?? "",
    failed: details?.isError === true,
    exit_status,
    action: command === undefined ? action : { ...action, command },
    isRemote: record(item.source)?.type === "mcp",
  })
  parts.push(toolCallPart(tool, input, id), part)
  effects.push(...done)
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

/** Returns the inserted lines; what they replaced is not recorded. Changes within a line are skipped. */
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
  const address = string(uri?.external) ?? string(value)
  try {
    return address?.startsWith("file:") ? fileURLToPath(address) : undefined
  } catch {
    return undefined // a URI of another platform
  }
}

/** Adds edits, except to files whose edits a tool call already reported, because the window shows the same change again. */
function addEdits({ parts, effects }: Content, edits: Hunk[]): void {
  const known = new Set(
    effects.flatMap((effect) => (effect.type === "file" && effect.action === "edited" ? effect.path : [])),
  )
  const hunks = edits.filter(({ path }) => !known.has(path))
  if (hunks.length === 0) return
  const text = [...new Set(hunks.map(({ path }) => path))].map((path) => `Edited ${path}`).join("\n")
  parts.push({ type: "tool_result", text, origin: "local_tool", is_error: false, hunks })
  effects.push(...editEffects(hunks))
}

/** The tool names that the model uses, and those that the window uses. */
const TOOLS: ToolNames = {
  command: ["run_in_terminal", "copilot_runInTerminal"],
  read: ["read_file", "copilot_readFile"],
  write: ["create_file", "copilot_createFile"],
  patch: ["apply_patch", "copilot_applyPatch"],
}
const REPLACES = [
  "replace_string_in_file",
  "copilot_replaceString",
  "multi_replace_string_in_file",
  "copilot_multiReplaceString",
]

function actionOfVscode(tool: string | undefined, args: RawRecord): CallAction {
  if (tool === undefined || !REPLACES.includes(tool)) return actionByName(TOOLS, tool, args)
  const edits = Array.isArray(args.replacements) ? records(args.replacements) : [args]
  return {
    hunks: edits.flatMap(({ filePath, oldString, newString }) =>
      string(filePath) === undefined ? [] : hunksOfReplacement(string(filePath)!, oldString, newString),
    ),
  }
}

/** The kinds of log entries, by how they change the session. */
const SNAPSHOT = 0
const SET = 1
const APPEND = 2
const DELETE = 3

/**
 * Replays a log of changes and returns the resulting session, or undefined if there is no snapshot. Entries that cannot be
 * applied, because an earlier line was damaged, are counted by `skip`. The entries are not modified.
 */
export function replaySession(entries: Iterable<RawRecord>, skip: () => void): RawRecord | undefined {
  let session: RawRecord | undefined
  for (const entry of entries) {
    const value = structuredClone(entry.v)
    if (entry.kind === SNAPSHOT) session = isRecord(value) ? value : session
    else if (!session || !isApplied(session, entry, value)) skip()
  }
  return session
}

function isLogEntry({ kind }: RawRecord): boolean {
  return kind === SNAPSHOT || kind === SET || kind === APPEND || kind === DELETE
}

function isApplied(session: RawRecord, { kind, k, i }: RawRecord, value: unknown): boolean {
  const path = array(k)
  const place = path.slice(0, -1).reduce<unknown>((at, step) => placeIn(at, step)?.get(), session)
  const last = placeIn(place, path.at(-1))
  if (!last) return false
  if (kind === DELETE) last.set(undefined)
  else if (kind === SET) last.set(value)
  else {
    const list = array(last.get())
    const length = number(i)
    last.set([...(length === undefined ? list : list.slice(0, Math.max(0, length))), ...array(value)])
  }
  return true
}

type Place = { get(): unknown; set(value: unknown): void }

/** Finds a field of an object, or an item of a list if that leaves no gaps. */
function placeIn(at: unknown, key: unknown): Place | undefined {
  if (Array.isArray(at)) {
    if (typeof key !== "number" || !Number.isInteger(key) || key < 0 || key > at.length) return undefined
    return { get: () => at[key] as unknown, set: (value) => void Reflect.set(at, key, value) }
  }
  if (!isRecord(at) || typeof key !== "string" || key === "__proto__") return undefined
  return { get: () => (Object.hasOwn(at, key) ? at[key] : undefined), set: (value) => void Reflect.set(at, key, value) }
}
