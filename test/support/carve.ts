import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { zstdDecompressSync } from "node:zlib"

/**
 * The locations below a folder at which one of these texts can be read: as bytes of a file, or in a zstd frame, in used or free
 * pages. This is what somebody with a hex editor can find: freed pages of SQLite keep their bytes unless they are overwritten,
 * and a search for bytes cannot see compressed text.
 */
export function carve(folder: string, texts: readonly string[]): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
  return files.flatMap((path) => {
    const name = relative(folder, path)
    const bytes = readFileSync(path)
    const plain = texts.some((text) => bytes.includes(text)) ? [`${name}: bytes`] : []
    const unpacked = framesIn(path, bytes)
    return texts.some((text) => unpacked.some((frame) => frame.includes(text))) ? [...plain, `${name}: frame`] : plain
  })
}

const FRAME = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** The contents of every zstd frame that begins in a file: a database, its log, or any other file. */
function framesIn(path: string, bytes: Buffer): Buffer[] {
  const pages = path.endsWith("-wal")
    ? pagesOfLog(bytes, path)
    : bytes.toString("latin1", 0, 15) === "SQLite format 3"
      ? pagesOfDatabase(bytes)
      : undefined
  if (!pages) return startsIn(bytes).flatMap((at) => decodeFrame(bytes.subarray(at)) ?? [])
  return pages.all.flatMap((page) =>
    startsIn(page).flatMap((at) =>
      [...possibleFrames(page.subarray(at), pages)].flatMap((frame) => decodeFrame(frame) ?? []),
    ),
  )
}

function startsIn(bytes: Buffer): number[] {
  const starts: number[] = []
  for (let at = bytes.indexOf(FRAME); at >= 0; at = bytes.indexOf(FRAME, at + 1)) starts.push(at)
  return starts
}

type Pages = { all: Buffer[]; numbered: Map<number, Buffer> }

function pagesOfDatabase(bytes: Buffer): Pages {
  const size = bytes.readUInt16BE(16) === 1 ? 65_536 : bytes.readUInt16BE(16)
  const all = Array.from({ length: Math.floor(bytes.length / size) }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  )
  return { all, numbered: new Map(all.map((page, i) => [i + 1, page])) }
}

const LOG_HEADER = 32
const FRAME_HEADER = 24

/** The pages in a log. If a page was written several times, every version is examined; a chain continues in the last one. */
function pagesOfLog(bytes: Buffer, path: string): Pages {
  const below = pagesOfDatabase(readFileSync(path.slice(0, -"-wal".length)))
  if (bytes.length < LOG_HEADER) return { ...below, all: [] }
  const size = bytes.readUInt32BE(8)
  const all: Buffer[] = []
  for (let at = LOG_HEADER; at + FRAME_HEADER + size <= bytes.length; at += FRAME_HEADER + size) {
    const page = bytes.subarray(at + FRAME_HEADER, at + FRAME_HEADER + size)
    below.numbered.set(bytes.readUInt32BE(at), page)
    all.push(page)
  }
  return { all, numbered: below.numbered }
}

/**
 * The bytes that a frame may consist of: up to the end of its page or, if it did not fit there, up to any four bytes that could
 * name the page on which it continues. Nothing records where that was.
 */
function* possibleFrames(start: Buffer, { numbered }: Pages): Generator<Buffer> {
  yield start
  for (let end = FRAME.length; end + 4 <= start.length; end++) {
    let next = start.readUInt32BE(end)
    if (!numbered.has(next)) continue
    const pieces = [start.subarray(0, end)]
    const seen = new Set<number>()
    for (let page = numbered.get(next); page && !seen.has(next); page = numbered.get(next)) {
      seen.add(next)
      pieces.push(page.subarray(4))
      next = page.readUInt32BE(0)
    }
    yield Buffer.concat(pieces)
  }
}

/** The decompressed complete blocks of a frame. Undefined if there are none, or if the bytes are not a frame. */
function decodeFrame(bytes: Buffer): Buffer | undefined {
  const frame = completeBlocks(bytes)
  try {
    return frame && zstdDecompressSync(frame)
  } catch {
    return undefined // not a frame, or pages that do not belong together
  }
}

/** RFC 8878, 3.1.1: a header of 2 to 14 bytes, blocks with a header of 3 bytes each, and an optional checksum. */
function completeBlocks(bytes: Buffer): Buffer | undefined {
  if (bytes.length < 6) return undefined
  const descriptor = bytes[4]!
  const single = (descriptor & 0x20) !== 0
  const sizeBytes = [single ? 1 : 0, 2, 4, 8][descriptor >> 6]!
  let end = 5 + (single ? 0 : 1) + [0, 1, 2, 4][descriptor & 3]! + sizeBytes
  let last = -1
  while (end + 3 <= bytes.length) {
    const header = bytes.readUIntLE(end, 3)
    const type = (header >> 1) & 3
    const next = end + 3 + (type === 1 ? 1 : header >> 3)
    if (type === 3 || next > bytes.length) break
    last = end
    end = next
    if (header & 1) break
  }
  if (last < 0) return undefined
  const frame = Buffer.from(bytes.subarray(0, end))
  frame[4] = descriptor & ~0x04 // the checksum may be cut off
  frame[last] = frame[last]! | 1
  return frame
}
