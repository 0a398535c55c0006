import { createCounts } from "../../core/by-name.ts"
import type { Conversation, Message, Origin, Part } from "../../core/conversation.ts"
import { number, type RawRecord, records, string, time } from "../../core/record.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { finishedCall, toolCallPart } from "../kit/finished-call.ts"
import { splitInjected } from "../kit/injected.ts"
import { uniqueKeys } from "../kit/message-keys.ts"
import { spanOf } from "../kit/times.ts"
import { type AntigravityCall, antigravityCall, deedOfAntigravity } from "./tools.ts"

/** A step that holds what a tool gave, and the tool, for where no call says it. */
const RESULTS: Record<string, string> = {
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
/** The calls that no step has answered yet, oldest first: a result does not say which call it is of. */
type Waiting = { calls: (AntigravityCall & { id: string })[]; made: number }

export function parseAntigravity(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const id = unit.key
  const keyOf = uniqueKeys()
  const unknown = createCounts()
  const waiting: Waiting = { calls: [], made: 0 }
  const messages: Message[] = []
  const cwds = new Set<string>()
  let model: string | undefined
  for (const step of raw) {
    if (step.type === "dex-session") {
      if (string(step.cwd)) cwds.add(string(step.cwd)!)
      continue
    }
    model = modelIn(step) ?? model
    const said = contentOf(step, waiting, cwds)
    if (!said) unknown.add(string(step.type) ?? "(no type)")
    for (const content of said ?? []) {
      const at = time(step.created_at)
      const place = number(step.step_index) ?? messages.length
      messages.push({
        key: keyOf(`${id}:${place}:${content.role}`),
        at,
        model: model !== undefined && content.role === "assistant" ? model : undefined,
        ...content,
      })
    }
  }
  return {
    conversations: messages.length === 0 ? [] : [conversationOf(id, [...cwds], messages)],
    unknown: unknown.all(),
  }
}

/** Undefined for a type that dex does not know. */
function contentOf(step: RawRecord, waiting: Waiting, cwds: Set<string>): Content[] | undefined {
  const type = string(step.type) ?? ""
  if (type === "USER_INPUT") return nonEmpty({ role: "user", parts: promptParts(string(step.content) ?? "") })
  if (type === "PLANNER_RESPONSE") return nonEmpty({ role: "assistant", parts: answerParts(step, waiting, cwds) })
  if (type === "SYSTEM_MESSAGE" || type === "CONVERSATION_HISTORY")
    return nonEmpty({ role: "system", parts: textParts(step.content, "injected") })
  if (type === "CHECKPOINT") {
    const text = string(step.content)
    return text === undefined ? [] : [{ role: "system", parts: [{ type: "summary", text, origin: "agent" }] }]
  }
  if (Object.hasOwn(RESULTS, type)) {
    const called = nonEmpty({ role: "assistant", parts: callParts(step, waiting, cwds) })
    return [...called, resultOf(step, RESULTS[type]!, waiting)]
  }
  if (step.source === "MODEL") waiting.calls.shift() // it is what a call gave, whatever it is
  return undefined
}

function nonEmpty(content: Content): Content[] {
  return content.parts.length > 0 ? [content] : []
}

function promptParts(content: string): Part[] {
  return splitInjected(content, INJECTED).map(({ text, injected }) => ({
    type: "text",
    text: injected ? text : requestIn(text),
    origin: injected ? "injected" : "person",
  }))
}

function requestIn(text: string): string {
  const [open, close] = ["<USER_REQUEST>", "</USER_REQUEST>"]
  return text.startsWith(open) && text.endsWith(close) ? text.slice(open.length, -close.length).trim() : text
}

/** Said when the person chose another one. */
function modelIn({ type, content }: RawRecord): string | undefined {
  if (type !== "USER_INPUT") return undefined
  return /`Model Selection` from [^\n]{1,100}? to ([^\n]{1,100}?)\.?$/m.exec(string(content) ?? "")?.[1]
}

function answerParts(step: RawRecord, waiting: Waiting, cwds: Set<string>): Part[] {
  const thinking = string(step.thinking)
  return [
    ...(thinking === undefined ? [] : [{ type: "thinking", text: thinking, origin: "agent" } as const]),
    ...textParts(step.content, "agent"),
    ...callParts(step, waiting, cwds),
  ]
}

function callParts(step: RawRecord, waiting: Waiting, cwds: Set<string>): Part[] {
  return records(step.tool_calls).map((raw) => {
    const call = antigravityCall(raw)
    const id = `${number(step.step_index) ?? "step"}.${++waiting.made}`
    waiting.calls.push({ ...call, id })
    const cwd = string(call.args.Cwd)
    if (cwd !== undefined) cwds.add(cwd)
    return toolCallPart(call.tool, call.args, id)
  })
}

function resultOf(step: RawRecord, tool: string, waiting: Waiting): Content {
  const call = waiting.calls.shift()
  const text = string(step.content) ?? ""
  const exit = call?.tool === "run_command" || tool === "run_command" ? exitIn(text) : undefined
  const { part, effects } = finishedCall({
    tool: call?.tool ?? tool,
    call_id: call?.id,
    output: text,
    failed: step.status === "ERROR" || step.status === "error" || step.status === "CANCELED",
    exit_status: exit,
    deed: call ? deedOfAntigravity(call) : {},
  })
  return { role: "tool", parts: [part], effects: effects.length > 0 ? effects : undefined }
}

function exitIn(text: string): number | undefined {
  const head = text.slice(0, 500)
  const code = /exit code:? (\d{1,5})/i.exec(head)?.[1]
  if (code !== undefined) return Number(code)
  return head.includes("The command completed successfully") ? 0 : undefined
}

function textParts(content: unknown, origin: Origin): Part[] {
  const text = string(content)
  return text === undefined ? [] : [{ type: "text", text, origin }]
}

function conversationOf(id: string, cwds: string[], messages: Message[]): Conversation {
  return { id, kind: "person", cwds, ...spanOf(messages.map(({ at }) => at)), messages, authority: 1 }
}
