import { join } from "node:path"
import { crc32 } from "node:zlib"
import type { Conversation, Message, Part } from "../../core/conversation.ts"
import type { RawRecord } from "../../core/record.ts"
import { number, record, records, string, time } from "../../core/record.ts"
import type { Connector, Parsed, Unit, UnitName, Unreadable } from "../kit/connector.ts"
import { entriesOf, fileAt, unitOfFile } from "../kit/files.ts"
import { readJsonl } from "../kit/jsonl.ts"
import { dexChatRoots } from "../registry.ts"

/** dex's own chats: one folder each. Their answers are dex's words about what others said, and so of the kind `dex`. */
export const dexChatConnector: Connector = {
  source: "dex_chat",
  version: 2,
  roots: dexChatRoots,
  discover,
  read: (unit, after) => readJsonl(unit.path, after),
  parse,
}

const SHORT = 8

/** People type the first letters of an id; those of a time would be the same for every chat of a month. */
function chatIdOf(folder: string): string {
  return `${crc32(folder).toString(16).padStart(SHORT, "0")}-${folder}`
}

export function chatFolderOf(id: string): string {
  return id.slice(SHORT + 1)
}

function* discover(root: string): Iterable<Unit | Unreadable> {
  const problems: Unreadable[] = []
  for (const folder of entriesOf(root, (problem) => problems.push(problem))) {
    if (!folder.isDirectory()) continue
    const path = join(root, folder.name, "messages.jsonl")
    const stat = fileAt(path, (problem) => problems.push(problem))
    if (stat) yield unitOfFile(path, folder.name, stat)
  }
  yield* problems
}

function parse(raw: Iterable<RawRecord>, { key }: UnitName): Parsed {
  const unknown = new Map<string, number>()
  const messages: Message[] = []
  let header: RawRecord = {}
  for (const line of raw) {
    const type = string(line.type) ?? "(no type)"
    if (type === "chat") header = line
    else if (type === "question" || type === "answer") messages.push(...messageOf(line, key, type, header))
    else if (type !== "clear") unknown.set(type, (unknown.get(type) ?? 0) + 1)
  }
  return {
    conversations: messages.length === 0 ? [] : [conversationOf(key, header, messages)],
    unknown: Object.fromEntries(unknown),
  }
}

function conversationOf(key: string, header: RawRecord, messages: Message[]): Conversation {
  const cwd = string(header.cwd)
  const version = string(header.dex_version)
  const times = [time(header.at), ...messages.map(({ at }) => at)].filter((at) => at !== undefined)
  return {
    id: chatIdOf(key),
    kind: "dex",
    cwds: cwd === undefined ? [] : [cwd],
    agent_version: version,
    started_at: times.length > 0 ? Math.min(...times) : undefined,
    ended_at: times.length > 0 ? Math.max(...times) : undefined,
    messages,
    authority: 1,
  }
}

function messageOf(line: RawRecord, key: string, type: "question" | "answer", header: RawRecord): Message[] {
  const n = number(line.n)
  const text = string(line.text)
  if (n === undefined || text === undefined) return []
  const at = time(line.at)
  const isQuestion = type === "question"
  const model = isQuestion ? undefined : (string(record(line.used)?.model) ?? string(header.model))
  const part: Part = isQuestion
    ? { type: "text", text, origin: "person" }
    : { type: "text", text: withRefs(text, line.sources), origin: "agent" }
  return [
    {
      key: `${key}:${type}:${n}`,
      role: isQuestion ? "user" : "assistant",
      at,
      model: model !== undefined && line.extractive !== true ? model : undefined,
      parts: [part],
    },
  ]
}

/** The numbers in an answer mean nothing without what they stood for. */
function withRefs(text: string, sources: unknown): string {
  const refs = records(sources).flatMap(({ n, ref }) =>
    number(n) !== undefined && string(ref) !== undefined ? [`[${n}] ${ref}`] : [],
  )
  return refs.length === 0 ? text : `${text}\n\n${refs.join("\n")}`
}
