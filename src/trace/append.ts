import { closeSync, constants, fstatSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs"
import { codeOf } from "../core/error.ts"
import { clipText, type SkippedRow, summaryOf, type Trace, type TraceRow } from "../core/trace.ts"
import { fileNumbers, filePath, LIMITS, type Limits } from "./files.ts"

/** The maximum number of attempts. An attempt fails only if a file is created or removed meanwhile, so few are needed. */
const MAX_ATTEMPTS = 100

/** Appends a trace exactly once and in one piece, even if other processes append too. Throws if it cannot be written. */
export function appendTrace(dir: string, trace: Trace, limits: Limits = LIMITS): void {
  const line = traceLine(trace, limits.lineBytes)
  for (let i = 0; i < MAX_ATTEMPTS; i++) if (appendLine(dir, line, limits)) return
  throw new Error(`${dir} changes too quickly to write a trace`)
}

function appendLine(dir: string, line: Buffer, limits: Limits): boolean {
  const numbers = fileNumbers(dir)
  const newest = numbers.at(-1)
  if (newest === undefined) {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    createFile(dir, 1)
    return false
  }
  const fd = openExisting(filePath(dir, newest))
  if (fd === undefined) return false
  try {
    const { size } = fstatSync(fd)
    if (size > 0 && size + line.length > limits.fileBytes) {
      createFile(dir, newest + 1)
      for (const number of numbers)
        if (number <= newest + 1 - limits.files) rmSync(filePath(dir, number), { force: true })
      return false
    }
    writeSync(fd, line)
    return fstatSync(fd).nlink > 0 // false if another process removed this file after it was opened; the caller then tries again
  } finally {
    closeSync(fd)
  }
}

/** Creates an empty file. If several processes create the same one, they share it. */
function createFile(dir: string, number: number): void {
  closeSync(openSync(filePath(dir, number), "a", 0o600))
}

/**
 * Opens a file for appending. Returns undefined if it does not exist: a file that another process has just removed must not be
 * created again.
 */
function openExisting(path: string): number | undefined {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_APPEND)
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  }
}

const MAX_QUERY_CHARS = 1_000
const MAX_ARG_CHARS = 300
const MAX_ARG_ITEMS = 20
const MAX_MESSAGE_CHARS = 400
const MAX_ROWS = 100
const MAX_TERMS = 16
/** The maximum share of the free space that the rows of the ranking may use. The rest is for the skipped rows. */
const MAX_RANKING_SHARE = 0.75

/**
 * Encodes a trace as a line of at most `maxBytes` bytes. Rows that do not fit are left out, but the totals count them. The line
 * begins with a newline, because the previous write may have been cut short when the disk was full or the process was killed.
 */
export function traceLine(trace: Trace, maxBytes: number): Buffer {
  const head = { ...clipTexts(trace), ranking: [] as TraceRow[], skipped: [] as SkippedRow[] }
  const freeBytes = maxBytes - 2 - jsonBytes(head)
  if (freeBytes < 0) return encode({ ...withoutLongFields(head), truncation: { trace: "too long to be kept" } })
  const ranking = rowsThatFit(trace.ranking.slice(0, MAX_ROWS).map(clipRow), freeBytes * MAX_RANKING_SHARE)
  const skipped = rowsThatFit(trace.skipped.slice(0, MAX_ROWS), freeBytes - ranking.bytes)
  return encode({ ...head, ranking: ranking.rows, skipped: skipped.rows })
}

/** Removes the fields that can be too long for a line even without rows. */
function withoutLongFields({ args: _, truncation: __, query: ___, ...rest }: Trace): Trace {
  return { ...rest, args: {}, inputs: {}, budgets: {} }
}

function encode(trace: Trace): Buffer {
  return Buffer.from(`\n${JSON.stringify(trace)}\n`)
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}

function rowsThatFit<T>(rows: T[], maxBytes: number): { rows: T[]; bytes: number } {
  let bytes = 0
  for (const [i, row] of rows.entries()) {
    const total = bytes + jsonBytes(row) + 1
    if (total > maxBytes) return { rows: rows.slice(0, i), bytes }
    bytes = total
  }
  return { rows, bytes }
}

function clipTexts(trace: Trace): Trace {
  const query = trace.query === undefined ? undefined : clipText(trace.query, MAX_QUERY_CHARS)
  const truncation = query !== trace.query ? { query_characters: trace.query!.length } : undefined
  return {
    ...trace,
    args: clipValues(trace.args) as Record<string, unknown>,
    query,
    truncation:
      trace.truncation || truncation ? { ...(clipValues(trace.truncation ?? {}) as object), ...truncation } : undefined,
    project: clipText(trace.project, MAX_ARG_CHARS),
    error: trace.error && {
      code: clipText(trace.error.code, 40),
      message: clipText(trace.error.message, MAX_MESSAGE_CHARS),
    },
  }
}

function clipValues(value: unknown): unknown {
  if (typeof value === "string") return clipText(value, MAX_ARG_CHARS)
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.slice(0, MAX_ARG_ITEMS).map(clipValues)
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, clipValues(inner)]))
}

/**
 * Shortens a row. Puts the ref first, so that a line that is cut short never contains a summary without the ref by which the
 * line is found when the conversation is forgotten.
 */
function clipRow({ rank, ref, terms, summary, ...scores }: TraceRow): TraceRow {
  return { rank, ref, ...scores, terms: terms.slice(0, MAX_TERMS), summary: summaryOf(summary) }
}
