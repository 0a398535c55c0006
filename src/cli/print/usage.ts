import { localDay, localMinute } from "../../core/dates.ts"
import { grouped } from "../../core/format.ts"
import type { InputOf, OutputOf } from "../../core/tool.ts"
import { clip, padEnd, paint, safeLine, type Terminal, widthOf } from "../../render/terminal.ts"
import { many, shortPath } from "../../render/words.ts"
import { isUngrouped } from "../../tools/usage/groups.ts"
import type { usage } from "../../tools/usage/usage.ts"
import { dollars, shortCount } from "../../usage/line.ts"
import { daysBetween } from "../../usage/periods.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"

type Output = OutputOf<typeof usage>
type Row = Output["rows"][number]

export function printUsage(
  output: Output,
  { terminal, home, numbered }: PrintContext,
  input?: InputOf<typeof usage>,
): PrintedOutput {
  if (output.line !== undefined) return { lines: [output.line] }
  if (input?.csv)
    return { lines: csvLines(output.rows), notes: [...leftOutNotes(output), ...output.notes.map(safeLine)] }
  if (output.total.answers === 0)
    return {
      lines: limitLines(output).slice(1),
      notes: ["No usage is recorded for this selection.", ...output.notes.map(safeLine)],
    }
  const isListed = output.by === "conversation"
  const table = tableOf(output, terminal, home)
  return {
    lines: [headLine(output), ...sparkLines(output, terminal), "", ...table, ...limitLines(output)],
    notes: [...priceNotes(output), ...output.notes.map(safeLine)],
    listing: isListed && numbered ? output.rows.map(({ key }) => key) : undefined,
  }
}

function headLine({ total, from, to, plan }: Output): string {
  const days = [from, to].flatMap((iso) => (iso === undefined ? [] : localDay(Date.parse(iso))))
  const periodText = days.length === 0 ? "no date" : days[0] === days[1] ? days[0]! : `${days[0]} to ${days[1]}`
  return [
    periodText,
    `${costText(total)}${plan === undefined ? "" : " list price"}`,
    `${shortCount(total.tokens)} tokens`,
    `${many(total.conversations, "conversation")} with usage`,
  ].join(" · ")
}

/** The limits of plans, below the table: how much is used, the reset, and the forecast. */
function limitLines({ limits = [] }: Output): string[] {
  const lines = limits.map(({ agent, window, used_percent, resets_at, reported_at, forecast }) => {
    const reset = localMinute(Date.parse(resets_at))
    const age = `as of ${localMinute(Date.parse(reported_at))}`
    const parts = [`resets ${reset}`, ...(forecast ? [forecastText(forecast)] : []), age]
    return `${safeLine(agent)}  ${padEnd(window, 6)}  ${String(Math.round(used_percent)).padStart(3)} %  ${parts.join(" · ")}`
  })
  return lines.length === 0 ? [] : ["", ...lines]
}

type LimitForecast = NonNullable<NonNullable<Output["limits"]>[number]["forecast"]>

function forecastText({ percent_from = 0, percent_to, full_from, full_to }: LimitForecast): string {
  if (full_from === undefined || percent_to !== undefined)
    return `at this pace ${percent_from === percent_to ? percent_from : `${percent_from} to ${percent_to}`} % by then`
  const time = (iso: string) => localMinute(Date.parse(iso))
  return full_to === undefined
    ? `at this pace full at ${time(full_from)} at the earliest, or not at all`
    : `at this pace full between ${time(full_from)} and ${time(full_to)}`
}

/** A bar for every day of the period, including days without use. */
function sparkLines({ days }: Output, terminal: Terminal): string[] {
  const [first, last] = [days[0], days.at(-1)]
  if (!terminal.interactive || !first || !last || days.length < 2) return []
  const isMoney = days.some((day) => day.cost > 0)
  const byDay = new Map(days.map(({ day, cost, tokens }) => [day, isMoney ? cost : tokens]))
  const amounts = daysBetween(first.day, last.day).map((day) => byDay.get(day) ?? 0)
  return [paint(terminal, "cyan", sparkline(amounts, terminal.columns))]
}

/** The cost, with a `+` if there are also tokens without a known price. */
function costText({ cost, unpriced_tokens }: Pick<Row, "cost" | "unpriced_tokens">): string {
  return `${dollars(cost)}${unpriced_tokens > 0 ? "+" : ""}`
}

type Column = { name: string; cellOf: (row: Row) => string }

const COLUMNS: Record<string, Column> = {
  cost: { name: "cost", cellOf: costText },
  tokens: { name: "tokens", cellOf: ({ tokens }) => shortCount(tokens) },
  input: { name: "input", cellOf: ({ input }) => shortCount(input) },
  output: { name: "output", cellOf: ({ output }) => shortCount(output) },
  read: { name: "cache read", cellOf: ({ cache_read }) => shortCount(cache_read) },
  written: {
    name: "written",
    cellOf: ({ cache_write_5m, cache_write_1h, cache_write_other }) =>
      shortCount(cache_write_5m + cache_write_1h + cache_write_other),
  },
  subagents: { name: "subagents", cellOf: ({ subagent_cost }) => (subagent_cost > 0 ? dollars(subagent_cost) : "") },
}

const WIDE_COLUMNS = 110
const MIN_BAR_COLUMNS = 10
const ROW_HEADINGS: Partial<Record<string, string>> = {
  week: "week of",
  block: "five hours from",
  pull_request: "pull request",
}

function tableOf({ rows, by, plan }: Output, terminal: Terminal, home: string): string[] {
  const { cost, tokens, input, output, read, written, subagents } = COLUMNS as Record<string, Column>
  const isWide = terminal.columns >= WIDE_COLUMNS
  const columns = [
    { ...cost!, name: plan === undefined ? cost!.name : "list price" },
    tokens!,
    ...(isWide ? [input!, output!, read!, written!] : []),
    ...(rows.some(({ subagent_cost }) => subagent_cost > 0) ? [subagents!] : []),
  ]
  const cells = rows.map((row) => columns.map(({ cellOf }) => cellOf(row)))
  const widths = columns.map(({ name }, i) => Math.max(name.length, ...cells.map((line) => line[i]!.length)))
  const usedColumns = widths.reduce((sum, width) => sum + width + 2, 0)
  const labels = rows.map((row) => labelOf(row, home))
  const widestLabel = Math.max(...labels.map(widthOf), (ROW_HEADINGS[by] ?? by).length)
  const room = Math.min(widestLabel, Math.max(12, terminal.columns - usedColumns - MIN_BAR_COLUMNS - 2))
  const barColumns = terminal.interactive ? Math.min(40, terminal.columns - usedColumns - room - 2) : 0
  const isMoney = rows.some((row) => row.cost > 0)
  const size = (row: Row) => (isUngrouped(row.key) ? 0 : isMoney ? row.cost : row.tokens)
  const maxSize = Math.max(...rows.map(size), Number.MIN_VALUE)
  const line = (label: string, values: string[], end: string) =>
    `${padEnd(fitLabel(label, room), room)}${values.map((value, i) => value.padStart(widths[i]! + 2)).join("")}${end}`.trimEnd()
  return [
    paint(
      terminal,
      "dim",
      line(
        ROW_HEADINGS[by] ?? by,
        columns.map(({ name }) => name),
        "",
      ),
    ),
    ...rows.map((row, i) =>
      line(
        labels[i]!,
        cells[i]!,
        barColumns > 0 ? `  ${paint(terminal, "green", bar(size(row) / maxSize, barColumns))}` : "",
      ),
    ),
  ]
}

/** Cuts a path at its beginning, because its end is more informative. */
function fitLabel(label: string, room: number): string {
  const isPath = /^[~/]/.test(label) && widthOf(label) === label.length
  return isPath && label.length > room ? `…${label.slice(1 - room)}` : clip(label, room)
}

/** Matches the address of a pull request. It is shortened, because a narrow column would cut off the number at its end. */
const PULL_REQUEST =
  /^https?:\/\/[^/]+\/(?<repository>\S+?)\/(?:-\/)?(?:pull|pulls|pull-requests|merge_requests)\/(?<number>\d+)$/

function labelOf({ key, title, subagents }: Row, home: string): string {
  const name = key.startsWith("/")
    ? shortPath(safeLine(key), home)
    : safeLine(key).replace(PULL_REQUEST, "$<repository>#$<number>")
  const label = title === undefined ? name : `${name.replace(/^(\w+:\w{8})[\w-]*$/, "$1")} ${safeLine(title)}`
  return subagents ? `${label} (subagents)` : label
}

/** The rows as CSV, each column named like its JSON field. */
function csvLines(rows: readonly Row[]): string[] {
  const table = rows.map(({ key, title = "", subagents = false, cost_of, ...sums }) => ({
    ...{ key, title, subagents: String(subagents), ...sums },
    ...Object.fromEntries(Object.entries(cost_of).map(([name, cost]) => [`cost_of_${name}`, cost])),
  }))
  const columns = Object.keys(table[0] ?? { key: "" })
  return [
    columns.join(","),
    ...table.map((row) => columns.map((column) => csvCell((row as Record<string, unknown>)[column])).join(",")),
  ]
}

/** A cell of CSV. A text that a spreadsheet would take for a formula gets an apostrophe, because titles may be anybody's words. */
function csvCell(value: unknown): string {
  if (typeof value === "number") return String(value)
  const text = safeLine(String(value ?? ""))
  const harmless = /^[=+\-@]/.test(text) ? `'${text}` : text
  return /[",]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

function leftOutNotes({ rows, rows_left_out }: Output): string[] {
  if (rows_left_out === 0) return []
  return [
    `${grouped(rows_left_out)} more ${rows_left_out === 1 ? "row is" : "rows are"} not shown; the first line counts them. --limit ${rows.length + rows_left_out} shows all.`,
  ]
}

function priceNotes(output: Output): string[] {
  const { models, plan, by, total } = output
  const sources = [...new Set(models.flatMap(({ from }) => from ?? []))].map(safeLine)
  const parts = [
    `cache writes for an hour ${dollars(total.cost_of.cache_write_1h)}`,
    `for five minutes ${dollars(total.cost_of.cache_write_5m)}`,
    `cache reads ${dollars(total.cost_of.cache_read)}`,
    `input ${dollars(total.cost_of.input)}`,
    `output ${dollars(total.cost_of.output)}`,
    ...(total.web_searches > 0
      ? [`${many(total.web_searches, "web search", "web searches")} ${dollars(total.cost_of.web_searches)}`]
      : []),
  ]
  return [
    ...leftOutNotes(output),
    ...(total.cost > 0 ? [`Of ${costText(total)}: ${parts.join(", ")}.`] : []),
    ...(sources.length > 0
      ? [
          `Tokens are as agents recorded them. Money is the list price of ${sources.join(" and ")}${plan === undefined ? "." : `, covered by your plan (${safeLine(plan)}).`}`,
        ]
      : []),
    ...(by === "block" ? ["A block begins with the hour of its first answer and lasts five hours."] : []),
  ]
}

const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]
const HEIGHTS = "▁▂▃▄▅▆▇█"

/** A bar of at most `columns` columns, exact to an eighth of a column. A value above zero is always visible. */
export function bar(share: number, columns: number): string {
  const eighths = Math.round(share * columns * 8)
  const visibleEighths = share > 0 ? Math.max(1, eighths) : 0
  return "█".repeat(Math.floor(visibleEighths / 8)) + EIGHTHS[visibleEighths % 8]!
}

/** One character per value, or per group of neighbours if there are more values than columns. Zero is a space. */
export function sparkline(values: number[], columns: number): string {
  const width = Math.ceil(values.length / Math.max(1, columns))
  const sums: number[] = []
  for (let i = 0; i < values.length; i += width)
    sums.push(values.slice(i, i + width).reduce((sum, value) => sum + value, 0))
  const largest = Math.max(...sums)
  return sums.map((sum) => (sum <= 0 ? " " : HEIGHTS[Math.min(7, Math.floor((sum / largest) * 8))]!)).join("")
}
