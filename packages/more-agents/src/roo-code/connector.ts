import type { Stats } from "node:fs"
import { join } from "node:path"
import type { Connector, Cursor, Reading, Skipped, Unit, Unreadable } from "../../../../src/agents/kit/connector.ts"
import { readingOfRows } from "../../../../src/agents/kit/database-units.ts"
import { entriesOf, fileAt, type Report, unitOfFile, withProblems } from "../../../../src/agents/kit/files.ts"
import { cutLongTexts, digestOf } from "../../../../src/agents/kit/messages.ts"
import { codeOf, messageOf } from "../../../../src/core/error.ts"
import { readText } from "../../../../src/core/read-file.ts"
import {
  array,
  isRecord,
  parseArray,
  parseObject,
  type RawRecord,
  record,
  string,
} from "../../../../src/core/record.ts"
import { rooCodeRoots } from "../records.ts"
import { parseRooCode } from "./parse.ts"

/**
 * Reads Roo Code's tasks: a folder per task, with a file of requests to the model, a file of the window's content, and a history
 * entry. Roo Code rewrites all of these files whenever the task changes.
 */
export const rooCodeConnector: Connector = {
  source: "roo_code",
  version: 2,
  roots: rooCodeRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched: (root) => [
    { folder: root, depth: 1, files: new RegExp(`^[^/]+/(${Object.values(FILE_PATTERNS).join("|")})$`) },
  ],
  read,
  parse: parseRooCode,
  identify: (raw) => `${raw.file}:${raw.id ?? raw.ts ?? JSON.stringify(raw)}`,
}

const FILE_PATTERNS = {
  history: "history_item\\.json",
  api: "api_conversation_history\\.json",
  window: "ui_messages\\.json",
  older: "claude_messages\\.json",
}
const FILE_NAMES = [
  "history_item.json",
  "api_conversation_history.json",
  "ui_messages.json",
  "claude_messages.json",
] as const
const MAX_FILE_BYTES = 256 << 20

/** Yields one unit per task. The name of the task's folder is its id. The unit's stamp covers all files of the task. */
function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  for (const task of entriesOf(root, report)) {
    if (!task.isDirectory()) continue
    const folder = join(root, task.name)
    const presentNames = entriesOf(folder, report).map(({ name }) => name)
    const files = FILE_NAMES.filter((name) => presentNames.includes(name))
      .map((name) => ({ path: join(folder, name), stat: fileAt(join(folder, name), report) }))
      .filter((file): file is { path: string; stat: Stats } => file.stat !== undefined)
    const units = files.map(({ path, stat }) => unitOfFile(path, task.name, stat))
    const mainUnit = units.find(({ path }) => !path.endsWith(FILE_NAMES[0]))
    if (mainUnit)
      yield {
        ...mainUnit,
        stamp: units.map(({ stamp }) => stamp).join(" "),
        bytes: units.reduce((sum, { bytes }) => sum + bytes, 0),
        modifiedAt: Math.max(...units.map(({ modifiedAt }) => modifiedAt)),
      }
  }
}

function read(unit: Unit, after?: Cursor): Reading {
  const skipped: Skipped[] = []
  const folder = join(unit.path, "..")
  const [history, api, window, older] = FILE_NAMES.map((name) => contentOf(join(folder, name), name, skipped))
  const turns = messagesIn(api, "api")
  const rows = [
    ...(isRecord(history) ? [{ file: "history", ...history }] : []),
    ...turns,
    ...messagesIn(window, "window"),
    ...(turns.length === 0 ? messagesIn(older, "older") : []),
  ]
  return readingOfRows(rows, stripRooCode, skipped, after)
}

function contentOf(path: string, name: string, skipped: Skipped[]): RawRecord | unknown[] | undefined {
  let text: string
  try {
    text = readText(path, MAX_FILE_BYTES)
  } catch (error) {
    if (codeOf(error) !== "ENOENT") skipped.push({ reason: messageOf(error), where: name })
    return undefined
  }
  const content = parseArray(text) ?? parseObject(text)
  if (content === undefined) skipped.push({ reason: "damaged JSON", where: name })
  return content
}

function messagesIn(content: unknown, file: string): RawRecord[] {
  return array(content).flatMap((message, index) => (isRecord(message) ? [{ id: index, ...message, file }] : []))
}

/** Removes image bytes, signatures and the state of the window. */
function stripRooCode(row: RawRecord): RawRecord {
  const { encrypted_content: _, reasoning_details: __, images: ___, progressStatus: ____, ...rest } = row
  if (!Array.isArray(rest.content)) return cutLongTexts(rest)
  return cutLongTexts({ ...rest, content: rest.content.map(stripBlock) })
}

function stripBlock(value: unknown): unknown {
  if (!isRecord(value)) return value
  const { signature: _, encrypted_content: __, thoughtSignature: ___, ...block } = value
  const data = string(record(block.source)?.data)
  if (block.type === "image" && data !== undefined) {
    const mime = string(record(block.source)?.media_type)
    return { type: "image", image: digestOf(Buffer.from(data, "base64"), mime) }
  }
  return Array.isArray(block.content) ? { ...block, content: block.content.map(stripBlock) } : block
}
