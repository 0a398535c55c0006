import { createCounts } from "../../core/by-name.ts"
import type { Conversation, Message } from "../../core/conversation.ts"
import { number, type RawRecord, record, string, time } from "../../core/record.ts"
import type { Usage } from "../../core/usage.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { uniqueKeys } from "../kit/message-keys.ts"
import { spanOf } from "../kit/times.ts"
import { contentOfRecord, type DroidCall, type DroidContent } from "./content.ts"

export function parseDroid(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const all = [...raw]
  const start = all.find(({ type }) => type === "session_start") ?? all.find(({ type }) => type === "system") ?? {}
  const settings = all.findLast(({ type }) => type === "dex-settings") ?? {}
  const id = idOf(all, start, unit)
  const parent = string(start.callingSessionId)
  const model = string(settings.model) ?? string(start.model)
  const unknown = createCounts()
  const keys = uniqueKeys()
  const calls = new Map<string, DroidCall>()
  const left = leftIn(all)
  const messages: Message[] = []
  for (const one of all) {
    const content = contentOfRecord(one, {
      asked: parent === undefined ? "person" : "agent",
      calls,
      last: messages.at(-1),
    })
    if (content === "unknown") unknown.add(string(one.type) ?? "(no type)")
    else if (content && content.parts.length > 0)
      messages.push(messageOf(one, content, keys(keyOf(one, id)), model, left))
    if (one.type === "completion") addUsage(messages, record(one.usage))
  }
  if (!messages.some(({ usage }) => usage)) addUsage(messages, record(settings.tokenUsage))
  const conversations = messages.length === 0 ? [] : [conversationOf(id, start, parent, messages)]
  return { conversations, unknown: unknown.all() }
}

/** The streams name it on every line, the store in its first. */
function idOf(all: RawRecord[], start: RawRecord, unit: UnitName): string {
  const streamed = all.map((one) => string(one.session_id) ?? string(one.sessionId)).find((id) => id !== undefined)
  return (
    (start.type === "session_start" ? string(start.id) : undefined) ??
    streamed ??
    unit.key.replace(/^.*\/|\.jsonl$/g, "")
  )
}

/** A call and its result have one id. */
function keyOf(one: RawRecord, session: string): string {
  const id = string(one.id) ?? string(one.toolCallId)
  if (id === undefined) return `${session}:${String(one.timestamp ?? "")}:${String(one.type)}`
  return one.type === "message" ? id : `${session}:${id}:${String(one.type)}`
}

function messageOf(
  one: RawRecord,
  content: DroidContent,
  key: string,
  model: string | undefined,
  left: Set<string>,
): Message {
  const at = time(one.timestamp)
  return {
    key,
    at,
    role: content.role,
    model: content.role === "assistant" && model !== undefined ? model : undefined,
    parts: content.parts,
    effects: content.effects.length > 0 ? content.effects : undefined,
    abandoned: left.has(string(one.id) ?? "") ? true : undefined,
  }
}

/** Messages name the one before them; the last one is where the session stands. What branched off on its way was left. */
function leftIn(all: RawRecord[]): Set<string> {
  const said = all.filter(({ type, id }) => type === "message" && string(id))
  const parents = new Map(said.map(({ id, parentId }) => [string(id)!, string(parentId)]))
  const way = new Set<string>()
  for (let id = string(said.at(-1)?.id); id !== undefined && !way.has(id); id = parents.get(id)) way.add(id)
  const left = new Set<string>()
  for (const [id, parent] of parents)
    if (!way.has(id) && parent !== undefined && (way.has(parent) || left.has(parent))) left.add(id)
  return left
}

/** A stream counts by answer; a stored session only in all, which stands at its last one. */
function addUsage(messages: Message[], counted: RawRecord | undefined): void {
  const last = messages.findLast(({ role }) => role === "assistant")
  const usage = droidUsage(counted)
  if (last && usage) last.usage = usage
}

/** In the words of the settings, or of a stream. */
function droidUsage(counted: RawRecord | undefined): Usage | undefined {
  const of = (...names: string[]) => names.map((name) => number(counted?.[name])).find((n) => n !== undefined) ?? 0
  const reasoning = of("thinkingTokens")
  const usage = {
    input: of("inputTokens", "input_tokens"),
    output: of("outputTokens", "output_tokens"),
    cache_read: of("cacheReadTokens", "cache_read_input_tokens"),
    cache_write: of("cacheCreationTokens", "cache_creation_input_tokens"),
    reasoning: reasoning > 0 ? reasoning : undefined,
  }
  return usage.input + usage.output + usage.cache_read + usage.cache_write === 0 ? undefined : usage
}

function conversationOf(id: string, start: RawRecord, parent: string | undefined, messages: Message[]): Conversation {
  const title = string(start.sessionTitle) ?? string(start.title)
  const [cwd, version, call_id] = [string(start.cwd), string(start.version), string(start.callingToolUseId)]
  return {
    id,
    kind: parent === undefined ? "person" : "subagent",
    title: title !== undefined && !/^New Session$/i.test(title) ? { text: title, from: "agent" } : undefined,
    cwds: cwd === undefined ? [] : [cwd],
    agent_version: version,
    parent: parent === undefined ? undefined : { id: parent, call_id },
    ...spanOf([time(start.timestamp), ...messages.map(({ at }) => at)]),
    messages,
    authority: 1,
  }
}
