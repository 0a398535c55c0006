import { closeSync, readSync } from "node:fs"
import { crc32 } from "node:zlib"
import type { Connector, Cursor, ExportedItem } from "../agents/kit/connector.ts"
import { DexError } from "../core/error.ts"
import { BadList, itemsOfList, membersOf, parseValue } from "../core/json-items.ts"
import { type OpenedFile, openFile } from "../core/read-file.ts"
import { isDeeperThan, MAX_DEPTH, parseObject, type RawRecord } from "../core/record.ts"
import { BadZip, zipContent, zipEntries } from "../core/zip.ts"
import { parseDocument } from "../documents/document.ts"
import { createPlaceFinder } from "../git/project.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import { INDEX_EVERY_CHARS, recentMessages } from "./carry-out-sync.ts"
import { prepareUnit, type ReadContext } from "./read-unit.ts"
import type { SyncDeps } from "./sync-types.ts"
import { withStoredName } from "./unit-names.ts"

/** The size of the largest conversation that is read. It is in memory several times while it is read. */
const MAX_ITEM = { bytes: 32 << 20, values: 1_000_000 }
const MAX_MESSAGES = 50_000
const MAX_FIELDS = 1_000
/** Conversations that are joined from items are stored in units of this many records. */
const MAX_JOINED_RECORDS = 1_000
const CHUNK_BYTES = 1 << 20
const UTF8_MARK = 0xefbbbf

export type ExportKind = "zip" | "json"

/** Whether a file begins like an export of a service. A history begins differently. */
export function exportKindOf(start: Buffer): ExportKind | undefined {
  if (start.length >= 4 && start.readUInt16BE(0) === 0x504b && start[2]! < 8) return "zip"
  const text = (start.length >= 3 && start.readUIntBE(0, 3) === UTF8_MARK ? start.subarray(3) : start).toString(
    "latin1",
  )
  return /^\s*[[{]/.test(text) ? "json" : undefined
}

/** The names of the files that contain conversations: those of ChatGPT and Claude, and of Gemini in Google's Takeout. */
const WANTED = /(?:^|\/)(?:conversations(?:-\d+)?\.json|My ?Activity\.json|[^/]*Gemini[^/]*\/[^/]+\.json)$/i
const AS_PAGE = /(?:^|\/)(?:My ?Activity|[^/]*Gemini[^/]*\/[^/]+)\.html$/i

const HOW_TO_GET = "docs/backup.md says how to get an export."

export type ImportedExport = {
  services: string[]
  conversations: number
  messages: number
  unchanged: number
  forgotten: number
  left_out: Map<string, number>
}

type Deps = Pick<SyncDeps, "store" | "index" | "home"> & {
  connectors: readonly Connector[]
  onProgress?: (read: number, total: number) => void
}

/**
 * Imports the conversations of an export, one at a time: nothing of it is written to disk before it is redacted. Importing the same
 * file again changes nothing, and an older one takes nothing away.
 */
export async function importExport(deps: Deps, path: string, kind: ExportKind): Promise<ImportedExport> {
  const opened = openFile(path)
  const importer = importerOf(deps, path, opened)
  let read = 0
  const onRead = (bytes: number) => {
    read += bytes
    deps.onProgress?.(read, opened.stat.size)
  }
  try {
    const lists = kind === "zip" ? listsInZip(opened, path, onRead) : [{ name: "", chunks: contentOf(opened, onRead) }]
    const problems: string[] = []
    for (const { name, chunks } of lists) {
      try {
        for await (const item of itemsOfList(chunks, MAX_ITEM)) await importer.add(item)
      } catch (error) {
        if (!(error instanceof BadZip) && !(error instanceof BadList)) throw error
        problems.push(`${name === "" ? path : `${name} in ${path}`} ${error.message}`)
      }
    }
    await importer.finish()
    if (importer.report.services.length === 0 && problems.length > 0)
      throw new DexError("bad_export", `${problems[0]}. Nothing was imported. Download the export again.`)
    const [reason] = importer.report.left_out.keys()
    if (importer.report.services.length === 0 && reason !== undefined)
      throw new DexError(
        "not_an_export",
        `${path} has no conversation that dex can read, only ${reason}. ${HOW_TO_GET}`,
      )
    for (const problem of problems) importer.leaveOut(`the rest of a file, because ${problem}`)
    return importer.report
  } catch (error) {
    throw error instanceof BadZip
      ? new DexError("bad_export", `${path} ${error.message}. Nothing was imported. Download the export again.`)
      : error
  } finally {
    closeSync(opened.fd)
  }
}

function listsInZip({ fd, stat }: OpenedFile, path: string, onRead: (bytes: number) => void) {
  const zip = { fd, bytes: stat.size }
  let hasPage = false
  const entries = zipEntries(zip, (name) => {
    hasPage ||= AS_PAGE.test(name)
    return WANTED.test(name)
  })
  if (entries.length === 0)
    throw new DexError(
      "not_an_export",
      hasPage
        ? `${path} has Gemini's activity as a page. Request it in Google's Takeout again, and choose JSON as the format of My Activity.`
        : `${path} has no conversations.json and no MyActivity.json, so it is not an export of ChatGPT, Claude or Gemini. ${HOW_TO_GET}`,
    )
  return entries.map((entry) => ({ name: entry.name, chunks: zipContent(zip, entry, onRead) }))
}

async function* contentOf({ fd }: OpenedFile, onRead: (bytes: number) => void): AsyncGenerator<Buffer> {
  for (;;) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    const bytes = readSync(fd, chunk, 0, CHUNK_BYTES, null)
    if (bytes === 0) return
    onRead(bytes)
    yield chunk.subarray(0, bytes)
  }
}

type Group = ExportedItem & { connector: Connector; checksum: number; bytes: number }

function importerOf({ store, index, home, connectors }: Deps, path: string, { stat }: OpenedFile) {
  const report: ImportedExport = {
    services: [],
    conversations: 0,
    messages: 0,
    unchanged: 0,
    forgotten: 0,
    left_out: new Map(),
  }
  const leaveOut = (what: string) => void report.left_out.set(what, (report.left_out.get(what) ?? 0) + 1)
  const context: ReadContext = { placeOf: createPlaceFinder(), dexDir: home.dir, store }
  const units = new Map<string, number>()
  const recent = recentMessages()
  let group: Group | undefined
  return {
    report,
    leaveOut,
    add: async ({ text, bytes }: { text: string | undefined; bytes: number }) => {
      if (text === undefined)
        return leaveOut(`conversations with more than ${MAX_ITEM.bytes >> 20} MB or ${MAX_ITEM.values} values`)
      const item = itemIn(text, connectors, leaveOut)
      if (typeof item === "string") return leaveOut(item)
      const { connector } = item
      for (const record of item.records) await replaceHtml(connector, record)
      const checksum = crc32(text)
      const { joinsItems } = connector.exported!
      if (
        joinsItems &&
        group?.connector === connector &&
        group.key === item.key &&
        group.records.length < MAX_JOINED_RECORDS
      ) {
        group.records.push(...item.records)
        group.modifiedAt = Math.max(group.modifiedAt ?? 0, item.modifiedAt ?? 0)
        group.checksum = crc32(text, group.checksum)
        group.bytes += bytes
        return
      }
      await flush()
      group = { ...item, checksum, bytes }
    },
    finish: async () => {
      await flush()
      await updateIndex()
    },
  }

  /** Makes what was stored searchable, from memory: reading it back from the history would take as long again. */
  async function updateIndex(): Promise<void> {
    await index.follow(store, { recent: recent.messagesOf })
    recent.clear()
  }

  async function flush(): Promise<void> {
    if (!group) return
    const { connector, key, records, modifiedAt = stat.mtimeMs, checksum, bytes } = group
    group = undefined
    const { source, exported, version } = connector
    if (!report.services.includes(source)) report.services.push(source)
    if ((await store.forgottenAmong(source, new Set([key]))).size > 0) {
      report.forgotten++
      return
    }
    const count = (units.get(key) ?? 0) + 1
    if (exported!.joinsItems) units.set(key, count)
    const unit = withStoredName({
      key: exported!.joinsItems && count > 1 ? `${key}~${count}` : key,
      path,
      stamp: `${bytes}:${checksum}`,
      bytes,
      modifiedAt,
      bornAt: modifiedAt,
    })
    const known = await store.knownUnit(source, unit.key)
    const isSame = known?.stamp === unit.stamp && known.connector_version === version
    if (
      known &&
      ((isSame && known.redaction_version === REDACTION_VERSION) || known.modified_at > Math.round(modifiedAt))
    ) {
      report.unchanged++
      return
    }
    const reader = Object.assign(Object.create(connector) as Connector, {
      read: (_: unknown, after?: Cursor) => {
        const cursor = { offset: bytes, crc: checksum }
        const isRead = after?.offset === bytes && after.crc === checksum
        return {
          mode: isRead ? ("append" as const) : ("replace" as const),
          records: isRead ? [] : records,
          end: () => ({ cursor, skipped: [], pending: false }),
        }
      },
    })
    const result = await store.writeUnit(await prepareUnit(reader, unit, false, context))
    report.conversations += result.changed
    report.messages += result.added_messages
    report.forgotten += result.forgotten
    recent.add(result.fresh)
    if (recent.chars() > INDEX_EVERY_CHARS) await updateIndex()
  }
}

/** Reads an item of an export. Returns the reason if it cannot be read. */
function itemIn(
  text: string,
  connectors: readonly Connector[],
  leaveOut: (what: string) => void,
): (ExportedItem & { connector: Connector }) | string {
  try {
    if (!text.startsWith("{")) return "items that are no conversation"
    const messageFields = new Set(connectors.flatMap(({ exported }) => exported?.messages ?? []))
    const fields: [string, unknown][] = []
    const messages: RawRecord[] = []
    let messageField: string | undefined
    for (const [name = "", value] of membersOf(text)) {
      if (!messageFields.has(name)) fields.push([name, parseValue(value)])
      else if (/^[[{]/.test(value)) {
        messageField = name
        for (const [id, member] of membersOf(value)) {
          const message = messageIn(member)
          if (message) messages.push(id === undefined || typeof message.id === "string" ? message : { ...message, id })
          else leaveOut("damaged messages")
          if (messages.length > MAX_MESSAGES) return `conversations with more than ${MAX_MESSAGES} messages`
        }
      }
      if (fields.length > MAX_FIELDS) return "damaged conversations"
    }
    const header = Object.fromEntries(fields)
    if (isDeeperThan(header, MAX_DEPTH)) return "damaged conversations"
    for (const connector of connectors) {
      const { messages: field, itemOf } = connector.exported!
      const item = field === messageField ? itemOf(header, messages) : undefined
      if (item && KEY.test(item.key)) return { ...item, connector }
    }
    return "items that are no conversation"
  } catch (error) {
    if (error instanceof SyntaxError) return "damaged conversations"
    throw error
  }
}

function messageIn(text: string): RawRecord | undefined {
  const message = parseObject(text)
  return message && !isDeeperThan(message, MAX_DEPTH) ? message : undefined
}

const KEY = /^[\w.:-]{1,100}$/

async function replaceHtml({ exported }: Connector, record: RawRecord): Promise<void> {
  for (const part of exported?.htmlIn?.(record) ?? []) {
    if (typeof part.html !== "string") continue
    const { sections } = await parseDocument(part.html, "html")
    part.text = sections.map(({ text }) => text).join("\n\n")
    delete part.html
  }
}
