import { createHash } from "node:crypto"
import { readdirSync, realpathSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { crc32 } from "node:zlib"
import { messageOf } from "../../core/error.ts"
import { isAbsent } from "../../core/look-at.ts"
import { isDeeperThan, MAX_DEPTH, number, parseObject, type RawRecord, string } from "../../core/record.ts"
import type { Cursor, Reading, Scratch, Skipped, Unit, Unreadable } from "../kit/connector.ts"
import { entriesOf, fileAt, objectAt, workspaceFolder } from "../kit/files.ts"
import { columnsOf, databaseStamp, type ForeignDatabase, withForeignDatabase } from "../kit/foreign-sqlite.ts"
import { stripTurn } from "./turns.ts"

const MAX_META_BYTES = 1 << 20

// Finds the command line's sessions: chats/<md5 of the folder>/<session>/store.db, one database per session.

export function* discoverCli(root: string): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const report = (problem: Unreadable) => void problems.push(problem)
  for (const project of entriesOf(join(root, "chats"), report)) {
    if (!project.isDirectory()) continue
    for (const session of entriesOf(join(root, "chats", project.name), report)) {
      if (!session.isDirectory()) continue
      const path = join(root, "chats", project.name, session.name, "store.db")
      const file = fileAt(path, report)
      if (!file) continue
      try {
        yield {
          key: `cli:${session.name}`,
          path,
          stamp: databaseStamp(path),
          bytes: file.size,
          modifiedAt: file.mtimeMs,
          bornAt: file.birthtimeMs || file.mtimeMs,
        }
      } catch (error) {
        if (!isAbsent(error)) report({ unreadable: messageOf(error), path })
      }
    }
  }
  yield* problems
}

export function readCli(unit: Unit, after: Cursor | undefined, scratch?: Scratch): Reading {
  const skipped: Skipped[] = []
  const readStore = (db: ForeignDatabase): { meta: RawRecord | undefined; turns: RawRecord[] } => {
    skipped.length = 0 // this function may run again if the database changes
    if (!columnsOf(db, "meta").has("value") || !columnsOf(db, "blobs").has("data"))
      return { meta: undefined, turns: [] }
    const meta = metaOf(db.all("select value from meta where key = '0'")[0]?.value)
    const readBlob = (id: string) => bytesOf(db.all("select data from blobs where id = ?", id)[0]?.data)
    const root = string(meta?.latestRootBlobId)
    if (root === undefined) return { meta, turns: [] }
    if (!readBlob(root)) skipped.push({ reason: "the store does not contain its newest state", where: `blob ${root}` })
    return { meta, turns: turnsFrom(root, readBlob, skipped) }
  }
  // Reads the current state. Discovery did not open the database, so it made no copy that could be read here.
  const { meta, turns } = withForeignDatabase(unit.path, readStore, scratch)
  const rows = turns.length === 0 ? [] : [fileRecord(unit, meta ?? {}, skipped), ...turns]
  const crc = rows.reduce((sum, row) => crc32(JSON.stringify(row), sum), 0)
  const isUnchanged = after !== undefined && after.crc === crc
  return {
    mode: isUnchanged ? "append" : "replace",
    records: isUnchanged ? [] : rows,
    end: () => ({ cursor: { offset: 0, crc }, skipped, pending: false }),
  }
}

/** Parses the store's description, which is JSON in hexadecimal. Also accepts plain JSON, in case Cursor switches to it. */
function metaOf(value: unknown): RawRecord | undefined {
  const text = value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : string(value)
  if (text === undefined) return undefined
  return parseObject(text) ?? parseObject(Buffer.from(text, "hex").toString("utf8"))
}

function bytesOf(value: unknown): Buffer | undefined {
  if (value instanceof Uint8Array) return Buffer.from(value)
  return typeof value === "string" ? Buffer.from(value, "utf8") : undefined
}

/**
 * Returns the messages in the order of the tree below the newest state. The name of a blob is a hash of its content, so two equal
 * messages of a node share one blob, which the node lists twice. A message that an earlier node lists is not added again.
 */
function turnsFrom(root: string, readBlob: (id: string) => Buffer | undefined, skipped: Skipped[]): RawRecord[] {
  const turns: RawRecord[] = []
  const listedIds = new Set<string>()
  const counts = new Map<string, number>()
  const visited = new Set([root])
  const stack: { ids: string[]; position: number; idsInNode: Set<string>; inline: RawRecord[] }[] = []
  const addTurn = (id: string, message: RawRecord) => {
    const turn = stripTurn(message)
    if (!turn) return
    const count = (counts.get(id) ?? 0) + 1
    counts.set(id, count)
    turns.push({ key: count === 1 ? id : `${id}#${count}`, ...turn })
  }
  const visitNode = (id: string, bytes: Buffer) => {
    const node = nodeOf(bytes)
    stack.push({
      ids: node.children,
      position: 0,
      idsInNode: new Set(),
      inline: node.messages.map((message) => ({ id, message })),
    })
  }
  const rootBytes = readBlob(root)
  if (rootBytes) visitNode(root, rootBytes)
  for (let node = stack.at(-1); node; node = stack.at(-1)) {
    const id = node.ids[node.position++]
    if (id === undefined) {
      for (const { id: inlineId, message } of node.inline) addTurn(String(inlineId), message as RawRecord)
      for (const leaf of node.idsInNode) listedIds.add(leaf)
      stack.pop()
      continue
    }
    const bytes = readBlob(id)
    const message = bytes && parseObject(bytes.toString("utf8"))
    if (message && isDeeperThan(message, MAX_DEPTH)) {
      skipped.push({ reason: `nested deeper than ${MAX_DEPTH} levels`, where: `blob ${id}` })
    } else if (message) {
      if (!listedIds.has(id)) addTurn(id, message)
      node.idsInNode.add(id)
    } else if (bytes && !visited.has(id)) {
      visited.add(id)
      visitNode(id, bytes)
    }
  }
  return turns
}

/** Parses a protobuf node: fields 1 and 2 with 32 bytes name children; a field with JSON is a message. */
function nodeOf(bytes: Buffer): { children: string[]; messages: RawRecord[] } {
  const children: string[] = []
  const messages: RawRecord[] = []
  for (let offset = 0; offset < bytes.length; ) {
    const tag = varint(bytes, offset)
    if (!tag) break
    offset = tag.end
    const wireType = tag.value & 7
    if (wireType === 1 || wireType === 5) offset += wireType === 1 ? 8 : 4
    else if (wireType === 0 || wireType === 2) {
      const value = varint(bytes, offset)
      if (!value) break
      offset = value.end
      if (wireType === 0) continue
      const field = bytes.subarray(offset, offset + value.value)
      offset += value.value
      const number = tag.value >>> 3
      if (field.length === 32 && (number === 1 || number === 2)) children.push(field.toString("hex"))
      else if (field[0] === 0x7b) {
        const message = parseObject(field.toString("utf8"))
        if (message && string(message.role) && !isDeeperThan(message, MAX_DEPTH)) messages.push(message)
      }
    } else break
  }
  return { children, messages }
}

function varint(bytes: Buffer, start: number): { value: number; end: number } | undefined {
  let value = 0
  for (let offset = start, scale = 1; offset < bytes.length && offset < start + 5; offset++, scale *= 128) {
    value += (bytes[offset]! & 127) * scale
    if (bytes[offset]! < 128) return { value, end: offset + 1 }
  }
  return undefined
}

/**
 * Returns the facts from outside the messages: the store's description, its `meta.json`, and the folder whose md5 is in the path.
 */
function fileRecord(unit: Unit, meta: RawRecord, skipped: Skipped[]): RawRecord {
  const report = ({ unreadable, path }: Unreadable) =>
    void skipped.push({ reason: `a meta.json: ${unreadable}`, where: path })
  // Only newer versions write a `meta.json` next to the database.
  const sidecar = objectAt(join(dirname(unit.path), "meta.json"), MAX_META_BYTES, report)
  const folder = string(sidecar?.cwd) ?? folderWithHash(unit.path)
  const facts = {
    folder,
    name: string(meta.name),
    model: string(meta.lastUsedModel),
    created_at: number(meta.createdAt) ?? number(sidecar?.createdAtMs),
    updated_at: number(sidecar?.updatedAtMs),
  }
  return { type: "dex-file", ...Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) }
}

/** Finds the folder whose hash is in the path, by hashing the folders that Cursor's other stores name. */
function folderWithHash(path: string): string | undefined {
  const hash = basename(dirname(dirname(path)))
  const root = dirname(dirname(dirname(dirname(path))))
  for (const folder of knownFolders(root)) {
    if (createHash("md5").update(folder).digest("hex") === hash) return folder
  }
  return undefined
}

const EDITOR_FOLDERS = [
  [".config", "Cursor", "User"],
  ["Library", "Application Support", "Cursor", "User"],
  ["AppData", "Roaming", "Cursor", "User"],
]

function* knownFolders(root: string): Generator<string> {
  const ignore = () => {}
  for (const { name } of entriesOf(join(root, "projects"), ignore)) {
    const folder = decodeFolder(name)
    if (folder !== undefined) yield folder
  }
  for (const home of new Set([dirname(root), dirname(dirname(root))])) {
    for (const editor of EDITOR_FOLDERS) {
      const storage = join(home, ...editor, "workspaceStorage")
      for (const { name } of entriesOf(storage, ignore)) {
        const folder = workspaceFolder(join(storage, name), ignore)
        if (folder !== undefined) yield folder
      }
    }
  }
}

const MAX_FOLDERS = 300

/**
 * Finds the folder that has this name in Cursor: its path without the first slash, and with `-` in place of every character that
 * is not a letter or a digit. Returns undefined if no existing folder matches, if more than one does, or if too many would have
 * to be searched.
 */
export function decodeFolder(
  encoded: string,
  platform: NodeJS.Platform = process.platform,
  top = "/",
): string | undefined {
  const target = normalizedName(encoded)
  if (target === "") return undefined
  const drive = platform === "win32" ? /^([a-z])-(.+)$/i.exec(target) : undefined
  if (platform === "win32" && !drive) return undefined
  const matches = new Set<string>()
  const candidates: { folder: string; rest: string }[] = [
    drive ? { folder: `${drive[1]!.toUpperCase()}:\\`, rest: drive[2]! } : { folder: top, rest: target },
  ]
  for (let searched = 0; candidates.length > 0 && searched < MAX_FOLDERS; searched++) {
    const { folder, rest } = candidates.pop()!
    for (const name of foldersIn(folder)) {
      const piece = normalizedName(name)
      if (piece === "") continue
      if (rest === piece) matches.add(resolvedPath(join(folder, name)))
      else if (rest.startsWith(`${piece}-`))
        candidates.push({ folder: join(folder, name), rest: rest.slice(piece.length + 1) })
    }
  }
  return matches.size === 1 && candidates.length === 0 ? [...matches][0] : undefined
}

function normalizedName(name: string): string {
  return name.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "")
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() || entry.isSymbolicLink() ? [entry.name] : [],
    )
  } catch {
    return [] // the path is not a folder, or cannot be read
  }
}

function resolvedPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path // the link may be broken, but it still names the folder
  }
}
