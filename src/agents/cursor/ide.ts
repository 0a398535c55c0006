import { statSync } from "node:fs"
import { dirname, join } from "node:path"
import { crc32 } from "node:zlib"
import { withoutUndefined } from "../../core/defined.ts"
import { messageOf } from "../../core/error.ts"
import { isAbsent } from "../../core/look-at.ts"
import {
  array,
  isDeeperThan,
  isRecord,
  MAX_DEPTH,
  number,
  parseObject,
  type RawRecord,
  record,
  records,
  string,
  time,
} from "../../core/record.ts"
import type { Cursor, IsUnchanged, Reading, Scratch, Skipped, Unit, Unreadable } from "../kit/connector.ts"
import { entriesOf, workspaceFolder } from "../kit/files.ts"
import {
  columnsOf,
  databaseStamp,
  type ForeignDatabase,
  withForeignDatabase,
  withFoundDatabase,
} from "../kit/foreign-sqlite.ts"
import { cutLongTexts, digestOfDataUri } from "../kit/messages.ts"

// Reads Cursor's editor: one global database of composers and their bubbles, and one database per workspace, which lists the
// composers of that workspace and, in old versions, contains the chat itself.

/**
 * A composer, with the folder of the workspace that lists it. The folder is stored here because looking it up for each composer
 * would open all databases.
 */
type IdeUnit = Unit & { folder?: string }

export function* discoverIde(root: string, isUnchanged: IsUnchanged, scratch?: Scratch): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const report = (problem: Unreadable) => void problems.push(problem)
  const global = join(root, "globalStorage", "state.vscdb")
  const composers = tryReading(global, problems, () =>
    isUnchanged(global, databaseStamp(global)) ? [] : composersOf(global, scratch),
  )
  const needsFolders = composers?.some((composer) => composer.folder === undefined)
  const folders = new Map<string, string>()
  for (const entry of entriesOf(join(root, "workspaceStorage"), report)) {
    if (!entry.isDirectory()) continue
    const path = join(root, "workspaceStorage", entry.name, "state.vscdb")
    const folder = workspaceFolder(dirname(path), report)
    const tabs = tryReading(path, problems, () => {
      const wasRead = isUnchanged(path, databaseStamp(path))
      if (wasRead && !needsFolders) return []
      const workspace = readWorkspace(path, folder, scratch)
      if (folder) for (const id of workspace.composers) folders.set(id, folder)
      return wasRead ? [] : workspace.tabs
    })
    yield* tabs ?? []
  }
  for (const composer of composers ?? []) {
    const folder = composer.folder ?? folders.get(composer.key.slice("ide:".length))
    yield { ...composer, ...withoutUndefined({ folder }) }
  }
  yield* problems
}

/** The query for composers. Values are cast to text, since they may be text or bytes; a value that is not JSON becomes null. */
const COMPOSERS_QUERY = `
  with composer as (
    select key, octet_length(value) as bytes, cast(value as text) as json from cursorDiskKV
    where key >= 'composerData:' and key < 'composerData;' and value is not null
  ), readable as (select key, bytes, case when json_valid(json) then json end as json from composer)
  select key, bytes, json_extract(json, '$.lastUpdatedAt') as updated, json_extract(json, '$.createdAt') as created,
    json_extract(json, '$.workspaceIdentifier.uri.fsPath') as folder
  from readable`

function composersOf(path: string, scratch: Scratch | undefined): IdeUnit[] {
  const { birthtimeMs, mtimeMs } = statSync(path)
  const readComposers = (db: ForeignDatabase): IdeUnit[] => {
    if (!columnsOf(db, "cursorDiskKV").has("value")) return []
    return db.all(COMPOSERS_QUERY).map((row) => {
      const createdAt = time(row.created)
      const updatedAt = time(row.updated) ?? createdAt
      const folder = string(row.folder)
      return {
        key: `ide:${String(row.key).slice("composerData:".length)}`,
        path,
        stamp: `${row.updated}:${row.bytes}`,
        bytes: number(row.bytes) ?? 0,
        modifiedAt: updatedAt ?? mtimeMs,
        bornAt: createdAt ?? (birthtimeMs || mtimeMs),
        folder,
      }
    })
  }
  return withForeignDatabase(path, readComposers, scratch)
}

const COMPOSER_LIST = "composer.composerData"
const CHAT_TABS = "workbench.panel.aichat.view.aichat.chatdata"

function readWorkspace(
  path: string,
  folder: string | undefined,
  scratch: Scratch | undefined,
): { composers: string[]; tabs: IdeUnit[] } {
  const { birthtimeMs, mtimeMs } = statSync(path)
  const [composerList, chatData] = withForeignDatabase(
    path,
    (db) => [readItem(db, COMPOSER_LIST), readItem(db, CHAT_TABS)],
    scratch,
  )
  const tabs = records(chatData?.tabs).flatMap((tab) => {
    const id = string(tab.tabId)
    const size = Buffer.byteLength(JSON.stringify(tab))
    const modifiedAt = time(tab.lastSendTime) ?? mtimeMs
    const unit = { key: `ide:${id}`, path, stamp: `${size}:${crc32(JSON.stringify(tab))}`, bytes: size, modifiedAt }
    return id === undefined ? [] : [{ ...unit, bornAt: birthtimeMs || mtimeMs, folder: folder || undefined }]
  })
  const composers = records(composerList?.allComposers).flatMap((composer) => string(composer.composerId) ?? [])
  return { composers, tabs }
}

/** Reads a single item, because this table also contains the user's tokens. */
function readItem(db: ForeignDatabase, key: string): RawRecord | undefined {
  if (!columnsOf(db, "ItemTable").has("value")) return undefined
  return parseObject(decodedText(db.all("select value from ItemTable where key = ?", key)[0]?.value) ?? "")
}

export function readIde(unit: IdeUnit, after: Cursor | undefined, scratch?: Scratch): Reading {
  const id = unit.key.slice("ide:".length)
  const skipped: Skipped[] = []
  const readRows = (db: ForeignDatabase): RawRecord[] => {
    skipped.length = 0 // this function may run again if the database changes
    return columnsOf(db, "cursorDiskKV").has("value")
      ? (composerRows(db, id, skipped) ?? tabRows(db, id))
      : tabRows(db, id)
  }
  const rows = withFoundDatabase(unit.path, readRows, scratch)
  const allRows = rows.length === 0 ? [] : [{ type: "dex-file", folder: unit.folder || undefined }, ...rows]
  const crc = allRows.reduce((sum, row) => crc32(JSON.stringify(row), sum), 0)
  const isUnchanged = after !== undefined && after.crc === crc
  return {
    mode: isUnchanged ? "append" : "replace",
    records: isUnchanged ? [] : allRows,
    end: () => ({ cursor: { offset: 0, crc }, skipped, pending: false }),
  }
}

/** Returns undefined if the database has no such composer, and no rows if the composer is damaged. */
function composerRows(db: ForeignDatabase, id: string, skipped: Skipped[]): RawRecord[] | undefined {
  const [row] = db.all("select value from cursorDiskKV where key = ? and value is not null", `composerData:${id}`)
  if (!row) return undefined
  const composer = parsedValue(row.value, `composerData:${id}`, skipped)
  if (!composer) return []
  const tools = oldToolData(composer)
  const inline = records(composer.conversation).map((bubble, index) => bubbleRow(bubble, `${id}:${index}`, tools))
  const rows: RawRecord[] = []
  const bubbles = db.iterate(
    "select key, value from cursorDiskKV where key >= ? and key < ? and value is not null order by key",
    `bubbleId:${id}:`,
    `bubbleId:${id};`,
  )
  for (const { key, value } of bubbles) {
    const bubble = parsedValue(value, String(key), skipped)
    if (bubble) rows.push(bubbleRow(bubble, String(key).slice(`bubbleId:${id}:`.length), tools))
  }
  const headers = records(composer.fullConversationHeadersOnly).flatMap((header) => string(header.bubbleId) ?? [])
  const order = headers.length > 0 ? headers : inline.map((bubble) => bubble.id)
  return [{ type: "composer", id, order, data: stripComposer(composer) }, ...inline, ...rows]
}

/** Builds the row of a bubble. `fallback` is its id if it does not contain one. */
function bubbleRow(bubble: RawRecord, fallback: string, tools: Map<string, RawRecord>): RawRecord {
  const id = string(bubble.bubbleId) ?? fallback
  const tool = bubble.toolFormerData ?? tools.get(id)
  return { type: "bubble", id, data: stripBubble(tool === undefined ? bubble : { ...bubble, toolFormerData: tool }) }
}

/** Maps bubbles to their tool calls. The first version stored the calls outside the conversation, as a JSON string. */
function oldToolData(composer: RawRecord): Map<string, RawRecord> {
  const toolData = new Map<string, RawRecord>()
  for (const capability of records(composer.capabilities)) {
    const map = record(capability.data)?.bubbleDataMap
    const byBubble = typeof map === "string" ? parseObject(map) : record(map)
    for (const [id, data] of Object.entries(byBubble ?? {})) {
      const tool = record(data)
      if (tool) toolData.set(id, tool)
    }
  }
  return toolData
}

/** Reads a tab of the old chat panel. */
function tabRows(db: ForeignDatabase, id: string): RawRecord[] {
  const tab = records(readItem(db, CHAT_TABS)?.tabs).find((candidate) => candidate.tabId === id)
  if (!tab) return []
  const bubbles = records(tab.bubbles).map((bubble, index) => {
    const type = bubble.type === "user" ? 1 : bubble.type === "ai" ? 2 : bubble.type
    const text = string(bubble.text) ?? string(bubble.rawText) ?? string(bubble.initText)
    const model = string(bubble.modelType)
    const name = string(bubble.id) ?? `${id}:${index}`
    return {
      type: "bubble",
      id: name,
      data: stripBubble({
        ...bubble,
        type,
        text,
        ...withoutUndefined({ modelInfo: model ? { modelName: model } : undefined }),
      }),
    }
  })
  const data = { name: tab.chatTitle, lastUpdatedAt: tab.lastSendTime }
  return [{ type: "composer", id, order: bubbles.map((bubble) => bubble.id), data }, ...bubbles]
}

function parsedValue(value: unknown, where: string, skipped: Skipped[]): RawRecord | undefined {
  const parsed = parseObject(decodedText(value) ?? "")
  if (!parsed) skipped.push({ reason: "damaged JSON", where })
  else if (isDeeperThan(parsed, MAX_DEPTH)) skipped.push({ reason: `nested deeper than ${MAX_DEPTH} levels`, where })
  else return parsed
  return undefined
}

function decodedText(value: unknown): string | undefined {
  return value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : string(value)
}

/** Returns undefined if the database is missing or unreadable. An unreadable database is reported. */
function tryReading<T>(path: string, problems: Unreadable[], work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (!isAbsent(error)) problems.push({ unreadable: messageOf(error), path })
    return undefined
  }
}

// Only these fields are stored. Composers and bubbles also contain copies of files, of the editor's state and of every request.

const COMPOSER_FIELDS = [
  ...["_v", "name", "createdAt", "lastUpdatedAt", "unifiedMode", "isAgentic", "status", "subtitle", "subagentInfo"],
  ...["contextTokensUsed", "contextTokenLimit"],
]

function stripComposer(composer: RawRecord): RawRecord {
  const model = string(record(composer.modelConfig)?.modelName)
  const fsPath = string(record(record(composer.workspaceIdentifier)?.uri)?.fsPath)
  return cutLongTexts({
    ...pick(composer, COMPOSER_FIELDS),
    ...withoutUndefined({
      modelConfig: model ? { modelName: model } : undefined,
      workspaceIdentifier: fsPath ? { uri: { fsPath } } : undefined,
    }),
  })
}

const BUBBLE_FIELDS = ["_v", "type", "text", "capabilityType", "unifiedMode", "createdAt", "tokenCount", "errorDetails"]
const TOOL_FIELDS = ["tool", "name", "toolCallId", "status", "rawArgs", "params", "result", "error", "userDecision"]
const TIME_FIELDS = ["clientStartTime", "clientEndTime", "clientRpcSendTime", "clientSettleTime"]

function stripBubble(bubble: RawRecord): RawRecord {
  const thinking = string(record(bubble.thinking)?.text) ?? string(bubble.thinking)
  const model = string(record(bubble.modelInfo)?.modelName)
  const timing = record(bubble.timingInfo)
  const tool = record(bubble.toolFormerData)
  const images = array(bubble.images).map(imageNote)
  const files = records(record(bubble.context)?.fileSelections).flatMap((file) => {
    const uri = record(file.uri)
    return string(uri?.fsPath) ?? string(uri?.path) ?? []
  })
  const hasText = string(bubble.text)?.trim()
  return cutLongTexts({
    ...pick(bubble, BUBBLE_FIELDS),
    ...withoutUndefined({
      richText: !hasText && string(bubble.richText) ? bubble.richText : undefined,
      thinking: thinking ? { text: thinking } : undefined,
      modelInfo: model ? { modelName: model } : undefined,
      timingInfo: timing && pick(timing, TIME_FIELDS),
      toolFormerData: tool && pick(tool, TOOL_FIELDS),
      images: images.length > 0 ? images : undefined,
      files: files.length > 0 ? files : undefined,
    }),
  })
}

/** Returns the stored description of an image: its path, and a digest if it is a data URI. */
function imageNote(image: unknown): RawRecord {
  const fields = isRecord(image) ? image : {}
  const uri = string(fields.data) ?? string(fields.url) ?? ""
  const path = string(fields.path)
  return { ...digestOfDataUri(uri), path: path || undefined }
}

function pick(from: RawRecord, fields: string[]): RawRecord {
  return Object.fromEntries(fields.flatMap((field) => (from[field] === undefined ? [] : [[field, from[field]]])))
}
