import { closeSync, readSync } from "node:fs"
import { crc32 } from "node:zlib"
import type { RawRecord } from "../../core/record.ts"
import { isDeeperThan, MAX_DEPTH, parseObject } from "../../core/record.ts"
import { openFile } from "../../files/read-file.ts"
import type { Cursor, Reading, Skipped } from "./connector.ts"
import { recoverRecords } from "./recover.ts"
import { isSettled } from "./settled.ts"

const CHUNK_BYTES = 1 << 20
/** A larger transcript is not read at all: going over it would take longer than anybody waits for a sync. */
const MAX_FILE_BYTES = 2 ** 32
/** A longer line is counted as skipped; the longest genuine one seen is half a megabyte. */
const MAX_LINE_BYTES = 64 << 20

export type JsonlOptions = {
  /**
   * Drops the bulk, or the whole record where it returns undefined. Runs before anything is kept. `chars` is the length
   * of the line: no text in the record is longer.
   */
  strip?: (record: RawRecord, chars: number) => RawRecord | undefined
  /** Lets a cheap look at the text spare the parser a record that `strip` would drop anyway. */
  wanted?: (line: string) => boolean
  /** Stands in for JSON.parse where bulk can be passed over; gives what `strip` would leave of the whole record. */
  parse?: (line: string) => RawRecord | undefined
  now?: number
}

/**
 * Reads the lines that follow a cursor. The cursor holds a checksum of all that was read before it, so a file that was
 * rewritten, truncated, rotated or edited in the middle is noticed and read from its beginning.
 *
 * Only what ends in a newline is consumed: a writer may be in the middle of the last line. Once the file has settled, a
 * last line that is a whole record is taken without one. Whole records inside a
 * damaged line (spliced, NUL-filled, missing newline) are recovered, and the damage is counted.
 */
export function readJsonl(path: string, after: Cursor | undefined, options: JsonlOptions = {}): Reading {
  const { strip, wanted, parse = parseObject, now = Date.now() } = options
  const start = after && prefixIsUnchanged(path, after) ? after : undefined
  let offset = start?.offset ?? 0
  let crc = start?.crc ?? 0
  let pending = false
  const skipped: Skipped[] = []

  function* records(): Generator<RawRecord> {
    const { fd, stat } = openFile(path, { maxBytes: MAX_FILE_BYTES })
    try {
      const settled = isSettled(stat.mtimeMs, now)
      for (const line of linesFrom(fd, offset, crc)) {
        if (!line.terminated && !(settled && isWhole(line.text))) {
          // However it ends, it is not taken.
          if (line.text === undefined) skip(tooLong(line.bytes))
          else pending = true
          continue
        }
        yield* recordsIn(line.text, line.bytes)
        crc = line.crc
        offset += line.bytes
      }
    } finally {
      closeSync(fd)
    }
  }

  function recordsIn(text: string | undefined, bytes: number): RawRecord[] {
    if (text === undefined) {
      skip(tooLong(bytes))
      return []
    }
    if (isBlank(text) || (wanted && !wanted(text))) return []
    const whole = parse(text)
    if (whole) return keep(whole, text.length)
    const recovered = recoverRecords(text)
    skip(recovered.length > 0 ? `damaged line (records recovered: ${recovered.length})` : "damaged line")
    return recovered.flatMap((record) => keep(record, text.length))
  }

  function keep(record: RawRecord, chars: number): RawRecord[] {
    if (isDeeperThan(record, MAX_DEPTH)) {
      skip(`nested deeper than ${MAX_DEPTH} levels`)
      return []
    }
    const stripped = strip ? strip(record, chars) : record
    return stripped ? [stripped] : []
  }

  function skip(reason: string): void {
    skipped.push({ reason, where: `byte ${offset}` })
  }

  return {
    mode: start || !after ? "append" : "replace",
    records: records(),
    end: () => ({ cursor: { offset, crc }, skipped, pending }),
  }
}

/** `text` is undefined for a line past the limit; `crc` covers the file up to the line's end. */
type Line = { text: string | undefined; bytes: number; terminated: boolean; crc: number }

/** Every line from an offset on, its newline counted in `bytes`. Holds one line at a time, and none past the limit. */
function* linesFrom(fd: number, from: number, crcBefore: number): Generator<Line> {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  let pieces: Buffer[] = []
  let bytes = 0
  let crc = crcBefore
  const add = (piece: Buffer) => {
    crc = crc32(piece, crc)
    bytes += piece.length
    if (bytes <= MAX_LINE_BYTES) pieces.push(piece)
    else pieces = []
  }
  const finish = (terminated: boolean, isFirst: boolean): Line => {
    const line = {
      text: bytes > MAX_LINE_BYTES ? undefined : decode(pieces, terminated, isFirst),
      bytes,
      terminated,
      crc,
    }
    pieces = []
    bytes = 0
    return line
  }
  let isFirst = from === 0
  for (let position = from; ; ) {
    const got = readSync(fd, chunk, 0, CHUNK_BYTES, position)
    if (got === 0) break
    position += got
    let begin = 0
    for (let end = chunk.indexOf(10); end !== -1 && end < got; end = chunk.indexOf(10, begin)) {
      add(chunk.subarray(begin, end + 1))
      yield finish(true, isFirst)
      isFirst = false
      begin = end + 1
    }
    if (begin < got) add(Buffer.from(chunk.subarray(begin, got)))
  }
  if (bytes > 0) yield finish(false, isFirst)
}

function decode(pieces: Buffer[], terminated: boolean, isFirst: boolean): string {
  const whole = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
  const text = whole.toString("utf8", 0, terminated ? whole.length - 1 : whole.length)
  return isFirst && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

function prefixIsUnchanged(path: string, cursor: Cursor): boolean {
  const { fd, stat } = openFile(path, { maxBytes: MAX_FILE_BYTES })
  try {
    if (stat.size < cursor.offset) return false
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    let crc = 0
    for (let position = 0; position < cursor.offset; ) {
      const got = readSync(fd, chunk, 0, Math.min(CHUNK_BYTES, cursor.offset - position), position)
      if (got === 0) return false
      crc = crc32(chunk.subarray(0, got), crc)
      position += got
    }
    return crc === cursor.crc
  } finally {
    closeSync(fd)
  }
}

function tooLong(bytes: number): string {
  return `line of ${bytes} bytes, over the limit of ${MAX_LINE_BYTES}`
}

function isWhole(text: string | undefined): boolean {
  return text !== undefined && parseObject(text) !== undefined
}

function isBlank(text: string): boolean {
  return text.trim() === ""
}
