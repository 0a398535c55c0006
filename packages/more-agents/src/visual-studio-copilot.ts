import { actionByName, resultOfCall, type ToolNames, toolCallPart } from "../../../src/agents/kit/calls.ts"
import type { Connector, Parsed } from "../../../src/agents/kit/connector.ts"
import { parsePatch } from "../../../src/agents/kit/effects.ts"
import { readLines, unitsBelow, withProblems } from "../../../src/agents/kit/files.ts"
import { conversationFrom, cutLongTexts, usageFrom } from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Message, Part } from "../../../src/core/conversation.ts"
import { parseArray, parseObject, type RawRecord, record, records, string, time } from "../../../src/core/record.ts"
import { visualStudioCopilotRoots } from "./records.ts"

const TRACES = /_VSGitHubCopilot_traces\.jsonl$/

/** Reads the traces of Copilot in Visual Studio: OpenTelemetry spans of several conversations in one file, and of one in several. */
export const visualStudioCopilotConnector: Connector = {
  source: "visual_studio_copilot",
  version: 1,
  roots: visualStudioCopilotRoots,
  discover: (root) => withProblems((report) => unitsBelow(root, TRACES, 0, report)),
  watched: (root) => [{ folder: root, depth: 0, files: TRACES }],
  read: readLines(stripTrace),
  parse: parseTraces,
}

/** Keeps of each span what the conversation needs. A request repeats the whole conversation: only its last prompt is kept. */
function stripTrace(trace: RawRecord): RawRecord {
  if (!Array.isArray(trace.resourceSpans)) return cutLongTexts(trace)
  const spans = records(trace.resourceSpans)
    .flatMap(({ scopeSpans }) => records(scopeSpans))
    .flatMap(({ spans }) => records(spans))
  return cutLongTexts({ type: "spans", spans: spans.map(strippedSpan) })
}

function strippedSpan({ spanId, startTimeUnixNano, status, attributes }: RawRecord): RawRecord {
  const values = new Map(records(attributes).map(({ key, value }) => [key, Object.values(record(value) ?? {})[0]]))
  const messagesIn = (name: string) => records(parseArray(string(values.get(name)) ?? "") ?? [])
  const kept = KEPT.flatMap((name) => (values.has(name) ? [[name, values.get(name)] as const] : []))
  const prompt = messagesIn("gen_ai.input.messages").findLast(({ role }) => role === "user")
  const answer = messagesIn("gen_ai.output.messages").filter(({ role }) => role === "assistant")
  return { id: spanId, at: startTimeUnixNano, status, prompt, answer, ...Object.fromEntries(kept) }
}

const KEPT = [
  ...["gen_ai.conversation.id", "gen_ai.operation.name", "gen_ai.request.model", "gen_ai.response.model"],
  ...["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.tool.name", "gen_ai.tool.call.id"],
  ...["gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "copilot_chat.root_request_id"],
]

const TOOLS: ToolNames = {
  command: ["run_command_in_terminal", "run_in_terminal"],
  read: ["get_file", "read_file"],
  write: ["create_file"],
  edit: ["replace_string_in_file"],
}

function parseTraces(raw: Iterable<RawRecord>): Parsed {
  const unknown = createCounts()
  const conversations = new Map<string, Map<string, Message>>()
  for (const entry of raw) {
    if (entry.type !== "spans") unknown.add(string(entry.type) ?? "(no type)")
    else
      for (const span of records(entry.spans)) {
        const id = string(span["gen_ai.conversation.id"])
        const operation = string(span["gen_ai.operation.name"])
        if (operation !== undefined && !OPERATIONS.has(operation)) unknown.add(`operation ${operation}`)
        if (id === undefined || !string(span.id)) continue
        const messages = conversations.get(id) ?? new Map<string, Message>()
        conversations.set(id, messages)
        for (const message of operation === "execute_tool"
          ? messagesOfCall(span)
          : operation === "chat"
            ? messagesOfRequest(span)
            : [])
          if (!messages.has(message.key)) messages.set(message.key, message)
      }
  }
  return {
    conversations: [...conversations].flatMap(([id, found]) => {
      const messages = [...found.values()].sort((a, b) => (a.at ?? 0) - (b.at ?? 0))
      return messages.length === 0 ? [] : [conversationFrom({ id, messages })]
    }),
    unknown: unknown.all(),
  }
}

const OPERATIONS = new Set(["invoke_agent", "execute_tool", "chat"])

function atOf(span: RawRecord): number | undefined {
  const nanoseconds = Number(span.at)
  return Number.isFinite(nanoseconds) ? time(Math.floor(nanoseconds / 1e6)) : undefined
}

/** Parses a request to the model. All requests of one turn have the same prompt, which is kept once. */
function messagesOfRequest(span: RawRecord): Message[] {
  const at = atOf(span)
  const request = string(span["copilot_chat.root_request_id"]) ?? String(span.id)
  const messages: Message[] = []
  const prompt = textsIn(record(span.prompt), "person")
  if (prompt.length > 0) messages.push({ key: `${request}:prompt`, role: "user", at, parts: prompt })
  const answer = records(span.answer).flatMap((message) => textsIn(message, "agent"))
  const usage = usageFrom({
    input: Number(span["gen_ai.usage.input_tokens"] ?? 0),
    output: Number(span["gen_ai.usage.output_tokens"] ?? 0),
  })
  const model = string(span["gen_ai.response.model"]) ?? string(span["gen_ai.request.model"])
  if (answer.length > 0) messages.push({ key: String(span.id), role: "assistant", at, model, parts: answer, usage })
  return messages
}

function textsIn(message: RawRecord | undefined, origin: "person" | "agent"): Part[] {
  return records(message?.parts).flatMap(({ type, content }) =>
    type === "text" && string(content) ? [{ type, text: string(content)!, origin }] : [],
  )
}

function messagesOfCall(span: RawRecord): Message[] {
  const at = atOf(span)
  const tool = string(span["gen_ai.tool.name"])
  const call_id = string(span["gen_ai.tool.call.id"])
  const text = string(span["gen_ai.tool.call.arguments"]) ?? "{}"
  const output = string(span["gen_ai.tool.call.result"]) ?? ""
  const input = parseObject(text) ?? {}
  const action =
    tool === "apply_patch" ? { hunks: parsePatch(string(input.patch) ?? "").hunks } : actionByName(TOOLS, tool, input)
  const failed = record(span.status)?.code === 2
  const { part, effects } = resultOfCall({ tool, call_id, output, failed, action })
  return [
    { key: String(span.id), role: "assistant", at, parts: [toolCallPart(tool, text, call_id)] },
    { key: `${span.id}:result`, role: "tool", at, parts: [part], effects: effects.length > 0 ? effects : undefined },
  ]
}
