import type { Effect, Message, Origin, Part } from "../../core/conversation.ts"
import { number, type RawRecord, record, records, string } from "../../core/record.ts"
import { deedByName, type ToolNames } from "../kit/deed-by-name.ts"
import { finishedCall, toolCallPart } from "../kit/finished-call.ts"
import { splitInjected } from "../kit/injected.ts"
import { imagePart } from "../kit/kept-text.ts"

const TOOLS: ToolNames = {
  command: ["Execute", "Shell"],
  read: ["Read"],
  write: ["Create", "Write"],
  edit: ["Edit", "MultiEdit"],
  patch: ["ApplyPatch"],
}

/** What says nothing by itself. */
const QUIET = ["session_start", "session_end", "system", "todo_state", "dex-settings"]

export type DroidCall = { tool: string | undefined; args: RawRecord }
export type DroidContent = { role: Message["role"]; parts: Part[]; effects: Effect[] }
type Context = { asked: Origin; calls: Map<string, DroidCall>; last: Message | undefined }

/** Undefined where there is nothing to tell. */
export function contentOfRecord(one: RawRecord, context: Context): DroidContent | "unknown" | undefined {
  const type = string(one.type) ?? ""
  switch (type) {
    case "message":
      return contentOfMessage(record(one.message) ?? one, context)
    case "tool_call":
      return contentOfCall(one, context)
    case "tool_result":
      return contentOfResult(one, context)
    case "completion":
      return completionOf(one, context)
    case "compaction_state": {
      const text = string(one.summaryText) ?? string(one.summary) ?? string(record(one.summary)?.text)
      return text === undefined
        ? undefined
        : { role: "system", parts: [{ type: "summary", text, origin: "agent" }], effects: [] }
    }
    case "error": {
      const text = string(one.message) ?? string(record(one.error)?.message)
      return text === undefined
        ? undefined
        : { role: "system", parts: [{ type: "text", text, origin: "local_tool" }], effects: [] }
    }
    default:
      return QUIET.includes(type) ? undefined : "unknown"
  }
}

function contentOfMessage(message: RawRecord, context: Context): DroidContent | "unknown" {
  const { role } = message
  if (role !== "user" && role !== "assistant" && role !== "system") return "unknown"
  const flat = string(message.text) ?? string(message.content)
  const blocks = flat === undefined ? records(message.content) : [{ type: "text", text: flat }]
  const parts: Part[] = []
  const effects: Effect[] = []
  for (const block of blocks) {
    const text = string(block.text) ?? string(block.thinking)
    if (block.type === "tool_use") parts.push(...(contentOfCall(block, context)?.parts ?? []))
    else if (block.type === "tool_result") {
      const result = contentOfResult(block, context)
      parts.push(...result.parts)
      effects.push(...result.effects)
    } else if (block.type === "image") parts.push(imagePart(block.image, role === "user" ? context.asked : "agent"))
    else if (text === undefined) continue
    else if (block.type === "thinking") parts.push({ type: "thinking", text, origin: "agent" })
    else parts.push(...spoken(text, role === "user" ? context.asked : role === "system" ? "injected" : "agent"))
  }
  const isResult = parts.some(({ type }) => type === "tool_result")
  return { role: role === "user" && isResult ? "tool" : role, parts, effects }
}

function spoken(text: string, origin: Origin): Part[] {
  if (origin === "agent") return [{ type: "text", text, origin }]
  return splitInjected(text, ["system-reminder", "system-notification"]).map((run) => ({
    type: "text",
    text: run.text,
    origin: run.injected ? "injected" : origin,
  }))
}

function callIdOf(one: RawRecord): string | undefined {
  return string(one.toolCallId) ?? string(one.tool_use_id) ?? string(one.toolUseId) ?? string(one.id)
}

function contentOfCall(one: RawRecord, { calls }: Context): DroidContent {
  const id = callIdOf(one)
  const tool = string(one.name) ?? string(one.toolName)
  const args = record(one.input) ?? record(one.parameters) ?? {}
  if (id !== undefined) calls.set(id, { tool, args })
  return { role: "assistant", parts: [toolCallPart(tool, args, id)], effects: [] }
}

function contentOfResult(one: RawRecord, { calls }: Context): DroidContent {
  const id = callIdOf(one)
  const call = calls.get(id ?? "")
  const value = record(one.value)
  const output = outputOf(one.content ?? one.value)
  const code = /\(exit code: (\d{1,5})\)|\[Process exited with code (\d{1,5})\]/.exec(output)
  const exit_status = number(value?.exitCode) ?? (code ? Number(code[1] ?? code[2]) : undefined)
  const { part, effects } = finishedCall({
    tool: call?.tool ?? string(one.toolName) ?? string(one.toolId),
    call_id: id,
    output,
    printed: output.replace(
      /^Error: Command failed \(exit code: \d{1,5}\)$|^\[Process exited with code \d{1,5}\]$/gm,
      "",
    ),
    failed: one.is_error === true || one.isError === true,
    exit_status: exit_status !== undefined && call && isCommand(call) ? exit_status : undefined,
    deed: call ? deedByName(TOOLS, call.tool, call.args) : {},
  })
  return { role: "tool", parts: [part], effects }
}

function isCommand({ tool }: DroidCall): boolean {
  return tool !== undefined && TOOLS.command!.includes(tool)
}

/** A text, blocks of text, or what a command printed. */
function outputOf(value: unknown): string {
  if (typeof value === "string") return value
  if (Array.isArray(value))
    return records(value)
      .flatMap(({ text }) => string(text) ?? [])
      .join("\n")
  const printed = record(value)
  if (!printed) return ""
  const texts = [printed.stdout, printed.stderr].flatMap((text) => string(text) ?? [])
  return texts.length > 0 ? texts.join("\n") : JSON.stringify(printed)
}

/** Says the last answer again, unless it is the first to say it. */
function completionOf(one: RawRecord, { last }: Context): DroidContent | undefined {
  const text = string(one.finalText) ?? string(one.final_text)
  if (text === undefined || (last?.role === "assistant" && last.parts.at(-1)?.text === text)) return undefined
  return { role: "assistant", parts: [{ type: "text", text, origin: "agent" }], effects: [] }
}
