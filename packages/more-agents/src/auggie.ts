import type { Connector, Parsed, UnitName } from "../../../src/agents/kit/connector.ts"
import { readJsonFile, unitsBelow, withProblems } from "../../../src/agents/kit/files.ts"
import { cutLongTexts, parsedFrom, uniqueKeys } from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Message, Part } from "../../../src/core/conversation.ts"
import { type RawRecord, record, records, string, time } from "../../../src/core/record.ts"
import { auggieRoots } from "./records.ts"

const SESSION = /\.json$/
const FOLDER_DEPTH = 4

export const auggieConnector: Connector = {
  source: "auggie",
  version: 1,
  roots: auggieRoots,
  discover: (root) => withProblems((report) => unitsBelow(root, SESSION, FOLDER_DEPTH, report)),
  watched: (root) => [{ folder: root, depth: FOLDER_DEPTH, files: SESSION }],
  read: (unit, after) => readJsonFile(unit.path, after, recordsOfFile),
  parse: parseAuggie,
}

/** Yields one record for the session and one per exchange, so that a new exchange does not change the earlier records. */
function* recordsOfFile(file: RawRecord): Generator<RawRecord> {
  const { chatHistory, ...session } = file
  yield cutLongTexts({ type: "dex-session", ...session })
  for (const message of records(chatHistory)) yield cutLongTexts(message)
}

/** Parses exchanges. Each is a prompt and its answer, as text or as nodes. Nodes without text are counted as unknown. */
function parseAuggie(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const entries = [...raw]
  const session = entries.find(({ type }) => type === "dex-session") ?? {}
  const id = string(session.sessionId) ?? unit.key.replace(/^.*\/|\.json$/g, "")
  const unknown = createCounts()
  const uniqueKey = uniqueKeys()
  const messages: Message[] = []
  for (const [index, entry] of entries.entries()) {
    const exchange = record(entry.exchange)
    if (exchange) {
      const exchangeMessages = messagesOf(entry, exchange, `${id}:${index}`, (type) => unknown.add(type))
      messages.push(...exchangeMessages.map((message) => ({ ...message, key: uniqueKey(message.key) })))
    } else if (entry.type !== "dex-session") unknown.add(string(entry.type) ?? "(no type)")
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

function messagesOf(
  entry: RawRecord,
  exchange: RawRecord,
  defaultKey: string,
  countUnknown: (type: string) => void,
): Message[] {
  const key = string(exchange.request_id) ?? defaultKey
  const at = time(entry.finishedAt)
  const [promptNodes, answerNodes] = [exchange.request_nodes, exchange.response_nodes].map((nodes) =>
    nodeText(nodes, countUnknown),
  )
  const prompt = string(exchange.request_message) ?? promptNodes
  const answer = string(exchange.response_text) ?? answerNodes
  const promptPart: Part | undefined =
    prompt === undefined
      ? undefined
      : entry.isHistorySummary === true
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

function nodeText(nodes: unknown, countUnknown: (type: string) => void): string | undefined {
  const texts = records(nodes).flatMap((node) => {
    const text = record(node.text_node)
    if (!text) countUnknown(`node ${String(node.type)}`)
    return string(text?.content) ?? []
  })
  return texts.length === 0 ? undefined : texts.join("\n")
}
