import { type CallAction, resultOfCall, toolCallPart } from "../../../../src/agents/kit/calls.ts"
import type { Parsed, UnitName } from "../../../../src/agents/kit/connector.ts"
import { hunkOfNewFile, hunksOfDiff, hunksOfReplacement } from "../../../../src/agents/kit/effects.ts"
import { imagePart, parsedFrom, uniqueKeys, usageFrom, utcTime } from "../../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../../src/core/by-name.ts"
import type { Conversation, Effect, Hunk, Kind, Message, Origin, Part } from "../../../../src/core/conversation.ts"
import { array, number, type RawRecord, record, records, string, time } from "../../../../src/core/record.ts"
import type { Usage } from "../../../../src/core/usage.ts"

/** The common form of a database row and a line of the older files. */
type Turn = { id?: string; role: string; at?: number; content: RawRecord[]; isShown: boolean; isSent: boolean }
type Call = { tool: string | undefined; args: RawRecord }

export function parseGoose(rows: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const session: RawRecord = {}
  const turns: Turn[] = []
  for (const row of rows) {
    if (row.table === "sessions") Object.assign(session, row)
    else if (row.table === "messages" || (row.table === undefined && string(row.role))) turns.push(turnOf(row))
    else if (row.table === undefined && row.type === undefined) Object.assign(session, row)
    else unknown.add(string(row.table) ?? string(row.type) ?? "(no type)")
  }
  const id = string(session.id) ?? unit.key.replace(/^(db|file):|\.jsonl$/g, "")
  const kind = kindOf(string(session.session_type))
  const messages = messagesOf(turns, { id, kind, session }, (type) => unknown.add(type))
  const fields = {
    id,
    kind,
    title: titleOf(session),
    cwd: session.working_dir,
    parent: session.parent_session_id,
    times: [utcTime(session.created_at)],
    messages,
    authority: unit.key.startsWith("db:") ? 10 : 8,
  }
  return parsedFrom(fields, unknown)
}

function turnOf(row: RawRecord): Turn {
  const id = string(row.message_id) ?? string(row.id)
  const at = time(row.created_timestamp) ?? time(row.created)
  const metadata = record(row.metadata_json) ?? record(row.metadata)
  return {
    role: string(row.role) ?? "",
    content: records(row.content_json ?? row.content),
    isShown: metadata?.userVisible !== false,
    isSent: metadata?.agentVisible !== false,
    id,
    at,
  }
}

type SessionContext = { id: string; kind: Kind; session: RawRecord }

function messagesOf(
  turns: Turn[],
  { id, kind, session }: SessionContext,
  countUnknown: (type: string) => void,
): Message[] {
  const keys = uniqueKeys()
  const calls = callsIn(turns)
  const model = string(record(session.model_config_json)?.model_name)
  const messages: Message[] = []
  for (const [index, turn] of turns.entries()) {
    const { parts, effects } = contentOf(turn, isSummary(turn, turns[index + 1]), kind, calls, countUnknown)
    const key = keys(turn.id ?? `${id}:${turn.at ?? ""}:${turn.role}`)
    if (parts.length === 0) continue
    const role = roleOf(turn, parts)
    messages.push({
      key,
      role,
      at: turn.at,
      model: role === "assistant" && model !== undefined ? model : undefined,
      parts,
      effects: effects.length > 0 ? effects : undefined,
      // Goose neither shows nor sends this turn, because it repeats the prompt after a summary.
      abandoned: !turn.isShown && !turn.isSent ? true : undefined,
    })
  }
  const usage = gooseUsage(session)
  const lastAnswer = messages.findLast(({ role }) => role === "assistant")
  if (usage && lastAnswer) lastAnswer.usage = usage
  return messages
}

/**
 * True if this turn is the summary of a compaction. It looks like a user's turn, but only the model receives it, and it is
 * followed by an answer that acknowledges it.
 */
function isSummary(turn: Turn, next: Turn | undefined): boolean {
  const isHidden = (candidate: Turn | undefined) => candidate !== undefined && !candidate.isShown && candidate.isSent
  return turn.role === "user" && isHidden(turn) && next?.role === "assistant" && isHidden(next)
}

function roleOf({ role, isShown, isSent }: Turn, parts: Part[]): Message["role"] {
  if (!isShown && isSent) return "system"
  if (parts.some(({ type }) => type === "tool_result")) return "tool"
  if (parts.every(({ type, origin }) => type === "text" && origin === "local_tool")) return "system"
  return role === "assistant" ? "assistant" : role === "user" ? "user" : role === "tool" ? "tool" : "system"
}

function callsIn(turns: Turn[]): Map<string, Call> {
  const calls = new Map<string, Call>()
  for (const block of turns.flatMap(({ content }) => content)) {
    const id = callIdOf(block)
    if (id !== undefined && /toolRequest$/i.test(String(block.type))) calls.set(id, callOf(block))
  }
  return calls
}

function callIdOf(block: RawRecord): string | undefined {
  return string(block.id) ?? string(block.toolCallId) ?? string(record(block.toolCall)?.id)
}

/** Parses a call. In newer rows the call is in `value`, because a call that could not be parsed has an `error` instead. */
function callOf(block: RawRecord): Call {
  const call = record(block.toolCall)
  const fields = record(call?.value) ?? call
  return { tool: string(fields?.name), args: record(fields?.arguments) ?? {} }
}

type Content = { parts: Part[]; effects: Effect[] }

function contentOf(
  { role, content, isShown, isSent }: Turn,
  isSummaryTurn: boolean,
  kind: Kind,
  calls: Map<string, Call>,
  countUnknown: (type: string) => void,
): Content {
  const parts: Part[] = []
  const effects: Effect[] = []
  const promptOrigin: Origin = kind === "person" ? "person" : "agent"
  const origin: Origin = !isShown && isSent ? "injected" : role === "user" ? promptOrigin : "agent"
  for (const block of content) {
    const text = string(block.text) ?? string(block.thinking)
    switch (block.type) {
      case "text":
        if (text === undefined) break
        parts.push(isSummaryTurn ? { type: "summary", text, origin: "agent" } : { type: "text", text, origin })
        break
      case "thinking":
      case "reasoning":
        if (text !== undefined) parts.push({ type: "thinking", text, origin: "agent" })
        break
      case "image":
        parts.push(imagePart(block.image, origin))
        break
      case "toolRequest":
      case "frontendToolRequest": {
        const { tool, args } = callOf(block)
        const problem = string(record(block.toolCall)?.error) // the block could not be parsed as a call
        parts.push(toolCallPart(tool, problem ?? args, callIdOf(block)))
        break
      }
      case "toolResponse": {
        const answer = responseOf(block, calls)
        parts.push(...answer.parts)
        effects.push(...answer.effects)
        break
      }
      case "systemNotification":
        if (string(block.msg)) parts.push({ type: "text", text: string(block.msg)!, origin: "local_tool" })
        break
      case "redactedThinking":
      case "toolConfirmationRequest":
      case "actionRequired":
      case "conversationCompacted":
      case "contextLengthExceeded":
      case "summarizationRequested":
        break
      default:
        countUnknown(`content ${String(block.type)}`)
    }
  }
  return { parts, effects }
}

function responseOf(block: RawRecord, calls: Map<string, Call>): Content {
  const id = callIdOf(block)
  const { tool, args } = calls.get(id ?? "") ?? { tool: undefined, args: {} }
  const result = record(block.toolResult) ?? {}
  const answer = record(result.value) ?? result
  const pieces = records(Array.isArray(result.value) ? result.value : answer.content).filter(isForTheModel)
  const problem = string(result.error)
  const output = problem ?? pieces.flatMap(({ text }) => string(text) ?? []).join("\n")
  const exit_status = number(record(answer.structuredContent)?.exit_code) ?? exitStatusIn(output)
  const { part, effects } = resultOfCall({
    tool,
    call_id: id,
    output,
    failed: result.status === "error" || answer.isError === true,
    exit_status,
    action: actionOfGoose(tool, args),
    isRemote: tool !== undefined && /__/.test(tool) && !/^(developer|platform|todo|skills)__/.test(tool),
  })
  const images = pieces.filter(({ type }) => type === "image").map(({ image }) => imagePart(image, part.origin))
  return { parts: [part, ...images], effects }
}

/** True if a text is for the model. Tools return some texts twice: once for the model, once for the screen. */
function isForTheModel({ annotations }: RawRecord): boolean {
  const audience = array(record(annotations)?.audience)
  return audience.length === 0 || audience.includes("assistant")
}

function exitStatusIn(output: string): number | undefined {
  const code = /^Command exited with code (\d{1,5})$/m.exec(output)?.[1]
  return code === undefined ? undefined : Number(code)
}

/** Goose counts per session, not per answer, so the total is added to the last answer. */
function gooseUsage(session: RawRecord): Usage | undefined {
  return usageFrom({
    input: number(session.accumulated_input_tokens) ?? session.input_tokens,
    output: number(session.accumulated_output_tokens) ?? session.output_tokens,
    cost: session.accumulated_cost,
  })
}

function kindOf(type: string | undefined): Kind {
  if (type === "sub_agent") return "subagent"
  return type === "scheduled" || type === "hidden" ? "automation" : "person"
}

/** Goose's placeholders for sessions without a name. */
const UNNAMED = /^(CLI Session|New Chat|New session\b.*|Chat \d+)$/

function titleOf(session: RawRecord): Conversation["title"] {
  const name = string(session.name) ?? string(session.description)
  if (name === undefined || UNNAMED.test(name)) return undefined
  return { text: name, from: number(session.user_set_name) === 1 ? "person" : "agent" }
}

/** Derives the action of a call. Tools are named `<extension>__<tool>`; since version 1.29, some are named `<tool>`. */
function actionOfGoose(name: string | undefined, args: RawRecord): CallAction {
  const tool = name?.replace(/^\w+?__/, "")
  const path = string(args.path) ?? string(args.file_path)
  if (tool === "shell") {
    const command = string(args.command) ?? string(args.cmd)
    return command === undefined ? {} : { command }
  }
  if (path === undefined) return {}
  if (tool === "read") return { reads: [path] }
  if (tool === "write") return { hunks: newFileHunks(path, args.content) }
  if (tool === "edit") return { hunks: hunksOfReplacement(path, args.before, args.after) }
  return tool === "text_editor" ? olderEditorAction(path, args) : {}
}

/** Derives the action of a call from before version 1.29, when one tool did all file operations. */
function olderEditorAction(path: string, args: RawRecord): CallAction {
  const diff = string(args.diff)
  switch (args.command) {
    case "view":
      return { reads: [path] }
    case "write":
    case "create":
      return { hunks: newFileHunks(path, args.file_text) }
    case "str_replace":
      return { hunks: diff ? hunksOfDiff(diff, path) : hunksOfReplacement(path, args.old_str, args.new_str) }
    case "insert":
      return { hunks: hunksOfReplacement(path, undefined, args.new_str) }
    default:
      return {}
  }
}

function newFileHunks(path: string, content: unknown): Hunk[] {
  return typeof content === "string" ? [hunkOfNewFile(path, content)] : []
}
