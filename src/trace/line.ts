import { clipText, type SkippedRow, summaryOf, type Trace, type TraceRow } from "../core/trace.ts"

const QUERY_CHARS = 1_000
const ARG_CHARS = 300
const ARG_ITEMS = 20
const MESSAGE_CHARS = 400
const MOST_ROWS = 100
const MOST_TERMS = 16
/** Of the room for rows, what those that answered may take before those that did not. */
const SHARE_OF_RANKING = 0.75

/**
 * A trace as it stands in a file. It never exceeds `mostBytes`: first rows are left out, counted by the totals. The
 * newline before it ends what a write that was cut short, by a full disk or a kill, may have left.
 */
export function traceLine(trace: Trace, mostBytes: number): Buffer {
  const head = { ...bounded(trace), ranking: [] as TraceRow[], skipped: [] as SkippedRow[] }
  const room = mostBytes - 2 - bytesOf(head)
  if (room < 0) return encode({ ...bare(head), truncation: { trace: "too long to be kept" } })
  const ranking = fitting(trace.ranking.slice(0, MOST_ROWS).map(boundedRow), room * SHARE_OF_RANKING)
  const skipped = fitting(trace.skipped.slice(0, MOST_ROWS), room - ranking.bytes)
  return encode({ ...head, ranking: ranking.rows, skipped: skipped.rows })
}

/** What is left of a trace whose arguments alone would fill a line. */
function bare({ args: _, truncation: __, query: ___, ...rest }: Trace): Trace {
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

function bounded(trace: Trace): Trace {
  const query = trace.query === undefined ? undefined : clipText(trace.query, QUERY_CHARS)
  const cut = query !== trace.query ? { query_characters: trace.query!.length } : undefined
  return {
    ...trace,
    args: shortened(trace.args) as Record<string, unknown>,
    ...(query !== undefined && { query }),
    ...((trace.truncation || cut) && { truncation: { ...(shortened(trace.truncation ?? {}) as object), ...cut } }),
    project: clipText(trace.project, ARG_CHARS),
    ...(trace.error && {
      error: { code: clipText(trace.error.code, 40), message: clipText(trace.error.message, MESSAGE_CHARS) },
    }),
  }
}

function shortened(value: unknown): unknown {
  if (typeof value === "string") return clipText(value, ARG_CHARS)
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.slice(0, ARG_ITEMS).map(shortened)
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shortened(inner)]))
}

/** The ref comes first: a line that is cut short must not hold a summary without the name to forget it by. */
function boundedRow({ rank, ref, terms, summary, ...scores }: TraceRow): TraceRow {
  return { rank, ref, ...scores, terms: terms.slice(0, MOST_TERMS), summary: summaryOf(summary) }
}
