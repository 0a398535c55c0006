import { createCounts } from "../../core/by-name.ts"
import type { Conversation, Message } from "../../core/conversation.ts"
import { number, type RawRecord, record, records, string, time } from "../../core/record.ts"
import type { Usage } from "../../core/usage.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { uniqueKeys } from "../kit/message-keys.ts"
import { spanOf } from "../kit/times.ts"
import { isLogEntry, replayedSession } from "./replay.ts"
import { responseOf } from "./response.ts"

export function parseVscode(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const log: RawRecord[] = []
  const session: RawRecord = {}
  const requests: RawRecord[] = []
  let folder: string | undefined
  for (const one of raw) {
    if (one.type === "dex-workspace") folder = string(one.folder)
    else if (one.type === "dex-session") Object.assign(session, one)
    else if (isLogEntry(one)) log.push(one)
    else if (string(one.requestId) !== undefined) requests.push(one)
    else
      unknown.add(string(one.type) ?? (one.kind === undefined ? "(no kind)" : `kind ${String(one.kind).slice(0, 20)}`))
  }
  const replayed = replayedSession(log, () => unknown.add("(a change to what is not there)"))
  const whole = replayed ?? session
  const id = string(whole.sessionId) ?? unit.key.replace(/\.jsonl?$/, "")
  const keys = uniqueKeys()
  const messages = [...requests, ...records(replayed?.requests)]
    .flatMap((request, index) => messagesOf(request, `${id}:${index}`, (type) => unknown.add(type)))
    .map((message) => ({ ...message, key: keys(message.key) }))
  const conversations = messages.length === 0 ? [] : [conversationOf(whole, id, folder, messages, unit)]
  return { conversations, unknown: unknown.all() }
}

function messagesOf(request: RawRecord, place: string, count: (type: string) => void): Message[] {
  const key = string(request.requestId) ?? place
  const at = time(request.timestamp)
  const result = record(request.result)
  const abandoned = request.shouldBeRemovedOnSend !== undefined && request.shouldBeRemovedOnSend !== false
  const prompt = string(record(request.message)?.text) ?? string(request.message)
  const { parts, effects } = responseOf(request, count)
  const metadata = record(result?.metadata)
  const model = string(metadata?.resolvedModel) ?? string(request.modelId)?.replace(/^copilot\//, "")
  const usage = vscodeUsage(metadata)
  const begun = at === undefined ? undefined : at + (number(record(result?.timings)?.firstProgress) ?? 0)
  const messages: Message[] = []
  if (prompt !== undefined)
    messages.push({
      key,
      role: "user",
      at,
      parts: [{ type: "text", text: prompt, origin: "person" }],
    })
  const problem = string(record(result?.errorDetails)?.message)
  if (problem !== undefined) parts.push({ type: "text", text: problem, origin: "local_tool" })
  if (parts.length > 0)
    messages.push({
      key: `${key}:response`,
      role: "assistant",
      at: begun,
      model,
      parts,
      effects: effects.length > 0 ? effects : undefined,
      usage,
    })
  return abandoned ? messages.map((message) => ({ ...message, abandoned })) : messages
}

/** Of the last of a request's rounds: what came from a cache is not told. */
function vscodeUsage(metadata: RawRecord | undefined): Usage | undefined {
  const [input, output] = [number(metadata?.promptTokens) ?? 0, number(metadata?.outputTokens) ?? 0]
  return input + output === 0 ? undefined : { input, output, cache_read: 0, cache_write: 0 }
}

function conversationOf(
  session: RawRecord,
  id: string,
  folder: string | undefined,
  messages: Message[],
  unit: UnitName,
): Conversation {
  const title = string(session.customTitle) ?? string(session.computedTitle)
  return {
    id,
    kind: "person",
    title: title === undefined ? undefined : { text: title, from: "agent" },
    cwds: folder === undefined ? [] : [folder],
    ...spanOf([time(session.creationDate), time(session.lastMessageDate), ...messages.map(({ at }) => at)]),
    messages,
    // A session that was begun as JSON goes on in a log beside it.
    authority: unit.key.endsWith(".json") ? 9 : 10,
  }
}
