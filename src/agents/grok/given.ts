import type { Message, Part } from "../../core/conversation.ts"
import { parseObject, type RawRecord, record, records, string } from "../../core/record.ts"
import { deedByName } from "../kit/deed-by-name.ts"
import { finishedCall, toolCallPart } from "../kit/finished-call.ts"
import { splitInjected } from "../kit/injected.ts"
import { imagePart } from "../kit/kept-text.ts"
import { GROK_TOOLS, type GrokLog } from "./updates.ts"

const INJECTED_TAGS = ["user_info", "system-reminder", "project_layout", "git_status"]

/** One line of what the model was given. It has no times and no names. */
export function readGiven(log: GrokLog, line: RawRecord): void {
  const said = contentOf(log, line)
  if (said === "unknown") log.unknown.add(string(line.type) ?? "(no type)")
  else if (said && said.parts.length > 0) log.messages.push({ key: log.keyFor(`${log.session}:${said.role}`), ...said })
}

type Content = Omit<Message, "key">

function contentOf(log: GrokLog, line: RawRecord): Content | "unknown" | undefined {
  switch (line.type) {
    case "system":
      return undefined
    case "user":
      return { role: "user", parts: promptParts(log, line) }
    case "reasoning": {
      const text = records(line.summary).flatMap((piece) => string(piece.text) ?? [])
      return {
        role: "assistant",
        parts: text.length === 0 ? [] : [{ type: "thinking", text: text.join("\n\n"), origin: "agent" }],
      }
    }
    case "assistant":
      return answerOf(log, line)
    case "tool_result":
      return resultOf(log, line)
    case "backend_tool_call": {
      const kind = record(line.kind)
      return { role: "assistant", parts: [toolCallPart(string(kind?.tool_type), kind?.action, string(kind?.id))] }
    }
    default:
      return "unknown"
  }
}

function promptParts({ isSubagent }: GrokLog, line: RawRecord): Part[] {
  const pieces = typeof line.content === "string" ? [{ text: line.content }] : records(line.content)
  const isPrompt =
    line.prompt_index !== undefined || pieces.some((piece: RawRecord) => string(piece.text)?.includes("<user_query>"))
  const typed = !isPrompt ? "injected" : isSubagent ? "agent" : "person"
  return pieces.flatMap((piece: RawRecord): Part[] => {
    if (piece.image !== undefined || piece.type === "image") return [imagePart(piece.image, typed)]
    const text = string(piece.text)?.replace(/^\s*<user_query>\s*|\s*<\/user_query>\s*$/g, "")
    return text
      ? splitInjected(text, INJECTED_TAGS).map((run) => ({
          type: "text",
          text: run.text,
          origin: run.injected ? "injected" : typed,
        }))
      : []
  })
}

function answerOf(log: GrokLog, line: RawRecord): Content {
  const calls = records(line.tool_calls).map((call) => {
    const [id, tool] = [string(call.id), string(call.name)]
    const args = parseObject(string(call.arguments) ?? "")
    if (id !== undefined) log.calls.set(id, { tool: tool ?? "unknown", args: args ?? {} })
    return toolCallPart(tool, call.arguments, id)
  })
  const [text, model] = [string(line.content), string(line.model_id)]
  const said: Part[] = text === undefined ? [] : [{ type: "text", text, origin: "agent" }]
  return { role: "assistant", parts: [...said, ...calls], model }
}

function resultOf(log: GrokLog, line: RawRecord): Content {
  const call_id = string(line.tool_call_id)
  const call = log.calls.get(call_id ?? "")
  const { part, effects } = finishedCall({
    tool: call?.tool,
    call_id,
    output: string(line.content) ?? "",
    failed: false,
    deed: call ? deedByName(GROK_TOOLS, call.tool, call.args) : {},
  })
  return { role: "tool", parts: [part], effects: effects.length > 0 ? effects : undefined }
}
