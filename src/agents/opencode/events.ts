import type { Message, Origin, Part } from "../../core/conversation.ts"
import type { RawRecord } from "../../core/record.ts"
import { number, record, records, string, time } from "../../core/record.ts"
import { commandEffect, commitEffects } from "../kit/effects.ts"
import {
  errorMessageOf,
  errorNotice,
  fileParts,
  type PartsAndEffects,
  promptWithoutQuotes,
  toolParts,
  usageIn,
} from "./parts.ts"

/** What a row of `session_message` says, which replaces `message` and `part` since 2.0, and what went wrong in it. */
export function eventMessages(row: RawRecord, asked: Origin, count: (type: string) => void): Message[] {
  const message = eventMessage(row, asked, count)
  const error = row.type === "assistant" ? record(row.data)?.error : undefined
  const text = error === undefined || error === null ? "" : errorMessageOf(error)
  const at = time(row.time_created)
  return [...(message ? [message] : []), ...(text ? [errorNotice(String(row.id), text, at)] : [])]
}

function eventMessage(row: RawRecord, asked: Origin, count: (type: string) => void): Message | undefined {
  const key = string(row.id)
  const data = record(row.data)
  if (key === undefined || !data) return undefined
  const at = time(record(data.time)?.created) ?? time(row.time_created)
  const base = { key, at }
  const text = string(data.text)
  switch (row.type) {
    case "user": {
      const files = records(data.files).map((file) => fileParts(file, asked))
      const skills = records(data.skills).flatMap((skill): Part[] => {
        const text = string(skill.text)
        return text === undefined ? [] : [{ type: "text", text, origin: "injected" }]
      })
      return whole({ ...base, role: "user" }, [{ parts: promptParts(text ?? "", asked) }, { parts: skills }, ...files])
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
      return whole({ ...base, role: "assistant", model: model || undefined, usage }, told)
    }
    case "compaction": {
      const summary = string(data.summary)
      const usage = usageIn([data])
      if (!summary) return undefined
      return {
        ...base,
        role: "system",
        parts: [{ type: "summary", text: summary, origin: "agent" }],
        usage,
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

/** What the upgrade to 2.0 wrote into the prompt in place of a file. */
const UNAVAILABLE = /(?:^|\n\n)(\[Attachment unavailable after migration: [^\n]*\])/g

function promptParts(text: string, asked: Origin): Part[] {
  const missing = [...text.matchAll(UNAVAILABLE)].map(([, note]) => note!)
  const typed = promptWithoutQuotes(missing.length > 0 ? text.replaceAll(UNAVAILABLE, "") : text)
  const parts: Part[] = typed.trim() === "" ? [] : [{ type: "text", text: typed, origin: asked }]
  return [...parts, ...missing.map((note): Part => ({ type: "text", text: note, origin: "injected" }))]
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
  const outcome = { call_id, output, exit_status: exit }
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
  return parts.length === 0 ? undefined : { ...message, parts, effects: effects.length > 0 ? effects : undefined }
}
