import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib"

/**
 * A block is closed once it has this many characters. Larger blocks compress better: 64 kB shrink to 25 percent, a single part of
 * a message only to 40 percent. But the larger a block, the longer it takes to read one message from it.
 */
const BLOCK_CHARS = 64 << 10
/**
 * The maximum size of an unpacked block, in bytes. dex's own blocks are much smaller: they exceed BLOCK_CHARS by at most one
 * line, and a line is at most a few megabytes long.
 */
export const MAX_BLOCK_BYTES = 256 << 20

/** Compressed JSON lines. `bytes` is their size before compression. */
export type Block = { lineCount: number; bytes: number; data: Buffer }

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
  return { lineCount: lines.length, bytes: plain.length, data: zstdCompressSync(plain, ZSTD_OPTIONS) }
}

/**
 * Encodes line by line: if the lines were joined, one character beyond Latin-1 would make encoding the block three times slower
 * (measured).
 */
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
 * The zstd settings for unpacking. Most blocks fit into one chunk of this size. With Node's default of 16 kB, unpacking takes a
 * quarter longer.
 */
const UNZSTD_OPTIONS = { maxOutputLength: MAX_BLOCK_BYTES, chunkSize: 160 << 10 }

/** Returns the JSON lines of a block. Throws if the block is damaged. */
export function unpackBlock(data: Uint8Array): string[] {
  return unpackBytes(data).toString("utf8").split("\n")
}

/** Decompresses a block without decoding its text. Throws if the block is damaged. */
export function unpackBytes(data: Uint8Array): Buffer {
  return zstdDecompressSync(data, UNZSTD_OPTIONS)
}

/** Like `unpackBlock`, but returns undefined if the block is damaged or has more than `maxLines` lines. */
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
    return undefined // zstd reports damaged data with many different errors, which all mean the same here
  }
}

/**
 * Returns the line of one message in a body block without decoding the other lines, or undefined if the block is damaged or does
 * not contain the message.
 */
export function lineOfMessage(data: Uint8Array, number: number): string | undefined {
  const plain = tryUnpack(data)
  if (!plain) return undefined
  const prefix = `{"n":${number},`
  const newline = plain.indexOf(`\n${prefix}`)
  if (newline === -1 && plain.indexOf(prefix) !== 0) return undefined
  const start = newline + 1
  const end = plain.indexOf(10, start)
  return plain.toString("utf8", start, end === -1 ? plain.length : end)
}

export function numberOfLine(line: string): number {
  return Number.parseInt(line.slice(5, 16), 10)
}
