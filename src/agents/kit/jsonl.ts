import { closeSync, readSync } from "node:fs"
import { crc32 } from "node:zlib"
import { openFile } from "../../core/read-file.ts"
import { isDeeperThan, MAX_DEPTH, parseObject, type RawRecord } from "../../core/record.ts"
import type { Cursor, Reading, Skipped } from "./connector.ts"

const CHUNK_BYTES = 1 << 20
/** The size of the largest transcript that dex reads, in bytes. A larger one would take longer than anyone waits for a sync. */
const MAX_FILE_BYTES = 2 ** 32
/**
 * The length of the longest line that dex reads, in bytes. A longer one is counted as skipped. Genuine lines are much shorter:
 * the longest one known is half a megabyte.
 */
const MAX_LINE_BYTES = 64 << 20

export type JsonlOptions = {
  /**
   * Removes large, unneeded fields from a record before it is stored, or returns undefined to drop the record. `chars` is the
   * length of the line: no text in the record is longer.
   */
  strip?: (record: RawRecord, chars: number) => RawRecord | undefined
  /** A cheap check of the line, to avoid parsing a record that `strip` would drop anyway. */
  isWanted?: (line: string) => boolean
  /** Replaces JSON.parse with a faster parser, which may omit only what `strip` would remove anyway. */
  parse?: (line: string) => RawRecord | undefined
  now?: number
}

/**
 * Reads the lines after a cursor. The cursor has a checksum of everything before it, so a file that was rewritten,
 * truncated, rotated or edited in the middle is detected and read from the beginning.
 *
 * Only lines that end in a newline are consumed, because the agent may still be writing the last one. Once the file has
 * settled, a last line that is a complete record is also read. Complete records inside a damaged line (spliced,
 * NUL-filled, missing newline) are recovered, and the damage is counted.
 */
export function readJsonl(path: string, after: Cursor | undefined, options: JsonlOptions = {}): Reading {
  const { strip, isWanted, parse = parseObject, now = Date.now() } = options
  const start = after && prefixIsUnchanged(path, after) ? after : undefined
  let offset = start?.offset ?? 0
  let crc = start?.crc ?? 0
  let pending = false
  const skipped: Skipped[] = []

  function* records(): Generator<RawRecord> {
    const { fd, stat } = openFile(path, { maxBytes: MAX_FILE_BYTES })
    try {
      const isFileSettled = isSettled(stat.mtimeMs, now)
      for (const line of linesFrom(fd, offset, crc)) {
        if (!line.terminated && !(isFileSettled && isCompleteRecord(line.text))) {
          // The text is undefined if the line is too long.
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
    if (isBlank(text) || (isWanted && !isWanted(text))) return []
    const parsed = parse(text)
    if (parsed) return keep(parsed, text.length)
    const recoveredRecords = recoverRecords(text)
    skip(recoveredRecords.length > 0 ? `damaged line (records recovered: ${recoveredRecords.length})` : "damaged line")
    return recoveredRecords.flatMap((record) => keep(record, text.length))
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

/** A line of a file. `text` is undefined if the line is too long; `crc` covers the file up to the end of the line. */
type Line = { text: string | undefined; bytes: number; terminated: boolean; crc: number }

/**
 * Yields every line from an offset on; `bytes` includes the newline. Holds at most one line in memory, and drops the text of a
 * line that is longer than the limit.
 */
function* linesFrom(fd: number, from: number, crcBefore: number): Generator<Line> {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  let pieces: Buffer[] = []
  let bytes = 0
  let crc = crcBefore
  const addPiece = (piece: Buffer) => {
    crc = crc32(piece, crc)
    bytes += piece.length
    if (bytes <= MAX_LINE_BYTES) pieces.push(piece)
    else pieces = []
  }
  const finishLine = (terminated: boolean, isFirst: boolean): Line => {
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
    const bytesRead = readSync(fd, chunk, 0, CHUNK_BYTES, position)
    if (bytesRead === 0) break
    position += bytesRead
    let begin = 0
    for (let end = chunk.indexOf(10); end !== -1 && end < bytesRead; end = chunk.indexOf(10, begin)) {
      addPiece(chunk.subarray(begin, end + 1))
      yield finishLine(true, isFirst)
      isFirst = false
      begin = end + 1
    }
    if (begin < bytesRead) addPiece(Buffer.from(chunk.subarray(begin, bytesRead)))
  }
  if (bytes > 0) yield finishLine(false, isFirst)
}

function decode(pieces: Buffer[], terminated: boolean, isFirst: boolean): string {
  const bytes = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
  const text = bytes.toString("utf8", 0, terminated ? bytes.length - 1 : bytes.length)
  return isFirst && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

function prefixIsUnchanged(path: string, cursor: Cursor): boolean {
  const { fd, stat } = openFile(path, { maxBytes: MAX_FILE_BYTES })
  try {
    if (stat.size < cursor.offset) return false
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    let crc = 0
    for (let position = 0; position < cursor.offset; ) {
      const bytesRead = readSync(fd, chunk, 0, Math.min(CHUNK_BYTES, cursor.offset - position), position)
      if (bytesRead === 0) return false
      crc = crc32(chunk.subarray(0, bytesRead), crc)
      position += bytesRead
    }
    return crc === cursor.crc
  } finally {
    closeSync(fd)
  }
}

function tooLong(bytes: number): string {
  return `line of ${bytes} bytes, over the limit of ${MAX_LINE_BYTES}`
}

function isCompleteRecord(text: string | undefined): boolean {
  return text !== undefined && parseObject(text) !== undefined
}

function isBlank(text: string): boolean {
  return text.trim() === ""
}

/**
 * The maximum number of characters that recovery examines, per character of the line. A hostile line could otherwise take
 * forever.
 */
const MAX_STEPS_PER_CHARACTER = 16

/**
 * Finds the complete records inside a damaged line. Agents that crash or write concurrently leave half a record followed by a
 * complete one, two records without a newline between them, or a run of NULs in place of data.
 * A record begins at `{"` and ends at its matching brace. A nested object of a broken record looks the same, so the scan goes
 * from left to right and skips what it has parsed: only outermost objects count.
 */
export function recoverRecords(line: string): RawRecord[] {
  const recoveredRecords: RawRecord[] = []
  let stepsLeft = line.length * MAX_STEPS_PER_CHARACTER
  for (const piece of line.split(/\0+/)) {
    let start = piece.indexOf('{"')
    while (start !== -1 && stepsLeft > 0) {
      const end = endOfObject(piece, start)
      stepsLeft -= (end === -1 ? piece.length : end) - start
      const record = end === -1 ? undefined : parseObject(piece.slice(start, end))
      if (record && looksComplete(record, piece, start, end)) {
        recoveredRecords.push(record)
        start = piece.indexOf('{"', end)
      } else start = piece.indexOf('{"', start + 1)
    }
  }
  return recoveredRecords
}

/** The end of the object that begins at `start`, or -1. Braces inside strings do not count. */
function endOfObject(text: string, start: number): number {
  let depth = 0
  let inString = false
  for (let i = start; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (inString) {
      if (code === 92) i++
      else if (code === 34) inString = false
    } else if (code === 34) inString = true
    else if (code === 123 || code === 91) depth++
    else if ((code === 125 || code === 93) && --depth === 0) return i + 1
  }
  return -1
}

/**
 * Whether an object is a complete record. Inside a record, an object follows `:`, `[`, `,` or a space, so `{"` after any other
 * character begins a new record. An object after one of these four characters may be a fragment of a broken record, so it must
 * extend to the end of the line or, if it does not follow `:`, to the next record.
 */
function looksComplete(record: RawRecord, text: string, start: number, end: number): boolean {
  if (!hasRecordFields(record)) return false
  if (start === 0 || !":[, ".includes(text[start - 1]!)) return true
  const after = text.slice(end).trimStart()
  return after === "" || (after.startsWith("{") && text[start - 1] !== ":")
}

/**
 * Returns false for an object with fewer than two fields, a fragment of a broken record (`{"type":"text"}`), except Gemini's
 * `{"$set":…}` and the `{"resourceSpans":…}` of traces.
 */
function hasRecordFields(record: RawRecord): boolean {
  const [first, second] = Object.keys(record)
  return second !== undefined || first?.startsWith("$") === true || first === "resourceSpans"
}

const SETTLED_MS = 60_000

/**
 * Whether the file has not changed for a minute, so that nobody is still writing to it. A date more than a minute in the future
 * also counts: the clock was set back, and waiting for that date could take years.
 */
export function isSettled(modifiedAt: number, now: number): boolean {
  return Math.abs(now - modifiedAt) > SETTLED_MS
}
