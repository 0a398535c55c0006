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
  const read = (db: ForeignDatabase): { meta: RawRecord | undefined; turns: RawRecord[] } => {
    skipped.length = 0 // the read may be repeated
    if (!columnsOf(db, "meta").has("value") || !columnsOf(db, "blobs").has("data"))
      return { meta: undefined, turns: [] }
    const meta = metaOf(db.all("select value from meta where key = '0'")[0]?.value)
    const blob = (id: string) => bytesOf(db.all("select data from blobs where id = ?", id)[0]?.data)
    const root = string(meta?.latestRootBlobId)
    if (root === undefined) return { meta, turns: [] }
    if (!blob(root)) skipped.push({ reason: "the store does not contain its newest state", where: `blob ${root}` })
    return { meta, turns: turnsFrom(root, blob, skipped) }
  }
  // Read the current state, because discovery did not open the database.
  const { meta, turns } = withForeignDatabase(unit.path, read, scratch)
  const kept = turns.length === 0 ? [] : [fileRecord(unit, meta ?? {}, skipped), ...turns]
  const crc = kept.reduce((sum, row) => crc32(JSON.stringify(row), sum), 0)
  const unchanged = after !== undefined && after.crc === crc
  return {
    mode: unchanged ? "append" : "replace",
    records: unchanged ? [] : kept,
    end: () => ({ cursor: { offset: 0, crc }, skipped, pending: false }),
  }
}

/** Parses hex of JSON. Also accepts plain JSON, in case Cursor switches to it. */
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
 * Returns the messages in the order of the tree below the newest state. Blobs are named by their content, so equal messages share
 * one blob, which its node lists twice; a node that repeats the list of an older one adds nothing.
 */
function turnsFrom(root: string, blob: (id: string) => Buffer | undefined, skipped: Skipped[]): RawRecord[] {
  const turns: RawRecord[] = []
  const listed = new Set<string>()
  const times = new Map<string, number>()
  const visited = new Set([root])
  const open: { ids: string[]; at: number; own: Set<string>; after: RawRecord[] }[] = []
  const addTurn = (id: string, message: RawRecord) => {
    const turn = stripTurn(message)
    if (!turn) return
    const time = (times.get(id) ?? 0) + 1
    times.set(id, time)
    turns.push({ key: time === 1 ? id : `${id}#${time}`, ...turn })
  }
  const enter = (id: string, bytes: Buffer) => {
    const node = nodeOf(bytes)
    open.push({ ids: node.children, at: 0, own: new Set(), after: node.messages.map((message) => ({ id, message })) })
  }
  const first = blob(root)
  if (first) enter(root, first)
  for (let node = open.at(-1); node; node = open.at(-1)) {
    const id = node.ids[node.at++]
    if (id === undefined) {
      for (const { id: own, message } of node.after) addTurn(String(own), message as RawRecord)
      for (const leaf of node.own) listed.add(leaf)
      open.pop()
      continue
    }
    const bytes = blob(id)
    const message = bytes && parseObject(bytes.toString("utf8"))
    if (message && isDeeperThan(message, MAX_DEPTH)) {
      skipped.push({ reason: `nested deeper than ${MAX_DEPTH} levels`, where: `blob ${id}` })
    } else if (message) {
      if (!listed.has(id)) addTurn(id, message)
      node.own.add(id)
    } else if (bytes && !visited.has(id)) {
      visited.add(id)
      enter(id, bytes)
    }
  }
  return turns
}

/** Parses a protobuf node: fields 1 and 2 with 32 bytes name children; a field with JSON is a message. */
function nodeOf(bytes: Buffer): { children: string[]; messages: RawRecord[] } {
  const children: string[] = []
  const messages: RawRecord[] = []
  for (let at = 0; at < bytes.length; ) {
    const tag = varint(bytes, at)
    if (!tag) break
    at = tag.end
    const wire = tag.value & 7
    if (wire === 1 || wire === 5) at += wire === 1 ? 8 : 4
    else if (wire === 0 || wire === 2) {
      const value = varint(bytes, at)
      if (!value) break
      at = value.end
      if (wire === 0) continue
      const field = bytes.subarray(at, at + value.value)
      at += value.value
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

function varint(bytes: Buffer, from: number): { value: number; end: number } | undefined {
  let value = 0
  for (let at = from, scale = 1; at < bytes.length && at < from + 5; at++, scale *= 128) {
    value += (bytes[at]! & 127) * scale
    if (bytes[at]! < 128) return { value, end: at + 1 }
  }
  return undefined
}

/** Returns the facts from outside the messages: the store's description, and the folder whose md5 is in the path. */
function fileRecord(unit: Unit, meta: RawRecord, skipped: Skipped[]): RawRecord {
  const report = ({ unreadable, path }: Unreadable) =>
    void skipped.push({ reason: `a meta.json: ${unreadable}`, where: path })
  // Newer versions write this file.
  const sidecar = objectAt(join(dirname(unit.path), "meta.json"), MAX_META_BYTES, report)
  const folder = string(sidecar?.cwd) ?? folderHashed(unit.path)
  const about = {
    folder,
    name: string(meta.name),
    model: string(meta.lastUsedModel),
    created_at: number(meta.createdAt) ?? number(sidecar?.createdAtMs),
    updated_at: number(sidecar?.updatedAtMs),
  }
  return { type: "dex-file", ...Object.fromEntries(Object.entries(about).filter(([, value]) => value !== undefined)) }
}

/** Finds the folder with this hash by hashing the folders that Cursor's other stores name. */
function folderHashed(path: string): string | undefined {
  const hash = basename(dirname(dirname(path)))
  const root = dirname(dirname(dirname(dirname(path))))
  for (const folder of knownFolders(root)) {
    if (createHash("md5").update(folder).digest("hex") === hash) return folder
  }
  return undefined
}

const EDITORS = [
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
    for (const editor of EDITORS) {
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
 * Decodes Cursor's name for a folder: the path without its first slash, with `-` for `/`, `.`, `_` and others. Checks which
 * folders exist. Returns undefined if none matches, or more than one.
 */
export function decodeFolder(
  encoded: string,
  platform: NodeJS.Platform = process.platform,
  top = "/",
): string | undefined {
  const wanted = plain(encoded)
  if (wanted === "") return undefined
  const drive = platform === "win32" ? /^([a-z])-(.+)$/i.exec(wanted) : undefined
  if (platform === "win32" && !drive) return undefined
  const found = new Set<string>()
  const open: { folder: string; rest: string }[] = [
    drive ? { folder: `${drive[1]!.toUpperCase()}:\\`, rest: drive[2]! } : { folder: top, rest: wanted },
  ]
  for (let searched = 0; open.length > 0 && searched < MAX_FOLDERS; searched++) {
    const { folder, rest } = open.pop()!
    for (const name of foldersIn(folder)) {
      const piece = plain(name)
      if (piece === "") continue
      if (rest === piece) found.add(real(join(folder, name)))
      else if (rest.startsWith(`${piece}-`))
        open.push({ folder: join(folder, name), rest: rest.slice(piece.length + 1) })
    }
  }
  return found.size === 1 && open.length === 0 ? [...found][0] : undefined
}

function plain(name: string): string {
  return name.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "")
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() || entry.isSymbolicLink() ? [entry.name] : [],
    )
  } catch {
    return [] // not a folder, or not readable
  }
}

function real(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path // a broken link still names the folder
  }
}
