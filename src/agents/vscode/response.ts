import { fileURLToPath } from "node:url"
import type { Effect, Hunk, Part } from "../../core/conversation.ts"
import { array, isRecord, number, parseObject, type RawRecord, record, records, string } from "../../core/record.ts"
import { editEffects, hunksOfReplacement } from "../kit/effects.ts"
import { finishedCall, toolCallPart } from "../kit/finished-call.ts"
import { deedOfVscode } from "./tools.ts"

/** What shows progress, asks, or repeats what stands elsewhere. */
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
/** What the model asked for, which the window's own account of a call leaves out. */
type Call = { name: string | undefined; args: RawRecord; output: string | undefined }

export function responseOf(request: RawRecord, count: (type: string) => void): Content {
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
  const asked = records(metadata?.toolCallRounds).flatMap(({ toolCalls }) => records(toolCalls))
  return new Map(
    asked.flatMap((call) => {
      const id = string(call.id)
      if (id === undefined) return []
      const args = parseObject(string(call.arguments) ?? "") ?? record(call.arguments) ?? {}
      const result = record(results[id])
      const output = result && array(result.content).map(textOfResult).join("")
      return [[plainId(id), { name: string(call.name), args, output }] as const]
    }),
  )
}

/** The same call has its number behind it where the model sees it. */
function plainId(id: string): string {
  return id.replace(/__vscode-\d{1,15}$/, "")
}

/** A text, or the tree that the prompt was rendered from. */
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

/** A text, or `{ value }`. */
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
  const asked = id === undefined ? undefined : calls.get(plainId(id))
  const data = record(item.toolSpecificData)
  const details = record(item.resultDetails)
  const tool = asked?.name ?? string(item.toolId)
  const command = string(record(data?.commandLine)?.userEdited) ?? string(record(data?.commandLine)?.original)
  const input = asked?.args ?? parseObject(string(details?.input) ?? "") ?? shownInput(item, command)
  const exit_status = number(record(data?.terminalCommandState)?.exitCode)
  const deed = deedOfVscode(tool, input)
  const { part, effects: done } = finishedCall({
    tool,
    call_id: id,
    output: asked?.output ?? outputIn(data, details) ?? textIn(item.pastTenseMessage) ?? "",
    failed: details?.isError === true,
    exit_status,
    deed: command === undefined ? deed : { ...deed, command },
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

/** Lines as they were typed into the editor; what they replaced is not told. Changes within a line are no lines. */
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
    return undefined // an address of another platform
  }
}

/** A tool that says what it changes has the say: the window shows the same change again. */
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
