import { actionByName, type CallAction, resultOfCall, toolCallPart } from "../../../../src/agents/kit/calls.ts"
import type { Parsed, UnitName } from "../../../../src/agents/kit/connector.ts"
import { storedHunks } from "../../../../src/agents/kit/hunks-between.ts"
import { addSessionUsage, imagePart, parsedFrom, uniqueKeys } from "../../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../../src/core/by-name.ts"
import type { Message, Origin, Part } from "../../../../src/core/conversation.ts"
import { number, parseObject, type RawRecord, record, records, string, time } from "../../../../src/core/record.ts"
import { totalUsage, type Usage } from "../../../../src/core/usage.ts"

const TOOLS = {
  command: ["terminal", "execute_bash"],
  editor: ["file_editor", "str_replace_editor", "planning_file_editor"],
}
/** Types of events without content for a reader. */
const IGNORED_KINDS = [
  ...["ConversationStateUpdateEvent", "CondensationRequest", "TokenEvent", "PauseEvent", "LLMCompletionLogEvent"],
  ...["InterruptEvent", "StreamingDeltaEvent"],
]

type Content = Pick<Message, "role" | "parts" | "effects">
type Call = { tool: string | undefined; args: RawRecord }

export function parseOpenhands(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const events: RawRecord[] = []
  let session: RawRecord = {}
  for (const event of raw) {
    if (event.type === "dex-session") session = event
    else events.push(event)
  }
  const id = string(session.id) ?? unit.key
  const actions = events.filter(({ kind }) => kind === "ActionEvent")
  const calls = new Map(actions.map((event) => [string(event.tool_call_id) ?? "", callOf(event)]))
  const unknown = createCounts()
  const keyOf = uniqueKeys()
  const messages: Message[] = []
  for (const event of events) {
    const content = contentOf(event, calls)
    if (!content) unknown.add(string(event.kind) ?? string(event.type) ?? "(no kind)")
    else if (content.parts.length > 0) {
      const at = time(event.timestamp)
      const key = keyOf(`${id}:${string(event.id) ?? messages.length}`)
      messages.push({ key, at, ...content })
    }
  }
  addSessionUsage(messages, string(session.model), totalUsageOf(session))
  const folders = events.map(({ observation }) => record(record(observation)?.metadata)?.working_dir)
  const cwds = [session.working_dir, ...folders].filter((folder) => string(folder))
  return parsedFrom({ id, cwds: [...new Set(cwds)].slice(0, 20), messages }, unknown)
}

function callOf(event: RawRecord): Call {
  const call = record(event.tool_call)
  const args = record(event.action) ?? parseObject(string(call?.arguments) ?? "") ?? {}
  return { tool: string(event.tool_name) ?? string(call?.name), args }
}

/** Returns undefined for an unknown kind. */
function contentOf(event: RawRecord, calls: Map<string, Call>): Content | undefined {
  switch (event.kind) {
    case "MessageEvent":
      return messageOf(event)
    case "ActionEvent":
      return { role: "assistant", parts: actionParts(event) }
    case "ObservationEvent":
    case "UserRejectObservation":
    case "AgentErrorEvent":
      return resultOf(event, calls)
    case "SystemPromptEvent":
      return { role: "system", parts: textParts([record(event.system_prompt)], "injected") }
    case "Condensation":
    case "CondensationSummaryEvent": {
      const text = string(event.summary)
      return { role: "system", parts: text === undefined ? [] : [{ type: "summary", text, origin: "agent" }] }
    }
    case "ConversationErrorEvent":
      return { role: "system", parts: textParts(string(event.detail) ?? string(event.code) ?? "", "local_tool") }
    default:
      return IGNORED_KINDS.includes(String(event.kind)) ? { role: "system", parts: [] } : undefined
  }
}

function messageOf(event: RawRecord): Content {
  const { content, role } = record(event.llm_message) ?? {}
  const addedParts = textParts(event.extended_content, "injected")
  if (role === "assistant")
    return { role: "assistant", parts: [...thinkingOf(event), ...textParts(content, "agent"), ...addedParts] }
  if (role === "system") return { role: "system", parts: textParts(content, "injected") }
  return {
    role: "user",
    parts: [...textParts(content, event.source === "user" ? "person" : "injected"), ...addedParts],
  }
}

function thinkingOf(event: RawRecord): Part[] {
  const message = record(event.llm_message)
  const texts = [event, message].flatMap((one) => records(one?.thinking_blocks).map(({ thinking }) => string(thinking)))
  const thoughts = texts.filter((text) => text !== undefined)
  const text =
    thoughts.length > 0
      ? thoughts.join("\n\n")
      : (string(event.reasoning_content) ?? string(message?.reasoning_content))
  return text === undefined ? [] : [{ type: "thinking", text, origin: "agent" }]
}

/** Returns the parts of an action. In the last call of a task, `finish`, the argument is the answer. */
function actionParts(event: RawRecord): Part[] {
  const { tool, args } = callOf(event)
  const { kind: _, ...input } = args
  const leadingParts = [...thinkingOf(event), ...textParts(event.thought, "agent")]
  const answer = tool === "finish" ? string(args.message) : undefined
  if (answer !== undefined) return [...leadingParts, { type: "text", text: answer, origin: "agent" }]
  return [...leadingParts, toolCallPart(tool, input, string(event.tool_call_id))]
}

function resultOf(event: RawRecord, calls: Map<string, Call>): Content {
  const call_id = string(event.tool_call_id)
  const call = calls.get(call_id ?? "")
  if (call?.tool === "finish") return { role: "tool", parts: [] }
  const observation = record(event.observation) ?? {}
  const content = textParts(observation.content, "local_tool")
  const refusal = string(event.rejection_reason) ?? string(event.error)
  const exit = number(observation.exit_code) ?? number(record(observation.metadata)?.exit_code)
  const { part, effects } = resultOfCall({
    tool: string(event.tool_name) ?? call?.tool,
    call_id,
    output: refusal ?? content.map(({ text }) => text).join("\n"),
    failed: refusal !== undefined || observation.is_error === true || string(observation.error) !== undefined,
    exit_status: exit !== undefined && exit >= 0 ? exit : undefined, // a negative code means that the command is still running
    action: actionOf(call, observation),
    isRemote: string(observation.kind)?.startsWith("MCP") === true,
  })
  const images = content.filter(({ type }) => type === "image")
  return { role: "tool", parts: [part, ...images], effects: effects.length > 0 ? effects : undefined }
}

function actionOf(call: Call | undefined, { hunks }: RawRecord): CallAction {
  const recordedHunks = storedHunks(hunks)
  if (recordedHunks.length > 0) return { hunks: recordedHunks }
  return call ? actionByName(TOOLS, call.tool, call.args) : {}
}

function textParts(content: unknown, origin: Origin): Part[] {
  const pieces = typeof content === "string" ? [{ text: content }] : records(content)
  return pieces.flatMap((piece: RawRecord): Part[] => {
    if (piece.type === "image") return [imagePart(piece.image, origin)]
    const text = string(piece.text)
    return text === undefined ? [] : [{ type: "text", text, origin }]
  })
}

function totalUsageOf(session: RawRecord): Usage | undefined {
  const usage = totalUsage(records(session.usage).map(openhandsUsage))
  return usage && usage.input + usage.output + usage.cache_read > 0 ? usage : undefined
}

/** Parses token counts. OpenHands' prompt tokens include those that were read from and written to the cache. */
function openhandsUsage({ accumulated_cost, accumulated_token_usage }: RawRecord): Usage {
  const counts = record(accumulated_token_usage)
  const countOf = (field: string) => number(counts?.[field]) ?? 0
  const [cache_read, cache_write, reasoning] = [
    countOf("cache_read_tokens"),
    countOf("cache_write_tokens"),
    countOf("reasoning_tokens"),
  ]
  const cost = number(accumulated_cost) ?? 0
  return {
    input: Math.max(0, countOf("prompt_tokens") - cache_read - cache_write),
    output: countOf("completion_tokens"),
    cache_read,
    cache_write,
    reasoning: reasoning > 0 ? reasoning : undefined,
    cost: cost > 0 ? cost : undefined,
  }
}
