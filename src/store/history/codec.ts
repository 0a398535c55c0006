import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib"

/** Larger pieces compress better (0.40 of the text part by part, 0.25 in 64 kB pieces) and cost more to read one of. */
const BLOCK_CHARS = 64 << 10
/** A block never holds more than one piece past its size, and a piece is at most a few megabytes. */
export const MAX_BLOCK_BYTES = 256 << 20

/** JSON lines, compressed. */
export type Block = { lines: number; bytes: number; data: Buffer }

/** Packs JSON lines into blocks of about `blockChars` each. Order is kept. */
export function packLines(lines: Iterable<string>, blockChars = BLOCK_CHARS): Block[] {
  const blocks: Block[] = []
  let held: string[] = []
  let chars = 0
  const flush = () => {
    if (held.length === 0) return
    blocks.push(packBlock(held))
    held = []
    chars = 0
  }
  for (const line of lines) {
    held.push(line)
    chars += line.length
    if (chars >= blockChars) flush()
  }
  flush()
  return blocks
}

/** The checksum is four bytes of the block: of 1,440 blocks with one bit flipped, 901 gave other text without it. */
const PACKING = { params: { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_checksumFlag]: 1 } }

export function packBlock(lines: string[]): Block {
  const plain = encode(lines)
  return { lines: lines.length, bytes: plain.length, data: zstdCompressSync(plain, PACKING) }
}

/** Line by line: joined first, one character beyond Latin-1 would make the whole block slow to encode (3 × measured). */
function encode(lines: string[]): Buffer {
  const most = lines.reduce((sum, line) => sum + line.length * 3 + 1, 0)
  const bytes = Buffer.allocUnsafe(most)
  let end = 0
  for (const line of lines) {
    if (end > 0) bytes[end++] = 10
    end += bytes.write(line, end, "utf8")
  }
  return bytes.subarray(0, end)
}

/** Most blocks come out in one piece: in Node's pieces of 16 kB it takes a quarter longer. */
const UNPACKING = { maxOutputLength: MAX_BLOCK_BYTES, chunkSize: 160 << 10 }

/** Throws where the bytes are not what was written. */
export function unpackBlock(data: Uint8Array): string[] {
  return unpackBytes(data).toString("utf8").split("\n")
}

/** The same bytes, without decoding them. */
export function unpackBytes(data: Uint8Array): Buffer {
  return zstdDecompressSync(data, UNPACKING)
}

/** Undefined where the bytes are not what was written, or more lines than `most`. */
export function readBlock(data: Uint8Array, most = Number.POSITIVE_INFINITY): string[] | undefined {
  const plain = plainOf(data)
  return plain && (most === Number.POSITIVE_INFINITY || linesOf(plain) <= most)
    ? plain.toString("utf8").split("\n")
    : undefined
}

function linesOf(plain: Buffer): number {
  let lines = 1
  for (let at = plain.indexOf(10); at >= 0; at = plain.indexOf(10, at + 1)) lines++
  return lines
}

function plainOf(data: Uint8Array): Buffer | undefined {
  try {
    return unpackBytes(data)
  } catch {
    return undefined // which of zstd's many ways to say that it is damaged does not matter
  }
}

/** The line of one message in a body block, without decoding the others. Undefined where it cannot be read. */
export function lineOfMessage(data: Uint8Array, number: number): string | undefined {
  const plain = plainOf(data)
  if (!plain) return undefined
  const mark = `{"n":${number},`
  const before = plain.indexOf(`\n${mark}`)
  if (before === -1 && plain.indexOf(mark) !== 0) return undefined
  const start = before + 1
  const end = plain.indexOf(10, start)
  return plain.toString("utf8", start, end === -1 ? plain.length : end)
}

/** Every line of a body block begins with its message's number: `{"n":12,…`. */
export function numberOfLine(line: string): number {
  return Number.parseInt(line.slice(5, 16), 10)
}
