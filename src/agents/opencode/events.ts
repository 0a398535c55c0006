import type { Message, Origin, Part } from "../../core/conversation.ts"
import type { RawRecord } from "../../core/record.ts"
import { number, record, records, string, time } from "../../core/record.ts"
import { commandEffect, commitEffects } from "../kit/effects.ts"
import { errorMessageOf, fileParts, type PartsAndEffects, toolParts, usageIn } from "./parts.ts"

/** A row of `session_message`, the table that is to replace `message` and `part`. Undefined where it says nothing. */
export function eventMessage(row: RawRecord, asked: Origin, count: (type: string) => void): Message | undefined {
  const key = string(row.id)
  const data = record(row.data)
  if (key === undefined || !data) return undefined
  const at = time(record(data.time)?.created) ?? time(row.time_created)
  const base = { key, ...(at !== undefined && { at }) }
  const text = string(data.text)
  switch (row.type) {
    case "user": {
      const files = records(data.files).map((file) => fileParts(file, asked))
      const parts: Part[] = text === undefined ? [] : [{ type: "text", text, origin: asked }]
      return whole({ ...base, role: "user" }, [{ parts }, ...files])
    }
    case "synthetic":
    case "skill":
      return text === undefined
        ? undefined
        : { ...base, role: "user", parts: [{ type: "text", text, origin: "injected" }] }
    case "system":
      return text === undefined
        ? undefined
        : { ...base, role: "system", parts: [{ type: "text", text, origin: "injected" }] }
    case "shell":
      return shellMessage(base, data)
    case "assistant": {
      const told = records(data.content).map((part, index) => assistantPart(part, `${key}:${index}`, count))
      const model = string(record(data.model)?.id) ?? string(record(data.model)?.modelID)
      const usage = usageIn([data])
      const error = data.error === undefined ? "" : errorMessageOf(data.error)
      if (error) told.push({ parts: [{ type: "text", text: error, origin: "agent" }] })
      return whole({ ...base, role: "assistant", ...(model && { model }), ...(usage && { usage }) }, told)
    }
    case "compaction": {
      const summary = string(data.summary)
      const usage = usageIn([data])
      if (summary === undefined) return undefined
      return {
        ...base,
        role: "system",
        parts: [{ type: "summary", text: summary, origin: "agent" }],
        ...(usage && { usage }),
      }
    }
    case "agent-switched":
    case "model-switched":
    case "location-switched":
    case "idle":
      return undefined
    default:
      count(`session_message ${String(row.type)}`)
      return undefined
  }
}

function assistantPart(part: RawRecord, id: string, count: (type: string) => void): PartsAndEffects {
  const text = string(part.text)
  switch (part.type) {
    case "text":
      return { parts: text === undefined ? [] : [{ type: "text", text, origin: "agent" }] }
    case "reasoning":
      return { parts: text === undefined ? [] : [{ type: "thinking", text, origin: "agent" }] }
    case "tool":
      return toolParts(part, id)
    default:
      count(`session_message content ${String(part.type)}`)
      return { parts: [] }
  }
}

/** A command that the person ran from the prompt. */
function shellMessage(base: { key: string; at?: number }, data: RawRecord): Message | undefined {
  const command = string(data.command)
  if (command === undefined) return undefined
  const output = string(data.output) ?? string(record(data.output)?.output) ?? string(record(data.output)?.text) ?? ""
  const exit = number(data.exit)
  const call_id = string(data.callID) ?? string(data.shellID) ?? base.key
  const outcome = { call_id, output, ...(exit !== undefined && { exit_status: exit }) }
  const isError = exit !== undefined && exit !== 0
  return {
    ...base,
    role: "user",
    parts: [
      { type: "text", text: `!${command}`, origin: "person" },
      { type: "tool_result", text: output, origin: "local_tool", tool: "shell", call_id, is_error: isError },
    ],
    effects: [commandEffect(command, outcome), ...commitEffects(command, output, call_id)],
  }
}

function whole(message: Omit<Message, "parts" | "effects">, told: PartsAndEffects[]): Message | undefined {
  const parts = told.flatMap((one) => one.parts)
  const effects = told.flatMap((one) => one.effects ?? [])
  return parts.length === 0 ? undefined : { ...message, parts, ...(effects.length > 0 && { effects }) }
}
