import { readFileSync } from "node:fs"
import { codeOf } from "../core/error.ts"
import { TRACE_COMMANDS, type Trace } from "../core/trace.ts"
import { fileNumbers, filePath } from "./files.ts"

/** Returns the newest traces, oldest first. `unreadable` counts the lines among them that are incomplete or not traces. */
export function readTraces(dir: string, { tail }: { tail: number }): { traces: Trace[]; unreadable: number } {
  const traces: Trace[] = []
  let unreadable = 0
  for (const line of linesNewestFirst(dir)) {
    if (traces.length >= tail) break
    const trace = parseTrace(line)
    if (trace) traces.push(trace)
    else unreadable++
  }
  return { traces: traces.reverse(), unreadable }
}

/** Returns the traces whose id begins with this prefix, newest first. There are several only if the prefix is short. */
export function findTraces(dir: string, idOrPrefix: string): Trace[] {
  const prefix = `T-${idOrPrefix.trim().replace(/^T-/i, "").toLowerCase()}`
  const traces: Trace[] = []
  for (const line of linesNewestFirst(dir)) {
    const trace = line.includes(prefix) ? parseTrace(line) : undefined
    if (trace?.trace_id.startsWith(prefix)) traces.push(trace)
  }
  return traces
}

/** Yields all lines, newest first. Skips a file that another process removes meanwhile: it contained the oldest lines. */
function* linesNewestFirst(dir: string): Generator<string> {
  for (const number of fileNumbers(dir).reverse()) {
    let text: string
    try {
      text = readFileSync(filePath(dir, number), "utf8")
    } catch (error) {
      if (codeOf(error) === "ENOENT") continue
      throw error
    }
    for (let end = text.length; end > 0; ) {
      const start = text.lastIndexOf("\n", end - 1) + 1
      const line = text.slice(start, end).trim()
      if (line !== "") yield line
      end = start - 1
    }
  }
}

/** Returns undefined if the line is incomplete or not a trace. Keeps unknown fields, which a newer dex may write. */
function parseTrace(line: string): Trace | undefined {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return undefined
  }
  return isTrace(value) ? value : undefined
}

function isTrace(value: unknown): value is Trace {
  if (!isObject(value)) return false
  const textFields = [value.trace_id, value.ts, value.project, value.state_revision]
  const numberFields = [value.duration_ms, value.ranking_total, value.skipped_total]
  return (
    textFields.every((text) => typeof text === "string") &&
    numberFields.every((number) => typeof number === "number") &&
    [value.args, value.inputs, value.budgets].every(isObject) &&
    (TRACE_COMMANDS as readonly unknown[]).includes(value.command) &&
    (value.query === undefined || typeof value.query === "string") &&
    (value.error === undefined || (isObject(value.error) && typeof value.error.message === "string")) &&
    Array.isArray(value.ranking) &&
    value.ranking.every(isTraceRow) &&
    Array.isArray(value.skipped) &&
    value.skipped.every((row) => isObject(row) && typeof row.ref === "string" && typeof row.skipped_reason === "string")
  )
}

function isTraceRow(row: unknown): boolean {
  return (
    isObject(row) &&
    typeof row.ref === "string" &&
    typeof row.rank === "number" &&
    typeof row.score_final === "number" &&
    typeof row.summary === "string" &&
    Array.isArray(row.terms) &&
    row.terms.every((term) => isObject(term) && typeof term.name === "string" && typeof term.value === "number")
  )
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}
