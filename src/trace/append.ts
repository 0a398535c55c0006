import { closeSync, constants, fstatSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs"
import { codeOf } from "../core/error.ts"
import { clipText, type SkippedRow, summaryOf, type Trace, type TraceRow } from "../core/trace.ts"
import { fileNumbers, filePath, LIMITS, type Limits } from "./files.ts"

/**
 * The most attempts to append. Other processes may create or remove files at any moment, but each of them makes progress, so few
 * attempts are needed.
 */
const MAX_TRIES = 100

/** Appends one trace completely and once, however many processes do the same. Throws if it cannot be written. */
export function appendTrace(dir: string, trace: Trace, limits: Limits = LIMITS): void {
  const line = traceLine(trace, limits.lineBytes)
  for (let i = 0; i < MAX_TRIES; i++) if (appendLine(dir, line, limits)) return
  throw new Error(`${dir} changes too quickly to write a trace`)
}

function appendLine(dir: string, line: Buffer, limits: Limits): boolean {
  const numbers = fileNumbers(dir)
  const newest = numbers.at(-1)
  if (newest === undefined) {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    begin(dir, 1)
    return false
  }
  const fd = openExisting(filePath(dir, newest))
  if (fd === undefined) return false
  try {
    const { size } = fstatSync(fd)
    if (size > 0 && size + line.length > limits.fileBytes) {
      begin(dir, newest + 1)
      for (const number of numbers)
        if (number <= newest + 1 - limits.files) rmSync(filePath(dir, number), { force: true })
      return false
    }
    writeSync(fd, line)
    return fstatSync(fd).nlink > 0 // others may have filled all the files and removed this one since it was opened
  } finally {
    closeSync(fd)
  }
}

/** Several processes may create the same file: it is still one file. */
function begin(dir: string, number: number): void {
  closeSync(openSync(filePath(dir, number), "a", 0o600))
}

/** Opens a file without creating it: one that was just removed must not come back. */
function openExisting(path: string): number | undefined {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_APPEND)
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  }
}

const QUERY_CHARS = 1_000
const ARG_CHARS = 300
const ARG_ITEMS = 20
const MESSAGE_CHARS = 400
const MAX_ROWS = 100
const MAX_TERMS = 16
/** The share of the space for rows that the ranking may take before the skipped rows. */
const SHARE_OF_RANKING = 0.75

/**
 * A trace as a line of a file. It never exceeds `mostBytes`: rows are left out first; the totals count them. The leading newline
 * ends the rest of a write that was cut short by a full disk or a kill.
 */
export function traceLine(trace: Trace, mostBytes: number): Buffer {
  const head = { ...boundTexts(trace), ranking: [] as TraceRow[], skipped: [] as SkippedRow[] }
  const room = mostBytes - 2 - bytesOf(head)
  if (room < 0) return encode({ ...withoutArguments(head), truncation: { trace: "too long to be kept" } })
  const ranking = fitting(trace.ranking.slice(0, MAX_ROWS).map(boundedRow), room * SHARE_OF_RANKING)
  const skipped = fitting(trace.skipped.slice(0, MAX_ROWS), room - ranking.bytes)
  return encode({ ...head, ranking: ranking.rows, skipped: skipped.rows })
}

/** A trace without the arguments that alone would fill a line. */
function withoutArguments({ args: _, truncation: __, query: ___, ...rest }: Trace): Trace {
  return { ...rest, args: {}, inputs: {}, budgets: {} }
}

function encode(trace: Trace): Buffer {
  return Buffer.from(`\n${JSON.stringify(trace)}\n`)
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}

function fitting<T>(rows: T[], room: number): { rows: T[]; bytes: number } {
  let bytes = 0
  for (const [i, row] of rows.entries()) {
    const next = bytes + bytesOf(row) + 1
    if (next > room) return { rows: rows.slice(0, i), bytes }
    bytes = next
  }
  return { rows, bytes }
}

function boundTexts(trace: Trace): Trace {
  const query = trace.query === undefined ? undefined : clipText(trace.query, QUERY_CHARS)
  const cut = query !== trace.query ? { query_characters: trace.query!.length } : undefined
  return {
    ...trace,
    args: shortened(trace.args) as Record<string, unknown>,
    query,
    truncation: trace.truncation || cut ? { ...(shortened(trace.truncation ?? {}) as object), ...cut } : undefined,
    project: clipText(trace.project, ARG_CHARS),
    error: trace.error && {
      code: clipText(trace.error.code, 40),
      message: clipText(trace.error.message, MESSAGE_CHARS),
    },
  }
}

function shortened(value: unknown): unknown {
  if (typeof value === "string") return clipText(value, ARG_CHARS)
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.slice(0, ARG_ITEMS).map(shortened)
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shortened(inner)]))
}

/** The ref comes first, so that a line that is cut short never contains a summary without the name to forget it by. */
function boundedRow({ rank, ref, terms, summary, ...scores }: TraceRow): TraceRow {
  return { rank, ref, ...scores, terms: terms.slice(0, MAX_TERMS), summary: summaryOf(summary) }
}
