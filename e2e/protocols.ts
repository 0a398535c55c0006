import { randomUUID } from "node:crypto"
import type { ServerResponse } from "node:http"
import type { Asked, OfferedTool, Said, Turn } from "./model.ts"

// The protocols between the agents and their models: reading a request, and streaming an answer.

type Body = Record<string, unknown>
export type Protocol = {
  path: RegExp
  read(body: Body): Asked
  write(response: ServerResponse, said: Said, body: Body): void
}

/** How full the context is, if the script does not say. */
const USED_TOKENS = 100

/** Claude Code. */
const anthropicMessages: Protocol = {
  path: /\/v1\/messages$/,
  read: (body) => ({
    turns: objects(body.messages).flatMap(({ role, content }): Turn[] => {
      if (role !== "user") return [{ role: role === "assistant" ? "assistant" : "other", text: textOf(content) }]
      if (typeof content === "string") return [{ role: "user", text: content }]
      return objects(content).map((block) =>
        block.type === "tool_result"
          ? { role: "tool", text: textOf(block.content) }
          : { role: "user", text: textOf(block) },
      )
    }),
    offered: objects(body.tools).map(({ name }) => ({ name: String(name) })),
  }),
  write: (response, { text, call, tokens = USED_TOKENS }, { model }) => {
    const usage = { input_tokens: tokens, output_tokens: 20 }
    const send = eventStream(response)
    const event = (type: string, fields: object) => send({ type, ...fields }, type)
    event("message_start", {
      message: { id: newId("msg_"), type: "message", role: "assistant", model, content: [], stop_reason: null, usage },
    })
    const block = (index: number, content_block: object, delta: object) => {
      event("content_block_start", { index, content_block })
      event("content_block_delta", { index, delta })
      event("content_block_stop", { index })
    }
    if (text !== undefined) block(0, { type: "text", text: "" }, { type: "text_delta", text })
    if (call)
      block(
        text === undefined ? 0 : 1,
        { type: "tool_use", id: newId("toolu_"), name: call.tool.name, input: {} },
        { type: "input_json_delta", partial_json: JSON.stringify(call.input) },
      )
    event("message_delta", { delta: { stop_reason: call ? "tool_use" : "end_turn", stop_sequence: null }, usage })
    event("message_stop", {})
    response.end()
  },
}

/** Codex. */
const openaiResponses: Protocol = {
  path: /\/responses$/,
  read: (body) => {
    const turns: Turn[] = []
    for (const item of objects(body.input)) {
      const type = String(item.type)
      if (type.endsWith("_output")) turns.push({ role: "tool", text: textOf(item.output) })
      else if (item.role === "assistant" || item.role === undefined) {
        // Consecutive items, a text and a call, are one answer.
        if (turns.at(-1)?.role !== "assistant") turns.push({ role: "assistant", text: "" })
        turns.at(-1)!.text += textOf(item.content)
      } else turns.push({ role: item.role === "user" ? "user" : "other", text: textOf(item.content) })
    }
    return {
      turns,
      // The result of a tool search contains the tools that it found.
      offered: [body, ...objects(body.input)].flatMap(({ tools }) => objects(tools).flatMap(responsesTools)),
    }
  },
  write: (response, { text, call, tokens = USED_TOKENS }, { model }) => {
    const output: object[] = []
    if (text !== undefined)
      output.push({
        type: "message",
        id: newId("msg_"),
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text, annotations: [] }],
      })
    if (call) output.push({ id: newId("fc_"), call_id: newId("call_"), status: "completed", ...responsesCall(call) })
    const send = eventStream(response)
    let sequence_number = 0
    const event = (type: string, fields: object) => send({ type, sequence_number: sequence_number++, ...fields }, type)
    const whole = { id: newId("resp_"), object: "response", model, status: "completed", output }
    event("response.created", { response: { ...whole, status: "in_progress", output: [] } })
    output.forEach((item, output_index) => {
      event("response.output_item.added", { output_index, item })
      event("response.output_item.done", { output_index, item })
    })
    const usage = { input_tokens: tokens, output_tokens: 20, total_tokens: tokens + 20 }
    event("response.completed", { response: { ...whole, usage } })
    response.end()
  },
}

function responsesTools({ type, name, tools }: Body): OfferedTool[] {
  if (type === "namespace") return objects(tools).map((tool) => ({ name: String(tool.name), namespace: String(name) }))
  if (type === "custom" || type === "tool_search") return [{ name: String(name ?? type), type }]
  return [{ name: String(name ?? type) }]
}

function responsesCall({ tool: { name, type, namespace }, input }: NonNullable<Said["call"]>): object {
  if (type === "tool_search") return { type: "tool_search_call", execution: "client", arguments: input }
  if (type === "custom") return { type: "custom_tool_call", name, input }
  const within = namespace === undefined ? {} : { namespace }
  return { type: "function_call", name, ...within, arguments: JSON.stringify(input) }
}

/** OpenCode. */
const openaiChat: Protocol = {
  path: /\/chat\/completions$/,
  read: (body) => ({
    turns: objects(body.messages).map(({ role, content }) => ({
      role: role === "user" || role === "assistant" || role === "tool" ? role : "other",
      text: textOf(content),
    })),
    offered: objects(body.tools).map((tool) => ({ name: String(asObject(tool.function).name) })),
  }),
  write: (response, { text, call, tokens = USED_TOKENS }, { model }) => {
    const send = eventStream(response)
    const head = { id: newId("chatcmpl-"), object: "chat.completion.chunk", created: 0, model }
    const chunk = (delta: object, finish_reason: string | null = null) =>
      send({ ...head, choices: [{ index: 0, delta, finish_reason }] })
    chunk({ role: "assistant", content: text ?? "" })
    if (call) {
      const asked = { name: call.tool.name, arguments: JSON.stringify(call.input) }
      chunk({ tool_calls: [{ index: 0, id: newId("call_"), type: "function", function: asked }] })
    }
    chunk({}, call ? "tool_calls" : "stop")
    send({ ...head, choices: [], usage: { prompt_tokens: tokens, completion_tokens: 20, total_tokens: tokens + 20 } })
    send("[DONE]")
    response.end()
  },
}

/** Gemini CLI. It streams all answers except those to its side questions. */
const gemini: Protocol = {
  path: /:(stream)?[gG]enerateContent$/,
  read: (body) => ({
    turns: objects(body.contents).flatMap(({ role, parts }): Turn[] => {
      if (role === "model") return [{ role: "assistant", text: textOf(parts) }]
      return objects(parts).map((part) =>
        part.functionResponse
          ? { role: "tool", text: textOf(asObject(asObject(part.functionResponse).response).output) }
          : { role: "user", text: textOf(part) },
      )
    }),
    offered: objects(body.tools).flatMap((tool) =>
      objects(tool.functionDeclarations).map(({ name }) => ({ name: String(name) })),
    ),
  }),
  write: (response, { text, call, tokens = USED_TOKENS }) => {
    const parts: object[] = []
    if (text !== undefined) parts.push({ text })
    if (call) parts.push({ functionCall: { name: call.tool.name, args: call.input } })
    const answer = {
      candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }],
      usageMetadata: { promptTokenCount: tokens, candidatesTokenCount: 20, totalTokenCount: tokens + 20 },
    }
    if (response.req.url?.includes("stream")) {
      eventStream(response)(answer)
      response.end()
    } else response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer))
  },
}

export const PROTOCOLS: readonly Protocol[] = [anthropicMessages, openaiResponses, openaiChat, gemini]

function eventStream(response: ServerResponse): (data: object | string, event?: string) => void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" })
  return (data, event) =>
    response.write(
      `${event === undefined ? "" : `event: ${event}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`,
    )
}

/** The text of a content block, of a list of them, or of a plain string. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content
  if (Array.isArray(content)) return content.map(textOf).join("\n")
  return textOf(asObject(content).text ?? "")
}

function objects(value: unknown): Body[] {
  return Array.isArray(value) ? value.map(asObject) : []
}

function asObject(value: unknown): Body {
  return typeof value === "object" && value !== null ? (value as Body) : {}
}

function newId(prefix: string): string {
  return prefix + randomUUID().replaceAll("-", "")
}
