import { readSync } from "node:fs"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { crc32, createInflateRaw } from "node:zlib"

// Reads zip files that someone else made. Names in them are only compared, never used as paths, and nothing is written. What a
// header says is checked against the file: sizes, places, checksums.

/** The reason why a zip file, or an entry of it, cannot be read, phrased so that it fits into a sentence. */
export class BadZip extends Error {}

export type ZipFile = { fd: number; bytes: number }

export type ZipEntry = {
  name: string
  rawName: Buffer
  /** The number of bytes after and before decompression. */
  bytes: number
  packedBytes: number
  method: number
  crc: number
  /** The position of the entry's header in the file. */
  offset: number
  /** The entry's data ends at this position at the latest. */
  limit: number
}

const STORED = 0
const DEFLATED = 8
const ENCRYPTED_FLAG = 1
const END_BYTES = 22
const MAX_COMMENT_BYTES = 0xffff
const HEADER_BYTES = 46
const LOCAL_HEADER_BYTES = 30
const CHUNK_BYTES = 1 << 20
/** The number of entries after which dex stops looking. The largest exports have some ten thousand. */
const MAX_ENTRIES = 2_000_000
const MAX_WANTED_ENTRIES = 1_000
/** Text rarely becomes more than 20 times as large when it is decompressed. An entry that would become 200 times as large is a bomb. */
const MAX_RATIO = 200
const SMALL_BYTES = 1 << 20

/** Returns the entries whose name is wanted, in the order of their places in the file. Throws a BadZip. */
export function zipEntries(zip: ZipFile, isWanted: (name: string) => boolean): ZipEntry[] {
  const wanted: ZipEntry[] = []
  for (const entry of allEntries(zip)) {
    if (!isWanted(entry.name)) continue
    wanted.push(entry)
    if (wanted.length > MAX_WANTED_ENTRIES) throw new BadZip(`has more than ${MAX_WANTED_ENTRIES} files of this name`)
  }
  wanted.sort((a, b) => a.offset - b.offset)
  for (const [i, { offset, packedBytes }] of wanted.entries()) {
    const next = wanted[i + 1]
    if (next && offset + LOCAL_HEADER_BYTES + packedBytes > next.offset)
      throw new BadZip("has files that share the same bytes, as only a zip bomb has")
  }
  return wanted
}

function* allEntries(zip: ZipFile): Generator<ZipEntry> {
  const { offset, bytes } = findDirectory(zip)
  const end = offset + bytes
  let position = offset
  let window: Buffer = Buffer.alloc(0)
  let at = 0
  const need = (count: number) => {
    if (at + count <= window.length) return
    if (position + count > end) throw new BadZip("has a damaged list of files")
    window = readAt(zip, position, Math.min(CHUNK_BYTES, end - position))
    at = 0
  }
  for (let count = 0; position < end; count++) {
    if (count === MAX_ENTRIES) throw new BadZip(`has more than ${MAX_ENTRIES} files`)
    need(HEADER_BYTES)
    if (window.readUInt32LE(at) !== 0x02014b50) throw new BadZip("has a damaged list of files")
    const nameBytes = window.readUInt16LE(at + 28)
    const extraBytes = window.readUInt16LE(at + 30)
    const length = HEADER_BYTES + nameBytes + extraBytes + window.readUInt16LE(at + 32)
    need(length)
    yield entryIn(window.subarray(at, at + length), nameBytes, extraBytes, offset)
    at += length
    position += length
  }
}

function entryIn(header: Buffer, nameBytes: number, extraBytes: number, directory: number): ZipEntry {
  const rawName = Buffer.from(header.subarray(HEADER_BYTES, HEADER_BYTES + nameBytes))
  const extra = header.subarray(HEADER_BYTES + nameBytes, HEADER_BYTES + nameBytes + extraBytes)
  const [bytes, packedBytes, offset] = withLargeNumbers(
    [header.readUInt32LE(24), header.readUInt32LE(20), header.readUInt32LE(42)],
    extra,
  )
  const isEncrypted = (header.readUInt16LE(8) & ENCRYPTED_FLAG) !== 0
  return {
    name: rawName.toString("utf8"),
    rawName,
    bytes: bytes!,
    packedBytes: packedBytes!,
    // No method has the number -1, so an encrypted entry is refused when it is read.
    method: isEncrypted ? -1 : header.readUInt16LE(10),
    crc: header.readUInt32LE(16),
    offset: offset!,
    limit: directory,
  }
}

/** Numbers that do not fit into 32 bits are in an extra field (zip64), in this order. */
function withLargeNumbers(numbers: number[], extra: Buffer): number[] {
  let large: Buffer = Buffer.alloc(0)
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2))
    if (extra.readUInt16LE(at) === 1) large = extra.subarray(at + 4, at + 4 + extra.readUInt16LE(at + 2))
  let at = 0
  return numbers.map((value) => {
    if (value !== 0xffffffff) return value
    if (at + 8 > large.length) throw new BadZip("has a damaged list of files")
    at += 8
    return largeNumber(large, at - 8)
  })
}

function largeNumber(buffer: Buffer, at: number): number {
  const value = buffer.readBigUInt64LE(at)
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new BadZip("has impossible sizes")
  return Number(value)
}

function findDirectory(zip: ZipFile): { offset: number; bytes: number } {
  const tailBytes = Math.min(zip.bytes, END_BYTES + MAX_COMMENT_BYTES)
  const tail = readAt(zip, zip.bytes - tailBytes, tailBytes)
  let at = tailBytes - END_BYTES
  while (
    at >= 0 &&
    !(tail.readUInt32LE(at) === 0x06054b50 && at + END_BYTES + tail.readUInt16LE(at + 20) === tailBytes)
  )
    at--
  if (at < 0) throw new BadZip("is incomplete: its end is missing")
  const end = zip.bytes - tailBytes + at
  let [bytes, offset] = [tail.readUInt32LE(at + 12), tail.readUInt32LE(at + 16)]
  if (bytes === 0xffffffff || offset === 0xffffffff || tail.readUInt16LE(at + 10) === 0xffff) {
    const locator = end >= 20 ? readAt(zip, end - 20, 20) : Buffer.alloc(20)
    if (locator.readUInt32LE(0) === 0x07064b50) {
      const record = readAt(zip, largeNumber(locator, 8), 56)
      if (record.readUInt32LE(0) !== 0x06064b50) throw new BadZip("has a damaged list of files")
      bytes = largeNumber(record, 40)
      offset = largeNumber(record, 48)
    }
  }
  if (offset + bytes > end) throw new BadZip("has a damaged list of files")
  return { offset, bytes }
}

/**
 * Yields the content of an entry, decompressed. `onRead` gets the number of compressed bytes as they are read. Throws a BadZip if
 * the content is not what its header says, after what was read up to there.
 */
export async function* zipContent(
  zip: ZipFile,
  entry: ZipEntry,
  onRead: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  if (entry.method === -1) throw new BadZip("is encrypted")
  if (entry.method !== STORED && entry.method !== DEFLATED)
    throw new BadZip("is compressed in a way that dex does not read")
  if (entry.bytes > SMALL_BYTES && entry.bytes > entry.packedBytes * MAX_RATIO)
    throw new BadZip(`would be more than ${MAX_RATIO} times as large as it is compressed, as only a zip bomb is`)
  const packed = packedContent(zip, entry, onRead)
  let bytes = 0
  let crc = 0
  try {
    for await (const chunk of entry.method === STORED ? packed : inflate(packed)) {
      bytes += chunk.length
      if (bytes > entry.bytes) throw new BadZip("is larger than it says")
      crc = crc32(chunk, crc)
      yield chunk
    }
  } catch (error) {
    throw error instanceof Error && "code" in error && String(error.code).startsWith("Z_")
      ? new BadZip("is damaged", { cause: error })
      : error
  }
  if (bytes !== entry.bytes) throw new BadZip("is shorter than it says")
  if (crc !== entry.crc) throw new BadZip("is damaged: its checksum is wrong")
}

function inflate(packed: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const inflater = createInflateRaw()
  // An error is thrown to whoever reads from the inflater.
  pipeline(Readable.from(packed), inflater).catch(() => {})
  return inflater
}

async function* packedContent(zip: ZipFile, entry: ZipEntry, onRead: (bytes: number) => void): AsyncGenerator<Buffer> {
  const header = readAt(zip, entry.offset, LOCAL_HEADER_BYTES)
  const nameBytes = header.readUInt16LE(26)
  let position = entry.offset + LOCAL_HEADER_BYTES
  if (header.readUInt32LE(0) !== 0x04034b50 || !readAt(zip, position, nameBytes).equals(entry.rawName))
    throw new BadZip("is not where the list of files says")
  position += nameBytes + header.readUInt16LE(28)
  const end = position + entry.packedBytes
  if (end > entry.limit) throw new BadZip("is incomplete")
  while (position < end) {
    const chunk = readAt(zip, position, Math.min(CHUNK_BYTES, end - position))
    position += chunk.length
    onRead(chunk.length)
    yield chunk
  }
}

function readAt({ fd, bytes }: ZipFile, position: number, length: number): Buffer {
  if (position < 0 || position + length > bytes) throw new BadZip("is incomplete")
  const buffer = Buffer.allocUnsafe(length)
  for (let done = 0; done < length; ) {
    const count = readSync(fd, buffer, done, length - done, position + done)
    if (count === 0) throw new BadZip("is incomplete")
    done += count
  }
  return buffer
}
