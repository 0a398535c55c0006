import type { Message, Part } from "../../core/conversation.ts"
import { defined } from "../../core/defined.ts"
import { array, number, type RawRecord, record, records, string, time } from "../../core/record.ts"
import { toolCallPart } from "../kit/finished-call.ts"
import type { KiroReader } from "./parse.ts"
import { type KiroCall, kiroResult } from "./tools.ts"

/** The databases' turns: what came in (a prompt, or results of tools), and what the model answered. */
export const turnMessages: KiroReader = (turns, unknown, id) => {
  const calls = new Map<string, KiroCall>()
  return turns.flatMap((turn, place) => {
    if (turn.type !== "turn") {
      unknown(string(turn.type) ?? "(no type)")
      return []
    }
    const request = record(turn.request_metadata)
    const assistant = record(turn.assistant) ?? {}
    const answered = answerOf(assistant, request, unknown)
    const name = answered?.key ?? `${id}:${place}`
    const asked = askedIn(record(turn.user), calls, name, unknown)
    for (const use of records(record(assistant.ToolUse)?.tool_uses)) calls.set(string(use.id) ?? "", callOf(use))
    return [...asked, ...(answered ? [{ ...answered, key: name }] : [])]
  })
}

function callOf(use: RawRecord): KiroCall {
  return { tool: string(use.name), args: record(use.args) ?? {} }
}

function askedIn(
  user: RawRecord | undefined,
  calls: Map<string, KiroCall>,
  answer: string,
  unknown: (type: string) => void,
): Message[] {
  if (!user) return []
  const at = time(user.timestamp)
  const content = record(user.content) ?? {}
  for (const kind of Object.keys(content)) if (!KNOWN_CONTENT.includes(kind)) unknown(`user/${kind}`)
  const said = KNOWN_CONTENT.map((kind) => record(content[kind])).filter((one) => one !== undefined)
  const results = said.flatMap((one) => records(one.tool_use_results))
  const messages = results.map((result) => resultOf(result, calls, content.CancelledToolUses !== undefined))
  const prompts = said.flatMap((one) => string(one.prompt) ?? [])
  const parts: Part[] = prompts.map((text) => ({ type: "text", text, origin: "person" }))
  for (let n = number(user.images) ?? 0; n > 0 && parts.length < 100; n--)
    parts.push({ type: "image", text: "", origin: "person" })
  if (parts.length > 0) messages.push({ key: `${answer}:user`, role: "user", parts })
  return messages.map((message) => ({ ...message, ...defined({ at }) }))
}

const KNOWN_CONTENT = ["Prompt", "ToolUseResults", "CancelledToolUses"]

function resultOf(result: RawRecord, calls: Map<string, KiroCall>, cancelled: boolean): Message {
  const id = string(result.tool_use_id)
  const outputs = records(result.content).map(({ Text, Json }) => Text ?? Json)
  return kiroResult(id, calls.get(id ?? ""), outputs, cancelled || result.status === "Error")
}

function answerOf(
  assistant: RawRecord,
  request: RawRecord | undefined,
  unknown: (type: string) => void,
): (Omit<Message, "key"> & { key?: string }) | undefined {
  for (const kind of Object.keys(assistant))
    if (!["Response", "ToolUse", "timestamp"].includes(kind)) unknown(`assistant/${kind}`)
  const said = record(assistant.Response) ?? record(assistant.ToolUse)
  if (!said) return undefined
  const text = string(said.content)
  const parts: Part[] = [
    ...(text === undefined ? [] : [{ type: "text", text, origin: "agent" } as const]),
    ...array(said.tool_uses).flatMap((use) => (record(use) ? [callPart(record(use)!)] : [])),
  ]
  const at = time(assistant.timestamp) ?? time(request?.stream_end_timestamp_ms)
  const [model, name] = [string(request?.model_id), string(said.message_id) ?? string(request?.message_id)]
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
