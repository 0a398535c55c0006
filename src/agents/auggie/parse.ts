import { createCounts } from "../../core/by-name.ts"
import type { Message, Part } from "../../core/conversation.ts"
import { type RawRecord, record, records, string, time } from "../../core/record.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { uniqueKeys } from "../kit/message-keys.ts"
import { spanOf } from "../kit/times.ts"

/** An exchange is a prompt and its answer, each as a text or as nodes. Nodes that are no text are counted, not read. */
export function parseAuggie(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const all = [...raw]
  const session = all.find(({ type }) => type === "dex-session") ?? {}
  const id = string(session.sessionId) ?? unit.key.replace(/^.*\/|\.json$/g, "")
  const unknown = createCounts()
  const keys = uniqueKeys()
  const messages: Message[] = []
  for (const [index, one] of all.entries()) {
    const exchange = record(one.exchange)
    if (exchange) {
      const said = messagesOf(one, exchange, `${id}:${index}`, (type) => unknown.add(type))
      messages.push(...said.map((message) => ({ ...message, key: keys(message.key) })))
    } else if (one.type !== "dex-session") unknown.add(string(one.type) ?? "(no type)")
  }
  if (messages.length === 0) return { conversations: [], unknown: unknown.all() }
  const cwd = string(session.workspaceRoot)
  const title = string(session.customTitle)
  return {
    conversations: [
      {
        id,
        kind: "person",
        title: title === undefined ? undefined : { text: title, from: "person" },
        cwds: cwd === undefined ? [] : [cwd],
        ...spanOf([time(session.created), time(session.modified), ...messages.map(({ at }) => at)]),
        messages,
        authority: 1,
      },
    ],
    unknown: unknown.all(),
  }
}

function messagesOf(one: RawRecord, exchange: RawRecord, place: string, count: (type: string) => void): Message[] {
  const key = string(exchange.request_id) ?? place
  const at = time(one.finishedAt)
  const [promptNodes, answerNodes] = [exchange.request_nodes, exchange.response_nodes].map((nodes) =>
    nodeText(nodes, count),
  )
  const prompt = string(exchange.request_message) ?? promptNodes
  const answer = string(exchange.response_text) ?? answerNodes
  const asked: Part | undefined =
    prompt === undefined
      ? undefined
      : one.isHistorySummary === true
        ? { type: "summary", text: prompt, origin: "agent" }
        : { type: "text", text: prompt, origin: "person" }
  return [
    ...(asked
      ? [{ key, role: asked.type === "summary" ? ("system" as const) : ("user" as const), parts: [asked] }]
      : []),
    ...(answer === undefined
      ? []
      : [
          {
            key: `${key}:response`,
            role: "assistant" as const,
            at,
            parts: [{ type: "text" as const, text: answer, origin: "agent" as const }],
          },
        ]),
  ]
}

function nodeText(nodes: unknown, count: (type: string) => void): string | undefined {
  const texts = records(nodes).flatMap((node) => {
    const text = record(node.text_node)
    if (!text) count(`node ${String(node.type)}`)
    return string(text?.content) ?? []
  })
  return texts.length === 0 ? undefined : texts.join("\n")
}
