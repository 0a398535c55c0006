import { actionByName, type CallAction, resultOfCall, toolCallPart } from "../../../../src/agents/kit/calls.ts"
import type { Parsed, UnitName } from "../../../../src/agents/kit/connector.ts"
import { storedHunks } from "../../../../src/agents/kit/hunks-between.ts"
import { parsedFrom, uniqueKeys } from "../../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../../src/core/by-name.ts"
import type { Message, Origin, Part } from "../../../../src/core/conversation.ts"
import { withoutUndefined } from "../../../../src/core/defined.ts"
import { array, number, type RawRecord, record, records, string, time } from "../../../../src/core/record.ts"

/** Parses the records of one kind of store into messages, and reports unknown types. */
type KiroReader = (records: RawRecord[], countUnknown: (type: string) => void, id: string) => Message[]

/**
 * The parser and the authority for each kind of store. If several stores have the same conversation, the newest kind of store
 * wins.
 */
const STORES: Record<string, { read: KiroReader; authority: number }> = {
  v1: { read: turnMessages, authority: 1 },
  v2: { read: turnMessages, authority: 2 },
  file: { read: lineMessages, authority: 3 },
  ide: { read: editorMessages, authority: 1 },
}
const SESSION_TYPES = ["dex-session", "dex-conversation", "dex-editor"]

export function parseKiro(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const entries: RawRecord[] = []
  let session: RawRecord = {}
  for (const entry of raw) {
    if (SESSION_TYPES.includes(String(entry.type))) session = entry
    else entries.push(entry)
  }
  const store = STORES[unit.key.slice(0, unit.key.indexOf(":"))] ?? STORES.file!
  const id =
    string(session.conversation_id) ??
    string(session.session_id) ??
    string(session.sessionId) ??
    unit.key.split(/[:/]/).at(-1)!
  const unknown = createCounts()
  const uniqueKey = uniqueKeys()
  const messages = store
    .read(entries, (type) => unknown.add(type), id)
    .map((message) => ({ ...message, key: uniqueKey(message.key || `${id}:result`) }))
  const title = string(session.title)
  const prompt = messages.find(({ role }) => role === "user")?.parts[0]?.text ?? ""
  const fields = {
    id,
    title: title !== undefined && prompt.startsWith(title) ? undefined : title,
    cwds: [session.key, session.cwd, session.workspaceDirectory, ...entries.map(folderOf)],
    times: [session.created_at, session.updated_at, session.created].map(dateOf),
    messages: messages.length === 0 ? [] : [...summaryOf(session.latest_summary, id), ...messages],
    authority: store.authority,
  }
  return parsedFrom(fields, unknown)
}

/** Returns the summary with which a compaction replaced earlier turns. */
function summaryOf(summary: unknown, id: string): Message[] {
  const text = string(Array.isArray(summary) ? summary[0] : summary)
  if (text === undefined) return []
  return [{ key: `${id}:summary`, role: "system", parts: [{ type: "summary", text, origin: "agent" }] }]
}

function folderOf({ user }: RawRecord): unknown {
  return record(record(record(user)?.env_context)?.env_state)?.current_working_directory
}

/** Parses a date. The editor writes milliseconds as a string. */
function dateOf(value: unknown): number | undefined {
  return time(typeof value === "string" && /^\d{9,16}$/.test(value) ? Number(value) : value)
}

type KiroCall = { tool: string | undefined; args: RawRecord }

const TOOLS = {
  command: ["execute_bash", "execute_cmd", "executeBash", "shell"],
  editor: ["fs_write", "fsWrite", "write"],
}

function actionOf({ tool, args }: KiroCall): CallAction {
  if (tool !== "fs_read" && tool !== "fsRead" && tool !== "read") return actionByName(TOOLS, tool, args)
  const reads = [args, ...records(args.operations)].flatMap(({ mode, path }) =>
    mode === "Directory" || mode === "Search" ? [] : (string(path) ?? []),
  )
  return { reads }
}

/** Builds the message for a call's result. `outputs` are texts and objects. A command's object contains its exit status. */
function kiroResult(
  call_id: string | undefined,
  call: KiroCall | undefined,
  outputs: unknown[],
  isFailed: boolean,
): Message {
  const commandOutput = outputs.map(record).find((output) => output?.exit_status !== undefined)
  const exitCode = /-?\d{1,10}$/.exec(String(commandOutput?.exit_status ?? ""))?.[0]
  const { part, effects } = resultOfCall({
    tool: call?.tool,
    call_id,
    output: outputs.map(outputText).join("\n"),
    failed: isFailed,
    exit_status: exitCode === undefined ? undefined : Number(exitCode),
    action: call ? actionOf(call) : {},
  })
  return {
    key: call_id === undefined ? "" : `result ${call_id}`,
    role: "tool",
    parts: [part],
    effects: effects.length > 0 ? effects : undefined,
  }
}

/** Returns an output as text. A command's output is returned as it was printed, any other object as JSON. */
function outputText(output: unknown): string {
  const json = record(output)
  if (!json) return string(output) ?? ""
  if (json.exit_status === undefined) return JSON.stringify(json)
  return [json.stdout, json.stderr].flatMap((text) => string(text) ?? []).join("\n")
}

/** Parses the command line's files. Each line has a prompt, an answer, or the results of tools. */
function lineMessages(lines: RawRecord[], countUnknown: (type: string) => void, id: string): Message[] {
  const calls = new Map<string, KiroCall>()
  return lines.flatMap((line, index): Message[] => {
    const data = record(line.data) ?? {}
    const content = records(data.content)
    const key = string(data.message_id) ?? `${id}:${index}`
    const at = time(record(data.meta)?.timestamp) ?? time(line.timestamp)
    const timeField = at === undefined ? {} : { at }
    switch (line.kind) {
      case "Prompt": {
        const parts = content.flatMap((block) => textPart(block, "person"))
        return parts.length > 0 ? [{ key, role: "user", ...timeField, parts }] : []
      }
      case "AssistantMessage": {
        for (const { kind, data: use } of content)
          if (kind === "toolUse") calls.set(string(record(use)?.toolUseId) ?? "", lineCall(record(use) ?? {}))
        const parts = content.flatMap((block) => [...textPart(block, "agent"), ...lineCallPart(block)])
        return parts.length > 0 ? [{ key, role: "assistant", ...timeField, parts }] : []
      }
      case "ToolResults":
        return content
          .filter(({ kind }) => kind === "toolResult")
          .map((block) => ({ ...lineResult(record(block.data) ?? {}, calls), ...timeField }))
      default:
        countUnknown(string(line.kind) ?? string(line.type) ?? "(no kind)")
        return []
    }
  })
}

function lineCall(use: RawRecord): KiroCall {
  return { tool: string(use.name), args: record(use.input) ?? {} }
}

function textPart({ kind, data }: RawRecord, origin: "person" | "agent"): Part[] {
  if (kind === "image") return [{ type: "image", text: "", origin }]
  const text = string(data)
  if (text === undefined) return []
  if (kind === "thinking") return [{ type: "thinking", text, origin: "agent" }]
  return kind === "text" ? [{ type: "text", text, origin }] : []
}

function lineCallPart({ kind, data }: RawRecord): Part[] {
  const use = record(data)
  return kind === "toolUse" && use ? [toolCallPart(string(use.name), use.input, string(use.toolUseId))] : []
}

function lineResult(result: RawRecord, calls: Map<string, KiroCall>): Message {
  const id = string(result.toolUseId)
  const isFailed = /^error$/i.test(string(result.status) ?? "")
  return kiroResult(
    id,
    calls.get(id ?? ""),
    records(result.content).map(({ data }) => data),
    isFailed,
  )
}

/** Parses the turns in the databases. Each has an input (a prompt or tool results) and the model's answer. */
function turnMessages(turns: RawRecord[], countUnknown: (type: string) => void, id: string): Message[] {
  const calls = new Map<string, KiroCall>()
  return turns.flatMap((turn, index) => {
    if (turn.type !== "turn") {
      countUnknown(string(turn.type) ?? "(no type)")
      return []
    }
    const request = record(turn.request_metadata)
    const assistant = record(turn.assistant) ?? {}
    const answer = answerOf(assistant, request, countUnknown)
    const answerKey = answer?.key ?? `${id}:${index}`
    const inputMessages = messagesOfInput(record(turn.user), calls, answerKey, countUnknown)
    for (const use of records(record(assistant.ToolUse)?.tool_uses)) calls.set(string(use.id) ?? "", callOf(use))
    return [...inputMessages, ...(answer ? [{ ...answer, key: answerKey }] : [])]
  })
}

function callOf(use: RawRecord): KiroCall {
  return { tool: string(use.name), args: record(use.args) ?? {} }
}

function messagesOfInput(
  user: RawRecord | undefined,
  calls: Map<string, KiroCall>,
  answerKey: string,
  countUnknown: (type: string) => void,
): Message[] {
  if (!user) return []
  const at = time(user.timestamp)
  const content = record(user.content) ?? {}
  for (const kind of Object.keys(content)) if (!KNOWN_CONTENT.includes(kind)) countUnknown(`user/${kind}`)
  const variants = KNOWN_CONTENT.map((kind) => record(content[kind])).filter((variant) => variant !== undefined)
  const results = variants.flatMap((variant) => records(variant.tool_use_results))
  const messages = results.map((result) => resultOf(result, calls, content.CancelledToolUses !== undefined))
  const prompts = variants.flatMap((variant) => string(variant.prompt) ?? [])
  const parts: Part[] = prompts.map((text) => ({ type: "text", text, origin: "person" }))
  for (let n = number(user.images) ?? 0; n > 0 && parts.length < 100; n--)
    parts.push({ type: "image", text: "", origin: "person" })
  if (parts.length > 0) messages.push({ key: `${answerKey}:user`, role: "user", parts })
  return messages.map((message) => ({ ...message, ...withoutUndefined({ at }) }))
}

const KNOWN_CONTENT = ["Prompt", "ToolUseResults", "CancelledToolUses"]

function resultOf(result: RawRecord, calls: Map<string, KiroCall>, isCancelled: boolean): Message {
  const id = string(result.tool_use_id)
  const outputs = records(result.content).map(({ Text, Json }) => Text ?? Json)
  return kiroResult(id, calls.get(id ?? ""), outputs, isCancelled || result.status === "Error")
}

function answerOf(
  assistant: RawRecord,
  request: RawRecord | undefined,
  countUnknown: (type: string) => void,
): (Omit<Message, "key"> & { key?: string }) | undefined {
  for (const kind of Object.keys(assistant))
    if (!["Response", "ToolUse", "timestamp"].includes(kind)) countUnknown(`assistant/${kind}`)
  const response = record(assistant.Response) ?? record(assistant.ToolUse)
  if (!response) return undefined
  const text = string(response.content)
  const parts: Part[] = [
    ...(text === undefined ? [] : [{ type: "text", text, origin: "agent" } as const]),
    ...array(response.tool_uses).flatMap((use) => (record(use) ? [callPart(record(use)!)] : [])),
  ]
  const at = time(assistant.timestamp) ?? time(request?.stream_end_timestamp_ms)
  const [model, name] = [string(request?.model_id), string(response.message_id) ?? string(request?.message_id)]
  if (parts.length === 0) return undefined
  return {
    key: name,
    role: "assistant",
    parts,
    at,
    model,
  }
}

function callPart(use: RawRecord): Part {
  return toolCallPart(string(use.name), use.args, string(use.id))
}

/** The beginnings of texts that the editor inserts into a person's turn before the first prompt. */
const INJECTED_BEGINNINGS = [
  "# System Prompt",
  "# Identity",
  "<identity>",
  "## Included Rules",
  "You are operating in a workspace",
]

/** Parses the editor's sessions. The actions of an execution follow the agent's message that started it. */
function editorMessages(rows: RawRecord[], countUnknown: (type: string) => void, id: string): Message[] {
  const rowsWithLog = new Set(rows.flatMap((row, index) => (rows[index + 1]?.type === "action" ? [row] : [])))
  return rows.flatMap((row, index): Message[] => {
    if (row.type === "action") return actionMessages(row, `${id}:${index}`, countUnknown)
    if (row.type !== "history") {
      countUnknown(string(row.type) ?? "(no type)")
      return []
    }
    const message = record(row.message) ?? {}
    const role = message.role === "user" ? "user" : message.role === "assistant" ? "assistant" : undefined
    if (!role) countUnknown(`history/${string(message.role) ?? "(no role)"}`)
    // If there is a log, the message itself contains only a notice that work is in progress.
    if (!role || (role === "assistant" && rowsWithLog.has(row))) return []
    const parts = textParts(message.content, role)
    return parts.length > 0 ? [{ key: `${id}:${string(message.id) ?? index}`, role, parts }] : []
  })
}

function textParts(content: unknown, role: "user" | "assistant"): Part[] {
  const texts = typeof content === "string" ? [content] : records(content).map(({ text }) => text)
  return texts.flatMap((value): Part[] => {
    const text = string(value)
    if (text === undefined) return []
    const isInjected = role === "user" && INJECTED_BEGINNINGS.some((beginning) => text.startsWith(beginning))
    const origin: Origin = role === "assistant" ? "agent" : isInjected ? "injected" : "person"
    return [{ type: "text", text, origin }]
  })
}

function actionMessages(action: RawRecord, keyPrefix: string, countUnknown: (type: string) => void): Message[] {
  const [input, output] = [record(action.input) ?? {}, record(action.output) ?? {}]
  const at = time(action.emittedAt)
  const timeField = at === undefined ? {} : { at }
  const call_id = string(action.actionId)
  const key = `${keyPrefix}:${call_id ?? "action"}`
  const tool = string(action.actionType)
  if (tool === "say") {
    const text = string(output.message)
    return text === undefined
      ? []
      : [{ key, ...timeField, role: "assistant", parts: [{ type: "text", text, origin: "agent" }] }]
  }
  if (tool === undefined || !KNOWN_ACTIONS.includes(tool)) {
    countUnknown(`action/${tool ?? "(no type)"}`)
    return []
  }
  const file = string(input.file)
  const { part, effects } = resultOfCall({
    tool,
    call_id,
    output: string(output.message) ?? "",
    failed: false,
    action: {
      hunks: storedHunks(action.hunks),
      reads: tool === "readCode" && file !== undefined ? [file] : undefined,
    },
  })
  return [
    { key, ...timeField, role: "assistant", parts: [toolCallPart(tool, input, call_id)] },
    {
      key: `${key}:result`,
      ...timeField,
      role: "tool",
      parts: [part],
      effects: effects.length > 0 ? effects : undefined,
    },
  ]
}

const KNOWN_ACTIONS = ["replace", "create", "readCode"]
