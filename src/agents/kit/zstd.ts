import { closeSync, mkdirSync, mkdtempSync, openSync, readSync, rmSync, statSync, writeSync } from "node:fs"
import { join } from "node:path"
import { Writable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createZstdDecompress, zstdDecompressSync } from "node:zlib"
import { codeOf } from "../../core/error.ts"
import { openFile } from "../../core/read-file.ts"
import type { RawRecord } from "../../core/record.ts"
import type { Cursor, Reading, Scratch } from "./connector.ts"
import { type JsonlOptions, readJsonl } from "./jsonl.ts"

const MAX_DECOMPRESSED_BYTES = 2 ** 31
/**
 * The maximum ratio of decompressed to compressed size. Transcripts have a ratio of ten to thirty; a file with a much higher
 * ratio is an attempt to fill the disk.
 */
const MAX_RATIO = 100
const ALWAYS_ALLOWED_BYTES = 64 << 20

/** A decompressed file. If both `problem` and `path` are set, the original is damaged, and `path` contains its readable part. */
export type DecompressedFile = { path?: string; problem?: string; remove: () => void }

/**
 * Decompresses a file into a new folder below `scratch`. `remove` deletes the new folder. Rejects if the file is missing or
 * the disk is full. Errors in the file's content are returned as `problem`.
 */
export async function decompressZstd(source: string, scratch: string | undefined): Promise<DecompressedFile> {
  if (scratch === undefined) throw new Error("there is no folder to decompress it into")
  mkdirSync(scratch, { recursive: true, mode: 0o700 })
  const folder = mkdtempSync(join(scratch, "zstd-"))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  const path = join(folder, "content")
  let sizeProblem: string | undefined
  const open: number[] = []
  try {
    const { fd, stat } = openFile(source, { maxBytes: MAX_DECOMPRESSED_BYTES })
    open.push(fd)
    const maxBytes = Math.min(MAX_DECOMPRESSED_BYTES, Math.max(ALWAYS_ALLOWED_BYTES, stat.size * MAX_RATIO))
    const output = openSync(path, "wx", 0o600)
    open.push(output)
    let bytes = 0
    // Writes at once: what a stream still holds when the file turns out to be damaged would be lost.
    const writer = new Writable({
      write(chunk: Buffer, _encoding, done) {
        bytes += chunk.length
        if (bytes > maxBytes) {
          sizeProblem = `decompresses to more than ${maxBytes} bytes`
          return done(new Error(sizeProblem))
        }
        try {
          for (let at = 0; at < chunk.length; ) at += writeSync(output, chunk, at)
          done()
        } catch (error) {
          done(error as Error)
        }
      },
    })
    await pipeline(piecesOfFrames(fd, stat.size), createZstdDecompress(), writer)
    return { path, remove }
  } catch (error) {
    if (error instanceof Error && "syscall" in error) {
      remove()
      throw isFull(error)
        ? new Error(`there is no room to decompress it (${scratch}). Free some space, then sync again`)
        : error
    }
    const written = statSync(path, { throwIfNoEntry: false })
    const problem = sizeProblem ?? `not readable as zstd: ${error instanceof Error ? error.message : String(error)}`
    return sizeProblem === undefined && written ? { path, problem, remove } : { problem, remove }
  } finally {
    for (const fd of open) closeSync(fd)
  }
}

const PIECE_BYTES = 1 << 16

/**
 * Yields the bytes of a file in pieces, none of which belongs to two frames: Node ends a stream at the end of a frame if more bytes
 * follow in the same piece. Agents that append to a compressed file write one frame each time.
 */
function* piecesOfFrames(fd: number, size: number): Generator<Buffer> {
  let headersLeft = MAX_HEADERS
  const readHeader = (offset: number, length: number) => {
    if (headersLeft-- <= 0) throw new Error(`more than ${MAX_HEADERS} frames and blocks`)
    return bytesAt(fd, offset, length)
  }
  for (let start = 0; start < size; ) {
    const end = Math.min(endOfFrame(readHeader, start) ?? size, size)
    while (start < end) {
      const piece = bytesAt(fd, start, Math.min(PIECE_BYTES, end - start))
      if (piece.length === 0) return
      yield piece
      start += piece.length
    }
  }
}

/** The maximum number of frames and blocks. A file that consists only of their headers would otherwise take hours. */
const MAX_HEADERS = 50_000
const FRAME = 0xfd2fb528
const SKIPPABLE_FRAME = 0x184d2a5 // without its last four bits
const ID_BYTES = [0, 1, 2, 4]
const SIZE_BYTES = [0, 2, 4, 8]
const RUN_BLOCK = 1

/** Returns the end of the frame that begins at an offset, or undefined if the file ends before that, or if there is no frame. */
function endOfFrame(readHeader: (offset: number, length: number) => Buffer, start: number): number | undefined {
  const header = readHeader(start, 8)
  if (header.length < 8) return undefined
  const magic = header.readUInt32LE()
  if (magic >>> 4 === SKIPPABLE_FRAME) return start + 8 + header.readUInt32LE(4)
  if (magic !== FRAME) return undefined
  const flags = header[4]!
  const isSingleSegment = (flags & 32) !== 0
  const sizeBytes = SIZE_BYTES[flags >>> 6] || (isSingleSegment ? 1 : 0)
  let offset = start + 5 + (isSingleSegment ? 0 : 1) + ID_BYTES[flags & 3]! + sizeBytes
  for (let isLast = false; !isLast; ) {
    const block = readHeader(offset, 3)
    if (block.length < 3) return undefined
    const bits = block.readUIntLE(0, 3)
    isLast = (bits & 1) === 1
    offset += 3 + (((bits >>> 1) & 3) === RUN_BLOCK ? 1 : bits >>> 3)
  }
  return offset + ((flags & 4) === 0 ? 0 : 4)
}

function bytesAt(fd: number, offset: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  return bytes.subarray(0, readSync(fd, bytes, 0, length, offset))
}

function isFull(error: Error): boolean {
  return ["ENOSPC", "EDQUOT"].includes(codeOf(error))
}

/** Reads compressed JSON lines. The cursor counts decompressed bytes, so it stays valid when an agent compresses its file. */
export async function readZstdLines(
  source: string,
  strip: JsonlOptions["strip"],
  after?: Cursor,
  scratch?: Scratch,
): Promise<Reading> {
  const { path, problem, remove } = await decompressZstd(source, scratch)
  const damage = problem === undefined ? [] : [{ reason: problem, where: "the file" }]
  if (path === undefined) {
    remove()
    const cursor = after ?? { offset: 0, crc: 0 }
    return { mode: "append", records: [], end: () => ({ cursor, skipped: damage, pending: false }) }
  }
  // nobody is writing to the decompressed copy, so its last line is complete, with or without a newline
  const reading = readJsonl(path, after, { strip, now: Number.MAX_SAFE_INTEGER })
  function* recordsThenRemove(): Generator<RawRecord> {
    try {
      yield* reading.records
    } finally {
      remove()
    }
  }
  const end = () => {
    remove()
    const result = reading.end()
    return { ...result, skipped: [...damage, ...result.skipped] }
  }
  return { mode: reading.mode, records: recordsThenRemove(), end }
}

/** Like `decompressZstd`, for bytes in memory. Throws if they are not zstd, or if the result would be too large. */
export function decompressZstdBytes(bytes: Uint8Array): Buffer {
  const maxOutputLength = Math.min(MAX_DECOMPRESSED_BYTES, Math.max(ALWAYS_ALLOWED_BYTES, bytes.length * MAX_RATIO))
  return zstdDecompressSync(bytes, { maxOutputLength })
}
