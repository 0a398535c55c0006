import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from "node:fs"
import type { Cell } from "./correct.ts"

// Reads the records of a SQLite file page by page, without SQLite and without its trees: where those are damaged, the rows
// themselves mostly are not. The format is SQLite's own and documented (sqlite.org/fileformat2.html).

/** A row as it stands in the file. `rowid` where it is of a table that has one. */
export type FoundRow = { page: number; rowid?: number; cells: Cell[] }

export type Pages = {
  count: number
  /** The records that a page lists, and whether it is a whole page of a tree: of every kind of it there is just one. */
  records(page: number): { rows: FoundRow[]; isWhole: boolean }
  /**
   * What could be records of a page, whatever it lists: tries every byte, and every other value of a single bit in how a
   * record begins and where it goes on. Most of what it finds is nonsense.
   */
  guesses(page: number): Generator<FoundRow>
  /** The pages that an inner page of a tree points to. */
  children(page: number): number[]
  /** Pages that were read as the rest of a row. */
  chained: ReadonlySet<number>
  /** True where nothing was ever written, or all of it was deleted. */
  isEmpty(page: number): boolean
  close(): void
}

const LEAF_TABLE = 13
const LEAF_INDEX = 10
const INNER_INDEX = 2
const INNER_TABLE = 5
/** Nothing of ours has more columns, nor larger values. */
const MOST_COLUMNS = 64
const LARGEST = 256 << 20

export function openPages(path: string): Pages {
  const file = openSync(path, "r")
  const size = pageSizeOf(file)
  const wal = pagesInLog(`${path}-wal`, size)
  const count = Math.max(Math.floor(fstatSync(file).size / size), ...wal.keys(), 0)
  const read = (page: number): Buffer | undefined => {
    if (page < 1 || page > count) return undefined
    const logged = wal.get(page)
    if (logged) return logged
    const bytes = Buffer.alloc(size)
    return readSync(file, bytes, 0, size, (page - 1) * size) === size ? bytes : undefined
  }
  const chained = new Set<number>()
  const follow = (page: number) => {
    chained.add(page)
    return read(page)
  }
  return {
    count,
    chained,
    close: () => closeSync(file),
    isEmpty: (page) => read(page)?.every((byte) => byte === 0) ?? true,
    children: (page) => {
      const bytes = read(page)
      return bytes ? childrenOf(bytes, page === 1 ? 100 : 0) : []
    },
    records: (page) => {
      const bytes = read(page)
      if (!bytes) return { rows: [], isWhole: false }
      const start = page === 1 ? 100 : 0
      const kind = bytes[start]!
      const children = childrenOf(bytes, start)
      const cells = listedCells(bytes, start, kind)
      const found = cells.flatMap((at) => cellAt(bytes, at, kind, size, follow) ?? [])
      const used = found.reduce((sum, { local }) => sum + local + (kind === INNER_INDEX ? 4 : 0), 0)
      const isWhole =
        found.length === cells.length &&
        children.every((child) => child >= 1 && child <= count) &&
        (kind === INNER_TABLE || ([LEAF_TABLE, LEAF_INDEX, INNER_INDEX].includes(kind) && addsUp(bytes, start, used)))
      return { rows: found.map(({ row }) => ({ page, ...row })), isWhole }
    },
    *guesses(page) {
      const bytes = read(page)
      if (!bytes) return
      const start = page === 1 ? 100 : 0
      for (const kind of [LEAF_TABLE, LEAF_INDEX]) {
        for (let at = start; at < size - 4; at++) {
          const found = cellAt(bytes, at, kind, size, read)
          if (found) yield { page, ...found.row }
        }
      }
      const listed = [LEAF_TABLE, LEAF_INDEX, INNER_INDEX].flatMap((kind) =>
        listedCells(bytes, start, kind).map((at) => ({ at, kind })),
      )
      for (const { at, kind } of listed) {
        for (const found of withOneBit(bytes, at, kind, size, read)) yield { page, ...found.row }
      }
    },
  }
}

/** A row begins with its length, its number and the types of its values. */
const HEAD_BYTES = 48

/** The row with each bit flipped in turn that is not of a value: of its head, and of the numbers of the pages it goes on in. */
function* withOneBit(
  page: Buffer,
  at: number,
  kind: number,
  size: number,
  read: (page: number) => Buffer | undefined,
): Generator<NonNullable<ReturnType<typeof cellAt>>> {
  const tried = function* (bytes: Buffer, from: number, to: number, look: () => ReturnType<typeof cellAt>) {
    for (let bit = from * 8; bit < Math.min(to, bytes.length) * 8; bit++) {
      bytes[bit >> 3]! ^= 1 << (bit & 7)
      const found = look()
      bytes[bit >> 3]! ^= 1 << (bit & 7)
      if (found) yield found
    }
  }
  const chain: number[] = []
  const whole = cellAt(page, at, kind, size, (next) => {
    chain.push(next)
    return read(next)
  })
  yield* tried(page, at, at + HEAD_BYTES, () => cellAt(page, at, kind, size, read))
  const end = whole ? at + whole.local : localEnd(page, at, kind, size)
  yield* tried(page, end - 4, end, () => cellAt(page, at, kind, size, read))
  for (const link of chain.slice(0, MOST_LINKS)) {
    const bytes = read(link)
    if (!bytes) continue
    yield* tried(bytes, 0, 4, () => cellAt(page, at, kind, size, (next) => (next === link ? bytes : read(next))))
  }
}

/** A block of a hundred kilobytes takes twenty-five pages. */
const MOST_LINKS = 64

/** Where what stands of a row in its own page ends. */
function localEnd(page: Buffer, start: number, kind: number, size: number): number {
  const length = varint(page, start)
  const rowid = length && kind === LEAF_TABLE ? varint(page, start + length.bytes) : undefined
  if (!length) return start + 4
  const local = localBytes(length.value, size, kind === LEAF_TABLE)
  return start + length.bytes + (rowid?.bytes ?? 0) + local + (local < length.value ? 4 : 0)
}

/** Where the rows of a page begin, as it lists them. */
function listedCells(page: Buffer, start: number, kind: number): number[] {
  if (kind !== LEAF_TABLE && kind !== LEAF_INDEX && kind !== INNER_INDEX) return []
  const cells = page.readUInt16BE(start + 3)
  const list = start + (kind === INNER_INDEX ? 12 : 8)
  const listed: number[] = []
  for (let i = 0; i < cells && list + 2 * i + 2 <= page.length; i++) {
    // An inner page names a page before each of its rows.
    listed.push(page.readUInt16BE(list + 2 * i) + (kind === INNER_INDEX ? 4 : 0))
  }
  return listed
}

function childrenOf(page: Buffer, start: number): number[] {
  const kind = page[start]
  if (kind !== INNER_INDEX && kind !== INNER_TABLE) return []
  const cells = page.readUInt16BE(start + 3)
  const children = [page.readUInt32BE(start + 8)]
  for (let i = 0; i < cells && start + 14 + 2 * i <= page.length; i++) {
    const at = page.readUInt16BE(start + 12 + 2 * i)
    if (at + 4 <= page.length) children.push(page.readUInt32BE(at))
  }
  return children
}

function cellAt(
  page: Buffer,
  start: number,
  kind: number,
  size: number,
  read: (page: number) => Buffer | undefined,
): { row: Omit<FoundRow, "page">; local: number } | undefined {
  let at = start
  const length = varint(page, at)
  if (!length || length.value < 2 || length.value > LARGEST) return undefined
  at += length.bytes
  const hasRowid = kind === LEAF_TABLE
  const rowid = hasRowid ? varint(page, at) : undefined
  if (hasRowid && !rowid) return undefined
  at += rowid?.bytes ?? 0
  const local = localBytes(length.value, size, hasRowid)
  const payload = payloadAt(page, at, length.value, local, read)
  const cells = payload && cellsOf(payload)
  if (!cells) return undefined
  const taken = at - start + local + (local < length.value ? 4 : 0)
  return { row: { ...(rowid && { rowid: rowid.value }), cells }, local: Math.max(LEAST_CELL, taken) }
}

/** SQLite gives no row less room than this. */
const LEAST_CELL = 4

/** Whether rows, free places and what lies between make up all of the page's content: else it lists too few. */
function addsUp(page: Buffer, start: number, used: number): boolean {
  let free = page[start + 7]!
  let at = page.readUInt16BE(start + 1)
  while (at > 0 && at + 4 <= page.length && free < page.length) {
    free += page.readUInt16BE(at + 2)
    at = page.readUInt16BE(at)
  }
  return (page.readUInt16BE(start + 5) || 65_536) + used + free === page.length
}

/** How much of a row stands in its own page; the rest is in a chain of others. */
function localBytes(length: number, usable: number, isTable: boolean): number {
  const most = isTable ? usable - 35 : Math.floor(((usable - 12) * 64) / 255) - 23
  if (length <= most) return length
  const least = Math.floor(((usable - 12) * 32) / 255) - 23
  const local = least + ((length - least) % (usable - 4))
  return local <= most ? local : least
}

function payloadAt(
  page: Buffer,
  at: number,
  length: number,
  local: number,
  read: (page: number) => Buffer | undefined,
): Buffer | undefined {
  if (at + local + (local < length ? 4 : 0) > page.length) return undefined
  const first = page.subarray(at, at + local)
  if (local === length) return first
  // Only a row whose beginning makes sense is worth following.
  if (!headerOf(first, length)) return undefined
  const pieces = [first]
  let next = page.readUInt32BE(at + local)
  let left = length - local
  while (left > 0) {
    const more = read(next)
    if (!more) return undefined
    const piece = more.subarray(4, 4 + Math.min(left, more.length - 4))
    pieces.push(piece)
    left -= piece.length
    next = more.readUInt32BE(0)
  }
  return Buffer.concat(pieces)
}

/** The types of a record's values, if they fit its length. */
function headerOf(payload: Buffer, length: number): { types: number[]; bytes: number } | undefined {
  const header = varint(payload, 0)
  if (!header || header.value > payload.length || header.value < 2) return undefined
  const types: number[] = []
  let body = 0
  let at = header.bytes
  while (at < header.value) {
    const type = varint(payload, at)
    if (!type || types.length === MOST_COLUMNS || type.value === 10 || type.value === 11) return undefined
    types.push(type.value)
    body += sizeOfType(type.value)
    at += type.bytes
  }
  return at === header.value && header.value + body === length ? { types, bytes: header.value } : undefined
}

function cellsOf(payload: Buffer): Cell[] | undefined {
  const header = headerOf(payload, payload.length)
  if (!header) return undefined
  let at = header.bytes
  return header.types.map((type) => {
    const bytes = payload.subarray(at, at + sizeOfType(type))
    at += bytes.length
    return cellOf(type, bytes)
  })
}

function sizeOfType(type: number): number {
  if (type >= 12) return (type - (type % 2 === 0 ? 12 : 13)) / 2
  return [0, 1, 2, 3, 4, 6, 8, 8, 0, 0][type]!
}

/** Numbers as their text, as SQL would give them. */
function cellOf(type: number, bytes: Buffer): Cell {
  if (type === 0) return { type: "null" }
  if (type === 7) return { type: "real", bytes: Buffer.from(`${bytes.readDoubleBE(0)}`) }
  if (type === 8 || type === 9) return { type: "integer", bytes: Buffer.from(`${type - 8}`) }
  if (type >= 12) return { type: type % 2 === 0 ? "blob" : "text", bytes }
  const value = bytes.length === 8 ? bytes.readBigInt64BE(0) : bytes.readIntBE(0, bytes.length)
  return { type: "integer", bytes: Buffer.from(`${value}`) }
}

/** Undefined beyond the end, or where it is larger than any number that we write. */
function varint(bytes: Buffer, start: number): { value: number; bytes: number } | undefined {
  let value = 0
  for (let i = 0; i < 8; i++) {
    const byte = bytes[start + i]
    if (byte === undefined) return undefined
    value = value * 128 + (byte & 127)
    if (byte < 128) return value <= Number.MAX_SAFE_INTEGER ? { value, bytes: i + 1 } : undefined
  }
  return undefined
}

const USUAL_PAGE = 4096

/** As the header says; where that is damaged, what every history has. */
function pageSizeOf(file: number): number {
  const header = Buffer.alloc(100)
  readSync(file, header, 0, 100, 0)
  const size = header.readUInt16BE(16)
  const isRight = header.toString("latin1", 0, 15) === "SQLite format 3" && size >= 512 && (size & (size - 1)) === 0
  return isRight ? size : USUAL_PAGE
}

/** What was written and not yet brought into the file: the last state of each page as of the last whole transaction. */
function pagesInLog(path: string, size: number): Map<number, Buffer> {
  const pages = new Map<number, Buffer>()
  if (!existsSync(path)) return pages
  const log = readFileSync(path)
  if (log.length < 32) return pages
  const isLittle = (log.readUInt32BE(0) & 1) === 0
  let sum = checksum([0, 0], log.subarray(0, 24), isLittle)
  if (sum[0] !== log.readUInt32BE(24) || sum[1] !== log.readUInt32BE(28)) return pages
  let waiting = new Map<number, Buffer>()
  for (let at = 32; at + 24 + size <= log.length; at += 24 + size) {
    const head = log.subarray(at, at + 24)
    if (head.compare(log, 16, 24, 8, 16) !== 0) break // of an earlier round
    sum = checksum(checksum(sum, head.subarray(0, 8), isLittle), log.subarray(at + 24, at + 24 + size), isLittle)
    if (sum[0] !== head.readUInt32BE(16) || sum[1] !== head.readUInt32BE(20)) break
    waiting.set(head.readUInt32BE(0), log.subarray(at + 24, at + 24 + size))
    if (head.readUInt32BE(4) === 0) continue
    for (const [page, bytes] of waiting) pages.set(page, bytes)
    waiting = new Map()
  }
  return pages
}

function checksum([a, b]: [number, number], bytes: Buffer, isLittle: boolean): [number, number] {
  for (let at = 0; at < bytes.length; at += 8) {
    a = (a + (isLittle ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at)) + b) >>> 0
    b = (b + (isLittle ? bytes.readUInt32LE(at + 4) : bytes.readUInt32BE(at + 4)) + a) >>> 0
  }
  return [a, b]
}
