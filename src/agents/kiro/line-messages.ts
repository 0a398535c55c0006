import type { Message, Part } from "../../core/conversation.ts"
import { type RawRecord, record, records, string, time } from "../../core/record.ts"
import { toolCallPart } from "../kit/finished-call.ts"
import type { KiroReader } from "./parse.ts"
import { type KiroCall, kiroResult } from "./tools.ts"

/** The command line's files: a line for what the person, the model and the tools said. */
export const lineMessages: KiroReader = (lines, unknown, id) => {
  const calls = new Map<string, KiroCall>()
  return lines.flatMap((line, place): Message[] => {
    const data = record(line.data) ?? {}
    const content = records(data.content)
    const key = string(data.message_id) ?? `${id}:${place}`
    const at = time(record(data.meta)?.timestamp) ?? time(line.timestamp)
    const dated = at === undefined ? {} : { at }
    switch (line.kind) {
      case "Prompt": {
        const parts = content.flatMap((block) => textPart(block, "person"))
        return parts.length > 0 ? [{ key, role: "user", ...dated, parts }] : []
      }
      case "AssistantMessage": {
        for (const { kind, data: use } of content)
          if (kind === "toolUse") calls.set(string(record(use)?.toolUseId) ?? "", callOf(record(use) ?? {}))
        const parts = content.flatMap((block) => [...textPart(block, "agent"), ...callPart(block)])
        return parts.length > 0 ? [{ key, role: "assistant", ...dated, parts }] : []
      }
      case "ToolResults":
        return content
          .filter(({ kind }) => kind === "toolResult")
          .map((block) => ({ ...resultOf(record(block.data) ?? {}, calls), ...dated }))
      default:
        unknown(string(line.kind) ?? string(line.type) ?? "(no kind)")
        return []
    }
  })
}

function callOf(use: RawRecord): KiroCall {
  return { tool: string(use.name), args: record(use.input) ?? {} }
}

function textPart({ kind, data }: RawRecord, origin: "person" | "agent"): Part[] {
  if (kind === "image") return [{ type: "image", text: "", origin }]
  const text = string(data)
  if (text === undefined) return []
  if (kind === "thinking") return [{ type: "thinking", text, origin: "agent" }]
  return kind === "text" ? [{ type: "text", text, origin }] : []
}

function callPart({ kind, data }: RawRecord): Part[] {
  const use = record(data)
  return kind === "toolUse" && use ? [toolCallPart(string(use.name), use.input, string(use.toolUseId))] : []
}

function resultOf(result: RawRecord, calls: Map<string, KiroCall>): Message {
  const id = string(result.toolUseId)
  const failed = /^error$/i.test(string(result.status) ?? "")
  return kiroResult(
    id,
    calls.get(id ?? ""),
    records(result.content).map(({ data }) => data),
    failed,
  )
}
