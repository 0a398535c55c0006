import { statSync } from "node:fs"
import { crc32 } from "node:zlib"
import type { RawRecord } from "../../core/record.ts"
import { isDeeperThan, MAX_DEPTH, parseObject } from "../../core/record.ts"
import { readBytes } from "../../files/read-file.ts"
import type { Cursor, Reading } from "./connector.ts"
import { isSettled } from "./settled.ts"

/** A bigger file is counted as skipped: it would have to be held in memory whole. */
const MAX_BYTES = 256 << 20

/**
 * Reads a transcript that its agent rewrites whole at every change: all of its records, or none when it is as it was.
 */
export function readJsonFile(
  path: string,
  after: Cursor | undefined,
  recordsOf: (whole: RawRecord) => Iterable<RawRecord>,
  now = Date.now(),
): Reading {
  const { size, mtimeMs } = statSync(path)
  const before = after ?? { offset: 0, crc: 0 }
  if (size > MAX_BYTES) return nothing(before, `file of ${size} bytes, over the limit of ${MAX_BYTES}`)
  const content = readBytes(path, MAX_BYTES)
  const cursor = { offset: content.length, crc: crc32(content) }
  if (after && after.offset === cursor.offset && after.crc === cursor.crc) return nothing(after)
  const whole = parseObject(content.toString("utf8").replace(/^\uFEFF/, ""))
  if (!whole) {
    if (isSettled(mtimeMs, now)) return nothing(cursor, "not a whole JSON object")
    return { ...nothing(before), end: () => waiting(before) } // somebody may still be writing it
  }
  if (isDeeperThan(whole, MAX_DEPTH)) return nothing(cursor, `nested deeper than ${MAX_DEPTH} levels`)
  return { mode: "replace", records: recordsOf(whole), end: () => ({ cursor, skipped: [], pending: false }) }
}

function nothing(cursor: Cursor, reason?: string): Reading {
  const skipped = reason === undefined ? [] : [{ reason, where: "whole file" }]
  return { mode: "append", records: [], end: () => ({ cursor, skipped, pending: false }) }
}

function waiting(cursor: Cursor) {
  return { cursor, skipped: [], pending: true }
}
