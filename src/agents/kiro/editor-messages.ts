import type { Message, Origin, Part } from "../../core/conversation.ts"
import { type RawRecord, record, records, string, time } from "../../core/record.ts"
import { finishedCall, toolCallPart } from "../kit/finished-call.ts"
import { keptHunks } from "../kit/hunks-between.ts"
import type { KiroReader } from "./parse.ts"

/** What the editor puts into a person's turn before anything is asked. */
const INJECTED = [
  "# System Prompt",
  "# Identity",
  "<identity>",
  "## Included Rules",
  "You are operating in a workspace",
]

/** The editor's sessions: who spoke, and after an entry of the agent what its execution said and did. */
export const editorMessages: KiroReader = (rows, unknown, id) => {
  const logged = new Set(rows.flatMap((row, place) => (rows[place + 1]?.type === "action" ? [row] : [])))
  return rows.flatMap((row, place): Message[] => {
    if (row.type === "action") return actionMessages(row, `${id}:${place}`, unknown)
    if (row.type !== "history") {
      unknown(string(row.type) ?? "(no type)")
      return []
    }
    const message = record(row.message) ?? {}
    const role = message.role === "user" ? "user" : message.role === "assistant" ? "assistant" : undefined
    if (!role) unknown(`history/${string(message.role) ?? "(no role)"}`)
    // Where there is a log, the entry itself only says that something is done.
    if (!role || (role === "assistant" && logged.has(row))) return []
    const parts = textParts(message.content, role)
    return parts.length > 0 ? [{ key: `${id}:${string(message.id) ?? place}`, role, parts }] : []
  })
}

function textParts(content: unknown, role: "user" | "assistant"): Part[] {
  const texts = typeof content === "string" ? [content] : records(content).map(({ text }) => text)
  return texts.flatMap((value): Part[] => {
    const text = string(value)
    if (text === undefined) return []
    const injected = role === "user" && INJECTED.some((beginning) => text.startsWith(beginning))
    const origin: Origin = role === "assistant" ? "agent" : injected ? "injected" : "person"
    return [{ type: "text", text, origin }]
  })
}

function actionMessages(action: RawRecord, place: string, unknown: (type: string) => void): Message[] {
  const [input, output] = [record(action.input) ?? {}, record(action.output) ?? {}]
  const at = time(action.emittedAt)
  const dated = at === undefined ? {} : { at }
  const call_id = string(action.actionId)
  const key = `${place}:${call_id ?? "action"}`
  const tool = string(action.actionType)
  if (tool === "say") {
    const text = string(output.message)
    return text === undefined
      ? []
      : [{ key, ...dated, role: "assistant", parts: [{ type: "text", text, origin: "agent" }] }]
  }
  if (tool === undefined || !ACTIONS.includes(tool)) {
    unknown(`action/${tool ?? "(no type)"}`)
    return []
  }
  const file = string(input.file)
  const { part, effects } = finishedCall({
    tool,
    call_id,
    output: string(output.message) ?? "",
    failed: false,
    deed: {
      hunks: keptHunks(action.hunks),
      reads: tool === "readCode" && file !== undefined ? [file] : undefined,
    },
  })
  return [
    { key, ...dated, role: "assistant", parts: [toolCallPart(tool, input, call_id)] },
    { key: `${key}:result`, ...dated, role: "tool", parts: [part], effects: effects.length > 0 ? effects : undefined },
  ]
}

const ACTIONS = ["replace", "create", "readCode"]
