// The tables that `npm run bench` prints, and that `--write` puts into docs/performance.md. Every row has the commit and the day
// of its measurement. Pure: a test reads the page with the same functions.

export type Stamp = { commit: string; date: string }

/** The cost of one measure of the quick bench, pair by pair. */
export type Sample = { cpuMs: number; wallMs: number }
export type MeasuredCommand = {
  name: string
  what: string
  now: Sample[]
  floor: Sample[]
  /** Undefined if the baseline could not be built, `"missing"` if it has no such command. */
  baseline: Sample[] | "missing" | undefined
  /** The wall time of every single run. */
  walls: { now: number[]; floor: number[] }
}

/** Processor time relative to the baseline above which a measure fails. */
export const LIMIT = 1.25

/**
 * Measures that need more than that today. Each has its own ceiling, which may only be lowered, a little above the medians that
 * were measured when it was set: sync in threads 1.39 to 1.45, search 1.13 to 1.29. `test/shape/bench.test.ts` has the same ceilings.
 */
export const ABOVE_LIMIT: Readonly<Record<string, { ceiling: number; because: string }>> = {
  "sync-threads": {
    ceiling: 1.55,
    because:
      "Since 0.1.0 a sync also computes checksums of rows and blocks, keeps words as they were written, writes what was spent, and looks for more secrets.",
  },
  search: {
    ceiling: 1.38,
    because:
      "Since 0.1.0 a search also compares the rows that it reads with their checksums, and knows words as they were written.",
  },
}

/**
 * Measures that need less, and should not need more again. They are a little above the medians that were measured when they were
 * set: sync-again 0.92 to 0.98, initialize 0.40 to 0.53, first-search 0.70 to 1.03 (on a quiet machine its thread starts sooner).
 */
const BELOW_LIMIT: Readonly<Record<string, number>> = { "sync-again": 1.15, initialize: 0.65, "first-search": 1.2 }

export const limitOf = (name: string): number => ABOVE_LIMIT[name]?.ceiling ?? BELOW_LIMIT[name] ?? LIMIT

/** The median of the ratios of processor time, pair by pair. */
export function ratioOf(now: Sample[], other: Sample[]): number {
  return median(now.map(({ cpuMs }, i) => cpuMs / other[i]!.cpuMs))
}

export function ratioToBaseline({ now, baseline }: MeasuredCommand): number | undefined {
  return Array.isArray(baseline) ? ratioOf(now, baseline) : undefined
}

/** `tooSlow` makes the bench fail. `notes` are about measures with their own ceiling, `advice` is for people who work on dex. */
export function verdictOf(measured: MeasuredCommand[]): { tooSlow: string[]; notes: string[]; advice: string[] } {
  const tooSlow: string[] = []
  const notes: string[] = []
  const advice: string[] = []
  for (const one of measured) {
    const ratio = ratioToBaseline(one)
    if (ratio === undefined) continue
    const said = `${one.name}: ${ratio.toFixed(2)} times the processor time of the baseline`
    if (ratio > limitOf(one.name)) tooSlow.push(`${said}; at most ${limitOf(one.name).toFixed(2)} is allowed.`)
    const known = ABOVE_LIMIT[one.name]
    if (!known) continue
    notes.push(`${said}. ${known.because} Its own ceiling is ${known.ceiling.toFixed(2)}; others have ${LIMIT}.`)
    if (ratio < known.ceiling - 0.1) advice.push(`${one.name}: its ceiling in bench/report.ts can be lowered.`)
  }
  return { tooSlow, notes, advice }
}

/** Formats the slowest runs, for goals about them. */
export function slowestRuns({ name, walls }: MeasuredCommand): string {
  const [now, floor] = [percentile(walls.now, 0.95), percentile(walls.floor, 0.95)]
  const said = `${milliseconds(now)}, floor ${milliseconds(floor)}, ${(now / floor).toFixed(2)} ×`
  return `${name}: p95 of the wall time of ${walls.now.length} runs ${said}.`
}

const QUICK_COLUMNS = ["what", "dex", "floor", "× floor", "baseline", "× baseline", "limit", "commit", "date"]

export function quickTable(all: MeasuredCommand[], { commit, date }: Stamp): string {
  const cost = (samples: Sample[]) =>
    [median(samples.map((one) => one.cpuMs)), median(samples.map((one) => one.wallMs))].map(milliseconds).join("; ")
  return table(
    QUICK_COLUMNS,
    all.map((one) => {
      const { name, what, now, floor, baseline } = one
      const ratio = ratioToBaseline(one)
      return [
        what,
        cost(now),
        cost(floor),
        ratioOf(now, floor).toFixed(2),
        Array.isArray(baseline) ? cost(baseline) : baseline === "missing" ? "has no such command" : "not built",
        ratio === undefined ? "–" : ratio > limitOf(name) ? `**${ratio.toFixed(2)}**` : ratio.toFixed(2),
        ratio === undefined ? "–" : limitOf(name).toFixed(2),
        commit,
        date,
      ]
    }),
  )
}

function milliseconds(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms).toLocaleString("en")} ms`
}

/** A figure of one of the longer parts, with its goal. */
export type Row = { what: string; measured: string; floor: string; goal: string; ok: boolean | undefined }

const PART_COLUMNS = ["what", "measured", "floor, same run", "goal", "result", "commit", "date"]

export function partTable(rows: Row[], { commit, date }: Stamp): string {
  const result = (ok: boolean | undefined) => (ok === undefined ? "" : ok ? "reached" : "**not reached**")
  return table(
    PART_COLUMNS,
    rows.map(({ what, measured, floor, goal, ok }) => [what, measured, floor, goal, result(ok), commit, date]),
  )
}

function table(columns: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(" | ")} |`
  return [line(columns), `|${"---|".repeat(columns.length)}`, ...rows.map(line)].join("\n")
}

export function percentile(values: number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)]!
}

export const median = (values: number[]) => percentile(values, 0.5)

// In the page, the bench's output is between two comments with the name of the part. There are no figures elsewhere.

const opening = (name: string) => `<!-- bench ${name} -->`
const closing = (name: string) => `<!-- end of bench ${name} -->`

/** The page with a new text for a part; a part that it does not have yet is added at the end. */
export function withPart(page: string, name: string, text: string): string {
  const block = `${opening(name)}\n\n${text}\n\n${closing(name)}`
  const [from, to] = [page.indexOf(opening(name)), page.indexOf(closing(name))]
  if (from === -1 || to === -1) return `${page.trimEnd()}\n\n${block}\n`
  return page.slice(0, from) + block + page.slice(to + closing(name).length)
}

/** The problems of the page's tables: each sentence names a line. */
export function faultsOf(page: string): string[] {
  let part: string | undefined
  let columns: string[] | undefined
  return page.split("\n").flatMap((line, i) => {
    const at = `line ${i + 1}`
    part = /^<!-- bench (\S+) -->$/.exec(line)?.[1] ?? (/^<!-- end of bench /.test(line) ? undefined : part)
    if (!line.startsWith("|")) {
      columns = undefined
      return part === undefined && FIGURE.test(line) ? [`${at}: a figure that the bench did not write`] : []
    }
    const cells = line
      .slice(1, -1)
      .split(" | ")
      .map((cell) => cell.trim())
    if (columns === undefined) {
      columns = cells
      return headFaults(part, columns).map((fault) => `${at}: ${fault}`)
    }
    if (part === undefined || line.startsWith("|---")) return []
    if (cells.length !== columns.length) return [`${at}: ${cells.length} cells below ${columns.length} columns`]
    const [commit = "", date = ""] = cells.slice(-2)
    return [
      ...(/^[0-9a-f]{7,40}$/.test(commit) ? [] : [`${at}: "${commit}" is no commit`]),
      ...(/^\d{4}-\d{2}-\d{2}$/.test(date) ? [] : [`${at}: "${date}" is no date`]),
    ]
  })
}

/** A time, a size or a ratio in a sentence. */
const FIGURE = /\d (?:ms|s|MB|GB|×)(?!\w)/
/** Tables without figures. */
const OTHER_TABLES = ["goal", "campaign"]

function headFaults(part: string | undefined, columns: string[]): string[] {
  if (part === undefined) return OTHER_TABLES.includes(columns[0]!) ? [] : ["a table that the bench did not write"]
  const written = /^(?:quick|genuine|messages-\d+)$/.test(part) ? QUICK_COLUMNS : PART_COLUMNS
  return columns.join() === written.join() ? [] : [`the columns are ${columns.join(", ")}, not ${written.join(", ")}`]
}
