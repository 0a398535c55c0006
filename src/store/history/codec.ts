import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib"

/**
 * The size of a block in characters. Larger blocks compress better: 64 kB to 0.25 of their size, single parts of messages only to
 * 0.40. But with larger blocks, reading one message takes longer.
 */
const BLOCK_CHARS = 64 << 10
/**
 * The largest size to which a block may unpack, in bytes. dex's own blocks are much smaller: they exceed BLOCK_CHARS by at most
 * one line, and a line has at most a few megabytes.
 */
export const MAX_BLOCK_BYTES = 256 << 20

/** Compressed JSON lines. */
export type Block = { lines: number; bytes: number; data: Buffer }

/** Packs JSON lines into blocks of about `blockChars` each, in order. */
export function packLines(lines: Iterable<string>, blockChars = BLOCK_CHARS): Block[] {
  const blocks: Block[] = []
  let pending: string[] = []
  let chars = 0
  const flush = () => {
    if (pending.length === 0) return
    blocks.push(packBlock(pending))
    pending = []
    chars = 0
  }
  for (const line of lines) {
    pending.push(line)
    chars += line.length
    if (chars >= blockChars) flush()
  }
  flush()
  return blocks
}

/**
 * The zstd settings. The checksum adds four bytes per block; without it, 901 of 1,440 blocks with one flipped bit decoded to
 * different text.
 */
const ZSTD_OPTIONS = { params: { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_checksumFlag]: 1 } }

export function packBlock(lines: string[]): Block {
  const plain = encode(lines)
  return { lines: lines.length, bytes: plain.length, data: zstdCompressSync(plain, ZSTD_OPTIONS) }
}

/** Encodes line by line: in a joined string, one character beyond Latin-1 makes encoding the block 3 × slower (measured). */
function encode(lines: string[]): Buffer {
  const maxBytes = lines.reduce((sum, line) => sum + line.length * 3 + 1, 0)
  const bytes = Buffer.allocUnsafe(maxBytes)
  let end = 0
  for (const line of lines) {
    if (end > 0) bytes[end++] = 10
    end += bytes.write(line, end, "utf8")
  }
  return bytes.subarray(0, end)
}

/**
 * The zstd settings for unpacking. With this chunk size, most blocks are decompressed in one chunk. Node's 16 kB chunks take a
 * quarter longer.
 */
const UNZSTD_OPTIONS = { maxOutputLength: MAX_BLOCK_BYTES, chunkSize: 160 << 10 }

/** Throws if the bytes differ from those that were written. */
export function unpackBlock(data: Uint8Array): string[] {
  return unpackBytes(data).toString("utf8").split("\n")
}

/** Like `unpackBlock`, without decoding the text. */
export function unpackBytes(data: Uint8Array): Buffer {
  return zstdDecompressSync(data, UNZSTD_OPTIONS)
}

/** Returns undefined if the bytes differ from those that were written, or if there are more than `maxLines` lines. */
export function readBlock(data: Uint8Array, maxLines = Number.POSITIVE_INFINITY): string[] | undefined {
  const plain = tryUnpack(data)
  return plain && (maxLines === Number.POSITIVE_INFINITY || countLines(plain) <= maxLines)
    ? plain.toString("utf8").split("\n")
    : undefined
}

function countLines(plain: Buffer): number {
  let lines = 1
  for (let newline = plain.indexOf(10); newline >= 0; newline = plain.indexOf(10, newline + 1)) lines++
  return lines
}

function tryUnpack(data: Uint8Array): Buffer | undefined {
  try {
    return unpackBytes(data)
  } catch {
    return undefined // zstd has many errors for damaged data; the difference does not matter here
  }
}

/** Returns the line of one message in a body block, without decoding the others. Undefined if it cannot be read. */
export function lineOfMessage(data: Uint8Array, number: number): string | undefined {
  const plain = tryUnpack(data)
  if (!plain) return undefined
  const mark = `{"n":${number},`
  const newline = plain.indexOf(`\n${mark}`)
  if (newline === -1 && plain.indexOf(mark) !== 0) return undefined
  const start = newline + 1
  const end = plain.indexOf(10, start)
  return plain.toString("utf8", start, end === -1 ? plain.length : end)
}

export function numberOfLine(line: string): number {
  return Number.parseInt(line.slice(5, 16), 10)
}
