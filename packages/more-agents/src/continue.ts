import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { actionByName, resultOfCall, type ToolNames, toolCallPart } from "../../../src/agents/kit/calls.ts"
import type { Connector, Parsed, Unit, UnitName, Unreadable } from "../../../src/agents/kit/connector.ts"
import { fileEffect } from "../../../src/agents/kit/effects.ts"
import {
  entriesOf,
  fileAt,
  prependFacts,
  type Report,
  readJsonFile,
  textAt,
  type UnitWithFacts,
  unitOfFile,
  unitWithFacts,
  withProblems,
} from "../../../src/agents/kit/files.ts"
import { cutLongTexts, digestOfDataUri, imagePart, parsedFrom, usageFrom } from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Effect, Message, Part } from "../../../src/core/conversation.ts"
import {
  isRecord,
  number,
  parseArray,
  parseObject,
  type RawRecord,
  record,
  records,
  string,
} from "../../../src/core/record.ts"
import type { Usage } from "../../../src/core/usage.ts"
import { continueRoots } from "./records.ts"

/** Reads Continue: one JSON file per session, rewritten at every change, and a list with the start times of all sessions. */
export const continueConnector: Connector = {
  source: "continue",
  version: 1,
  roots: continueRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched: (root) => [{ folder: root, depth: 0, files: /\.json$/ }],
  read: (unit: UnitWithFacts, after) => prependFacts(readJsonFile(unit.path, after, recordsIn), unit, after),
  parse: parseContinue,
  // There is no `identify`: turns have no id, so records are compared by content and position.
}

const LIST_FILE = "sessions.json"
const MAX_LIST_BYTES = 64 << 20

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  const listEntries = records(parseArray(textAt(join(root, LIST_FILE), MAX_LIST_BYTES, report) ?? "[]"))
  const startTimes = new Map(listEntries.map(({ sessionId, dateCreated }) => [sessionId, dateCreated]))
  for (const { name } of entriesOf(root, report)) {
    const id = /^(.+)\.json$/.exec(name)?.[1]
    if (id === undefined || name === LIST_FILE) continue
    const stat = fileAt(join(root, name), report)
    const created = startTimes.get(id)
    const facts = created === undefined ? undefined : { type: "dex-session", created }
    if (stat) yield unitWithFacts(unitOfFile(join(root, name), id, stat), facts)
  }
}

/** Yields the session, followed by its turns. */
function* recordsIn(file: RawRecord): Iterable<RawRecord> {
  const { history, ...session } = file
  yield cutLongTexts({ type: "session", ...session })
  for (const [place, turn] of records(history).entries())
    yield cutLongTexts({ type: "turn", place, ...stripTurn(turn) })
}

/** Removes the editor's own state, the logs of requests, and image bytes. */
function stripTurn({ editorState: _, promptLogs: __, ...turn }: RawRecord): RawRecord {
  const message = record(turn.message)
  if (!message || !Array.isArray(message.content)) return turn
  const content = message.content.map((part: unknown) => {
    const imageUrl = isRecord(part) ? string(record(part.imageUrl)?.url) : undefined
    const image = imageUrl === undefined ? undefined : digestOfDataUri(imageUrl)
    return image ? { type: "image", image } : part
  })
  return { ...turn, message: { ...message, content } }
}

/** The names of tools in the command line and in the editors' extensions. */
const TOOLS: ToolNames = {
  command: ["Bash", "run_terminal_command"],
  read: ["Read", "read_file"],
  write: ["Write", "create_new_file"],
  edit: ["Edit", "MultiEdit", "single_find_and_replace", "multi_edit"],
}

/** Continue's own tools. Any other tool belongs to an MCP server, which chooses its name. */
const OWN_TOOLS = new Set([
  ...Object.values(TOOLS).flat(),
  ...["AskQuestion", "Checklist", "Diff", "Exit", "List", "ReportFailure", "Search", "Skills", "Status", "Subagent"],
  ...["UploadArtifact", "codebase", "create_rule_block", "edit_existing_file", "file_glob_search", "grep_search", "ls"],
  ...["read_currently_open_file", "read_file_range", "request_rule", "view_diff", "view_repo_map", "view_subdirectory"],
])

/** Matches the titles that Continue gives to sessions that nobody named. */
const UNNAMED = /^(Untitled Session|New Session)$/

/** Parses a session. The result of a call is in the same turn as the call. */
function parseContinue(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const entries = [...raw]
  const session = entries.find(({ type }) => type === "session") ?? {}
  const id = string(session.sessionId) ?? unit.key
  const unknown = createCounts()
  const messages: Message[] = []
  for (const entry of entries) {
    if (entry.type === "turn") messages.push(...messagesOf(entry, `${id}:${String(entry.place)}`, unknown))
    else if (entry.type !== "session" && entry.type !== "dex-session") unknown.add(string(entry.type) ?? "(no type)")
  }
  const facts = entries.findLast(({ type }) => type === "dex-session")
  const created = string(facts?.created)
  const fields = {
    id,
    title: UNNAMED.test(string(session.title) ?? "") ? undefined : session.title,
    cwd: localPath(session.workspaceDirectory),
    times: [created === undefined ? facts?.created : Number(created)],
    messages,
  }
  return parsedFrom(fields, unknown)
}

function messagesOf(turn: RawRecord, key: string, unknown: ReturnType<typeof createCounts>): Message[] {
  const message = record(turn.message) ?? {}
  const summary = string(turn.conversationSummary)
  const summaryMessages: Message[] =
    summary === undefined
      ? []
      : [{ key: `${key}:summary`, role: "system", parts: [{ type: "summary", text: summary, origin: "agent" }] }]
  switch (message.role) {
    case "user":
      return [...promptOf(turn, message, key), ...summaryMessages]
    case "assistant":
      return [...answerOf(turn, message, key), ...resultsOf(turn, key), ...summaryMessages]
    case "thinking":
      return messageWith(key, "assistant", contentParts(message.content, "thinking"))
    case "system":
      return messageWith(key, "system", contentParts(message.content, "injected"))
    case "tool": // the call's turn contains the same result
      return []
    default:
      unknown.add(`turn/${string(message.role) ?? "(no role)"}`)
      return []
  }
}

function messageWith(key: string, role: Message["role"], parts: Part[]): Message[] {
  return parts.length === 0 ? [] : [{ key, role, parts }]
}

/**
 * Parses a prompt. An attached file counts only as mentioned, because its text was added for the model and not written by the
 * person.
 */
function promptOf(turn: RawRecord, message: RawRecord, key: string): Message[] {
  const effects = records(turn.contextItems).flatMap((item): Effect[] => {
    const uri = record(item.uri)
    const path = uri?.type === "file" ? localPath(uri.value) : undefined
    return path === undefined ? [] : [fileEffect(path, "mentioned")]
  })
  return messageWith(key, "user", contentParts(message.content, "person")).map((one) =>
    effects.length > 0 ? { ...one, effects } : one,
  )
}

function contentParts(content: unknown, kind: "person" | "agent" | "injected" | "thinking"): Part[] {
  const pieces: RawRecord[] = typeof content === "string" ? [{ text: content }] : records(content)
  return pieces.flatMap((piece): Part[] => {
    if (piece.image !== undefined) return [imagePart(piece.image, kind === "thinking" ? "agent" : kind)]
    const text = string(piece.text)
    if (text === undefined) return []
    return kind === "thinking" ? [{ type: "thinking", text, origin: "agent" }] : [{ type: "text", text, origin: kind }]
  })
}

function answerOf(turn: RawRecord, message: RawRecord, key: string): Message[] {
  const thought = string(record(turn.reasoning)?.text)
  const parts: Part[] = [
    ...(thought === undefined ? [] : contentParts(thought, "thinking")),
    ...contentParts(message.content, "agent"),
    ...records(message.toolCalls).map((call) => {
      const request = record(call.function) ?? {}
      return toolCallPart(string(request.name), request.arguments, string(call.id))
    }),
  ]
  const counts = record(message.usage)
  const [model, usage] = [string(counts?.model), continueUsage(counts)]
  const modelAndUsage = { model, usage }
  return messageWith(key, "assistant", parts).map((one) => ({ ...one, ...modelAndUsage }))
}

function continueUsage(counts: RawRecord | undefined): Usage | undefined {
  const details = record(counts?.prompt_tokens_details)
  return usageFrom({
    prompt: counts?.prompt_tokens,
    output: counts?.completion_tokens,
    cache_read: details?.cached_tokens,
    cache_write: details?.cache_write_tokens,
    cost: (number(counts?.cost_cents) ?? 0) / 100,
  })
}

function resultsOf(turn: RawRecord, key: string): Message[] {
  return records(turn.toolCallStates).flatMap((state, place): Message[] => {
    const request = record(record(state.toolCall)?.function) ?? {}
    const args = record(state.parsedArgs) ?? parseObject(string(request.arguments) ?? "") ?? {}
    const outputs = records(state.output).flatMap(({ content }) => string(content) ?? [])
    if (state.status === "generated" || state.status === "calling" || state.status === "generating") return []
    const output = outputs.join("\n")
    const exit = /\(exit code (\d{1,5})\)/.exec(output.slice(0, 200))?.[1]
    const tool = string(request.name)
    const { part, effects } = resultOfCall({
      tool,
      call_id: string(state.toolCallId),
      output,
      failed: state.status === "errored" || state.status === "canceled",
      exit_status: exit === undefined ? undefined : Number(exit),
      action: actionByName(TOOLS, tool, { file_path: localPath(args.filepath), ...args }),
      isRemote: tool !== undefined && !OWN_TOOLS.has(tool),
    })
    const withEffects = effects.length > 0 && { effects }
    return [{ key: `${key}:${place}`, role: "tool", parts: [part], ...withEffects }]
  })
}

/** Converts a file URI to a path. Editors write paths as file URIs; the command line writes plain paths, which are unchanged. */
function localPath(value: unknown): string | undefined {
  const text = string(value)
  if (!text?.startsWith("file:")) return text
  try {
    return fileURLToPath(text)
  } catch {
    return text // a path of another machine
  }
}
