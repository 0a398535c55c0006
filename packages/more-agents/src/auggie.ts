import type { Connector, Parsed, UnitName } from "../../../src/agents/kit/connector.ts"
import { readJsonFile, unitsBelow, withProblems } from "../../../src/agents/kit/files.ts"
import { cutLongTexts, parsedFrom, uniqueKeys } from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Message, Part } from "../../../src/core/conversation.ts"
import { type RawRecord, record, records, string, time } from "../../../src/core/record.ts"
import { auggieRoots } from "./records.ts"

const SESSION = /\.json$/
const MAX_FOLDERS = 4

export const auggieConnector: Connector = {
  source: "auggie",
  version: 1,
  roots: auggieRoots,
  discover: (root) => withProblems((report) => unitsBelow(root, SESSION, MAX_FOLDERS, report)),
  watched: (root) => [{ folder: root, depth: MAX_FOLDERS, files: SESSION }],
  read: (unit, after) => readJsonFile(unit.path, after, recordsOfFile),
  parse: parseAuggie,
}

/** Yields one record for the session and one per exchange, so that a new exchange does not change all of them. */
function* recordsOfFile(file: RawRecord): Generator<RawRecord> {
  const { chatHistory, ...session } = file
  yield cutLongTexts({ type: "dex-session", ...session })
  for (const message of records(chatHistory)) yield cutLongTexts(message)
}

/** Parses exchanges. Each is a prompt and its answer, as a text or as nodes. Nodes without text are only counted. */
function parseAuggie(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const all = [...raw]
  const session = all.find(({ type }) => type === "dex-session") ?? {}
  const id = string(session.sessionId) ?? unit.key.replace(/^.*\/|\.json$/g, "")
  const unknown = createCounts()
  const keys = uniqueKeys()
  const messages: Message[] = []
  for (const [index, one] of all.entries()) {
    const exchange = record(one.exchange)
    if (exchange) {
      const exchanged = messagesOf(one, exchange, `${id}:${index}`, (type) => unknown.add(type))
      messages.push(...exchanged.map((message) => ({ ...message, key: keys(message.key) })))
    } else if (one.type !== "dex-session") unknown.add(string(one.type) ?? "(no type)")
  }
  const title = string(session.customTitle)
  const fields = {
    id,
    title: title && { text: title, from: "person" },
    cwd: session.workspaceRoot,
    times: [session.created, session.modified],
    messages,
  }
  return parsedFrom(fields, unknown)
}

function messagesOf(one: RawRecord, exchange: RawRecord, place: string, count: (type: string) => void): Message[] {
  const key = string(exchange.request_id) ?? place
  const at = time(one.finishedAt)
  const [promptNodes, answerNodes] = [exchange.request_nodes, exchange.response_nodes].map((nodes) =>
    nodeText(nodes, count),
  )
  const prompt = string(exchange.request_message) ?? promptNodes
  const answer = string(exchange.response_text) ?? answerNodes
  const promptPart: Part | undefined =
    prompt === undefined
      ? undefined
      : one.isHistorySummary === true
        ? { type: "summary", text: prompt, origin: "agent" }
        : { type: "text", text: prompt, origin: "person" }
  return [
    ...(promptPart
      ? [{ key, role: promptPart.type === "summary" ? ("system" as const) : ("user" as const), parts: [promptPart] }]
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
