import type { RawRecord } from "../../core/record.ts"
import { parseObject } from "../../core/record.ts"

/** Looking for records costs at most this many times the line's length, whatever a hostile line holds. */
const WORK_PER_CHARACTER = 16

/**
 * The whole records inside a line that is not one: agents that crash or write concurrently leave half a record followed
 * by a whole one, two records without a newline between them, or a run of NULs where data should be.
 *
 * A record begins at `{"` and ends at its matching brace. Nested objects of a broken record also look like that, so of
 * all candidates only those are taken that are not inside another: we walk from the left and jump over what parsed.
 */
export function recoverRecords(line: string): RawRecord[] {
  const found: RawRecord[] = []
  let work = line.length * WORK_PER_CHARACTER
  for (const piece of line.split(/\0+/)) {
    let at = piece.indexOf('{"')
    while (at !== -1 && work > 0) {
      const end = endOfObject(piece, at)
      work -= (end === -1 ? piece.length : end) - at
      const record = end === -1 ? undefined : parseObject(piece.slice(at, end))
      if (record && looksWhole(record, piece, at, end)) {
        found.push(record)
        at = piece.indexOf('{"', end)
      } else at = piece.indexOf('{"', at + 1)
    }
  }
  return found
}

/** Where the object that begins at `start` ends, or -1. Braces inside strings do not count. */
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
 * Inside a compact record an object follows `:`, `[` or `,`, so `{"` after anything else begins a record. After one of
 * these it may be a fragment of a broken one: then it must end where the line does, or where the next record begins.
 */
function looksWhole(record: RawRecord, text: string, start: number, end: number): boolean {
  if (!hasFieldsOfARecord(record)) return false
  if (start === 0 || !":[, ".includes(text[start - 1]!)) return true
  const after = text.slice(end).trimStart()
  return after === "" || (after.startsWith("{") && text[start - 1] !== ":")
}

/** Less than two fields is a fragment of a broken record (`{"type":"text"}`), but for Gemini's `{"$set":…}`. */
function hasFieldsOfARecord(record: RawRecord): boolean {
  const [first, second] = Object.keys(record)
  return second !== undefined || first?.startsWith("$") === true
}
