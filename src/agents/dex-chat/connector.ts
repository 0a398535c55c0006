import { join } from "node:path"
import { crc32 } from "node:zlib"
import { createCounts } from "../../core/by-name.ts"
import type { Message, Part } from "../../core/conversation.ts"
import { number, type RawRecord, record, records, string, time } from "../../core/record.ts"
import type { Connector, Parsed, UnitName } from "../kit/connector.ts"
import { readLines, subfolders, unitAt, withProblems } from "../kit/files.ts"
import { parsedFrom } from "../kit/messages.ts"
import { dexChatRoots } from "../registry.ts"

/** Reads dex's own chats, one folder each. Their kind is `dex`, because the answers are dex's words about other conversations. */
export const dexChatConnector: Connector = {
  source: "dex_chat",
  version: 2,
  roots: dexChatRoots,
  discover: (root) =>
    withProblems(function* (report) {
      for (const name of subfolders(root, report)) {
        const unit = unitAt(join(root, name, "messages.jsonl"), name, report)
        if (unit) yield unit
      }
    }),
  read: readLines(),
  parse,
}

const CHECKSUM_LENGTH = 8

/**
 * Computes a chat's id from its folder, whose name is a time. The id begins with a checksum, because people type only the
 * beginning of an id, and all times in one month begin with the same characters.
 */
function chatIdOf(folder: string): string {
  return `${crc32(folder).toString(16).padStart(CHECKSUM_LENGTH, "0")}-${folder}`
}

export function chatFolderOf(id: string): string {
  return id.slice(CHECKSUM_LENGTH + 1)
}

function parse(raw: Iterable<RawRecord>, { key }: UnitName): Parsed {
  const unknown = createCounts()
  const messages: Message[] = []
  let header: RawRecord = {}
  for (const line of raw) {
    const type = string(line.type) ?? "(no type)"
    if (type === "chat") header = line
    else if (type === "question" || type === "answer") messages.push(...messageOf(line, key, type, header))
    else if (type !== "clear") unknown.add(type)
  }
  const { cwd, dex_version, at } = header
  return parsedFrom({ id: chatIdOf(key), kind: "dex", cwd, agent_version: dex_version, times: [at], messages }, unknown)
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

/** Adds the list of sources to which the numbers in the answer refer. */
function withRefs(text: string, sources: unknown): string {
  const refs = records(sources).flatMap(({ n, ref }) =>
    number(n) !== undefined && string(ref) !== undefined ? [`[${n}] ${ref}`] : [],
  )
  return refs.length === 0 ? text : `${text}\n\n${refs.join("\n")}`
}
