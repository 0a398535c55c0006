import { closeSync, fstatSync, openSync, readFileSync, readSync, writeSync } from "node:fs"
import { openSqlite } from "../../src/store/sqlite/engine.ts"

// The positions of stored values in a SQLite file, so that a test can flip a bit of exactly one.

export type StoredRow = {
  table: string
  /** The first value of the row's key: its own number, or that of its owner. */
  owner: number | string
  /** For each value that takes space: its column, and the positions of its bytes in the file. */
  values: { column: number; places: Place[] }[]
}
export type Place = { at: number; length: number }

export type FileBytes = {
  rows: StoredRow[]
  /** Bytes of SQLite's own structures, by kind. */
  structure: Map<Structure, Place[]>
}

/** `head`: the file's header; `chain`: the number of the page on which a row continues. */
export type Structure = "head" | "schema" | "inner page" | "leaf page" | "row head" | "index" | "chain" | "free list"

const PAGE = 4096

/** Reads a complete, undamaged file. `rowid` tables store their first column as the row's number. */
export function bytesOf(path: string, tables: readonly string[]): FileBytes {
  const db = openSqlite(path, { readonly: true })
  const pages = db
    .prepare("select name, pageno, pagetype from dbstat where pagetype <> 'overflow' order by pageno")
    .all() as { name: string; pageno: number; pagetype: string }[]
  db.close()
  const file = readFileSync(path)
  const rows: StoredRow[] = []
  const structure = new Map<Structure, Place[]>([["head", [{ at: 0, length: 100 }]]])
  const later: [kind: Structure, at: number, length: number][] = []
  for (const { name, pageno } of pages) {
    const base = (pageno - 1) * PAGE
    const start = base + (pageno === 1 ? 100 : 0)
    const kind = file[start]!
    const isInner = kind === 2 || kind === 5
    const count = file.readUInt16BE(start + 3)
    const list = start + (isInner ? 12 : 8)
    const isTable = tables.includes(name)
    const isSchema = name === "sqlite_schema"
    later.push([isSchema ? "schema" : isInner ? "inner page" : "leaf page", start, list - start + 2 * count])
    for (let i = 0; i < count; i++) {
      const cell = base + file.readUInt16BE(list + 2 * i)
      if (isInner) later.push(["inner page", cell, 4])
      if (kind === 5) continue
      const begin = cell + (isInner ? 4 : 0)
      const row = rowAt(file, begin, kind === 13, name)
      if (isTable) rows.push(row.row)
      // Bytes that are not a value of a table: the row's length and number, the types of its values, indexes.
      later.push([isSchema ? "schema" : isTable ? "row head" : "index", begin, row.headEnd - begin])
      if (!isTable) later.push([isSchema ? "schema" : "index", row.headEnd, row.localEnd - row.headEnd])
      for (const at of row.links) later.push(["chain", at, 4])
    }
  }
  for (let page = file.readUInt32BE(32); page > 0; page = file.readUInt32BE((page - 1) * PAGE))
    later.push(["free list", (page - 1) * PAGE, 8 + 4 * file.readUInt32BE((page - 1) * PAGE + 4)])
  for (const [kind, places] of Map.groupBy(later, ([kind]) => kind))
    structure.set(
      kind,
      places.map(([, at, length]) => ({ at, length })).filter(({ length }) => length > 0),
    )
  return { rows, structure }
}

function rowAt(file: Buffer, cell: number, hasRowid: boolean, table: string) {
  let at = cell
  const next = () => {
    let value = 0
    for (;;) {
      const byte = file[at++]!
      value = value * 128 + (byte & 127)
      if (byte < 128) return value
    }
  }
  const length = next()
  const rowid = hasRowid ? next() : undefined
  const local = localBytes(length, hasRowid)
  const places: Place[] = [{ at, length: local }]
  const links: number[] = local < length ? [at + local] : []
  let left = length - local
  for (let page = left > 0 ? file.readUInt32BE(at + local) : 0; left > 0; ) {
    const from = (page - 1) * PAGE
    places.push({ at: from + 4, length: Math.min(left, PAGE - 4) })
    left -= Math.min(left, PAGE - 4)
    links.push(from)
    page = file.readUInt32BE(from)
  }
  const begin = at
  const headLength = next()
  const types: number[] = []
  while (at < begin + headLength) types.push(next())
  const values: StoredRow["values"] = []
  let offset = headLength
  let owner: number | string = rowid ?? -1
  for (const [column, type] of types.entries()) {
    const size = sizeOf(type)
    const own = cut(places, offset, size)
    if (size > 0) values.push({ column, places: own })
    if (column === 0 && rowid === undefined) owner = firstValue(file, type, own)
    offset += size
  }
  return { row: { table, owner, values }, headEnd: begin + headLength, localEnd: begin + local, links }
}

function firstValue(file: Buffer, type: number, places: Place[]): number | string {
  if (type === 8 || type === 9) return type - 8
  const [place] = places
  if (!place) return ""
  if (type >= 12) return file.toString("latin1", place.at, place.at + place.length)
  return place.length === 8 ? Number(file.readBigInt64BE(place.at)) : file.readIntBE(place.at, place.length)
}

function localBytes(length: number, isTable: boolean): number {
  const most = isTable ? PAGE - 35 : Math.floor(((PAGE - 12) * 64) / 255) - 23
  if (length <= most) return length
  const least = Math.floor(((PAGE - 12) * 32) / 255) - 23
  const local = least + ((length - least) % (PAGE - 4))
  return local <= most ? local : least
}

function sizeOf(type: number): number {
  return type >= 12 ? (type - (type % 2 === 0 ? 12 : 13)) / 2 : [0, 1, 2, 3, 4, 6, 8, 8, 0, 0][type]!
}

/** The places of `length` bytes from `offset` on. */
function cut(places: Place[], offset: number, length: number): Place[] {
  const found: Place[] = []
  let [skip, left] = [offset, length]
  for (const place of places) {
    const use = Math.min(left, Math.max(0, place.length - skip))
    if (use > 0) found.push({ at: place.at + skip, length: use })
    skip = Math.max(0, skip - place.length)
    left -= use
  }
  return found
}

/** The nth byte of some places. */
export function byteIn(places: readonly Place[], n: number): number {
  let left = n
  for (const { at, length } of places) {
    if (left < length) return at + left
    left -= length
  }
  throw new Error("There is no such byte")
}

export function countBytes(places: readonly Place[]): number {
  return places.reduce((sum, { length }) => sum + length, 0)
}

/** Flips one bit of a file in place. Flipping it again restores the file. */
export function flipBitAt(path: string, at: number, bit: number): void {
  const file = openSync(path, "r+")
  try {
    const byte = Buffer.alloc(1)
    if (at >= fstatSync(file).size || readSync(file, byte, 0, 1, at) !== 1) throw new Error(`${path} has no byte ${at}`)
    byte[0]! ^= 1 << bit
    writeSync(file, byte, 0, 1, at)
  } finally {
    closeSync(file)
  }
}
