import { localDay } from "../core/dates.ts"
import { grouped } from "../core/format.ts"
import { type Html, html } from "../render/html/html.ts"
import { many } from "../render/words.ts"
import type { LevelCounts } from "../tools/blame/owner-facts.ts"
import { daysBetween, localWeek } from "../usage/periods.ts"

/** A day's column: its parts in the order of the colours, and its tooltip. */
type DayColumn = { day: string; parts: number[]; tooltip: string }

const DAYS_HEIGHT = 100
const DAY_STEP = 10
const DAY_GAP = 2

/**
 * Stacked columns, one per day, with an axis. The labels are outside the SVG, because the SVG is stretched to the available width.
 * The page's script shows a column's text when the pointer or the arrow keys are on it.
 */
export function dayBars(columns: DayColumn[], label: string, format: (amount: number) => string): Html {
  const sums = columns.map(({ parts }) => parts.reduce((sum, part) => sum + part, 0))
  const top = axisTop(Math.max(...sums, 1e-9))
  const shapes = columns.map(({ parts, tooltip }, i) => {
    let y = DAYS_HEIGHT
    const rects = parts.map((part, colour) => {
      const height = (part / top) * DAYS_HEIGHT
      y -= height
      return (
        height > 0 &&
        html`<rect class="colour${colour}" x="${i * DAY_STEP}" y="${y.toFixed(2)}" width="${DAY_STEP - DAY_GAP}" height="${height.toFixed(2)}"/>`
      )
    })
    return html`<g data-value="${tooltip.replaceAll("\n", " · ")}"><title>${tooltip}</title><rect class="behind" x="${i * DAY_STEP}" y="0" width="${DAY_STEP}" height="${DAYS_HEIGHT}"/>${rects}</g>`
  })
  const width = Math.max(1, columns.length * DAY_STEP - DAY_GAP)
  return chartHtml(
    html`<svg viewBox="0 0 ${width} ${DAYS_HEIGHT}" preserveAspectRatio="none" role="img" tabindex="0" aria-label="${label}">${gridLines(width, DAYS_HEIGHT)}${shapes}</svg>`,
    [format(top), format(top / 2), "0"],
    [columns[0]?.day ?? "", columns.at(-1)?.day ?? ""],
  )
}

/** A drawing with the values of its axis at the left, its first and last period below it, and room for the value of one bar. */
function chartHtml(drawing: Html, values: readonly string[], [first, last]: readonly [string, string]): Html {
  return html`<div class="chart"><p class="axis" aria-hidden="true">${values.map((value) => html`<span>${value}</span>`)}</p>${drawing}<p class="ends" aria-hidden="true"><span>${first}</span><span>${last}</span></p><p class="value" aria-live="polite"></p></div>`
}

/** Lines at the top, in the middle and at the bottom. */
function gridLines(width: number, height: number): Html {
  return html`${[0, height / 2, height].map((y) => html`<line class="grid" x1="0" x2="${width}" y1="${y}" y2="${y}"/>`)}`
}

/** A round number, at least as high as the highest bar, that can be halved. */
function axisTop(highest: number): number {
  const magnitude = 10 ** Math.floor(Math.log10(highest))
  return [1, 1.5, 2, 3, 4, 6, 8, 10].map((step) => step * magnitude).find((top) => top >= highest * (1 - 1e-9))!
}

/** A day with activity: the amount, its tooltip and its link. */
export type HeatDay = { day: string; amount: number; tooltip: string; address: string }

const WEEKS = 53
const CELL_STEP = 14
const CELL_SIZE = 11
const LEFT_MARGIN = 30
const TOP_MARGIN = 18
const LEVEL_COUNT = 4
const WEEKDAYS = ["Mon", "", "Wed", "", "Fri", "", ""]
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/** The first day of a map of the year that ends on `lastDay`. It is a Monday. */
export function heatMapStart(lastDay: string): string {
  const monday = new Date(`${localWeek(noon(lastDay))}T12:00:00`)
  monday.setDate(monday.getDate() - (WEEKS - 1) * 7)
  return localDay(monday.getTime())
}

/**
 * A year as a calendar with one week per column. Darker days have more activity. Each of the four levels has about as many days
 * as the others.
 */
export function heatMap(days: HeatDay[], lastDay: string, label: string): Html {
  const byDay = new Map(days.map((heatDay) => [heatDay.day, heatDay]))
  const allDays = daysBetween(heatMapStart(lastDay), lastDay)
  const levelOf = createLevels(days.map(({ amount }) => amount))
  const cells = allDays.map((day, i) => {
    const x = LEFT_MARGIN + Math.floor(i / 7) * CELL_STEP
    const y = TOP_MARGIN + (i % 7) * CELL_STEP
    const heatDay = byDay.get(day)
    const rect = (level: number) =>
      html`<rect class="heat${level}" x="${x}" y="${y}" width="${CELL_SIZE}" height="${CELL_SIZE}" rx="2"/>`
    if (!heatDay || heatDay.amount === 0) return rect(0)
    return html`<a href="${heatDay.address}" tabindex="-1" aria-label="${heatDay.tooltip}"><title>${heatDay.tooltip}</title>${rect(levelOf(heatDay.amount))}</a>`
  })
  const months = allDays.flatMap((day, i) =>
    day.endsWith("-01") && i < allDays.length - 14
      ? [
          html`<text x="${LEFT_MARGIN + Math.ceil(i / 7) * CELL_STEP}" y="11">${MONTHS[Number(day.slice(5, 7)) - 1]!}</text>`,
        ]
      : [],
  )
  const weekdays = WEEKDAYS.map(
    (name, i) => name !== "" && html`<text x="0" y="${TOP_MARGIN + i * CELL_STEP + CELL_SIZE - 1.5}">${name}</text>`,
  )
  return html`<div class="heat-map"><svg viewBox="0 0 ${LEFT_MARGIN + WEEKS * CELL_STEP} ${TOP_MARGIN + 7 * CELL_STEP}" role="group" aria-label="${label}"><g aria-hidden="true">${months}${weekdays}</g>${cells}</svg></div>`
}

/** Returns a function that maps an amount to its level from 1 to 4. */
function createLevels(amounts: number[]): (amount: number) => number {
  const sorted = amounts.filter((amount) => amount > 0).sort((a, b) => a - b)
  const edges = Array.from(
    { length: LEVEL_COUNT - 1 },
    (_, i) => sorted[Math.ceil(((i + 1) * sorted.length) / LEVEL_COUNT) - 1]!,
  )
  return (amount) => 1 + edges.filter((edge) => amount > edge).length
}

const noon = (day: string) => Date.parse(`${day}T12:00:00`)

const LINE_WIDTH = 260
const LINE_HEIGHT = 48
const MAX_POINTS = 130

/** A cumulative sum as a line, with the area below it filled. */
export function lineChart(values: number[], label: string): Html {
  const total = Math.max(...values.slice(-1), 1e-9)
  const step = Math.max(1, Math.ceil(values.length / MAX_POINTS))
  const points = values.filter((_, i) => i % step === 0 || i === values.length - 1)
  const x = (i: number) => (points.length === 1 ? LINE_WIDTH : (i / (points.length - 1)) * LINE_WIDTH).toFixed(1)
  const y = (value: number) => (LINE_HEIGHT - 2 - (value / total) * (LINE_HEIGHT - 6)).toFixed(1)
  const line = points.map((value, i) => `${x(i)},${y(value)}`).join(" ")
  return html`<svg class="line" viewBox="0 0 ${LINE_WIDTH} ${LINE_HEIGHT}" role="img" aria-label="${label}" preserveAspectRatio="none"><polygon points="0,${LINE_HEIGHT} ${line} ${LINE_WIDTH},${LINE_HEIGHT}"/><polyline points="${line}"/></svg>`
}

export type MonthBar = {
  /** As `2026-11`. */
  month: string
  count: number
  address: string
  isChosen: boolean
}

const MONTHS_HEIGHT = 56
const MONTH_STEP = 12
const MONTH_GAP = 3
/** The height of the smallest bar, so that a small count is visible. */
const MIN_BAR_HEIGHT = 2

/** A bar for each month, linked to that month. */
export function monthBars(bars: readonly MonthBar[], label: string, tooltipOf: (bar: MonthBar) => string): Html {
  const top = Math.max(2, axisTop(Math.max(1, ...bars.map(({ count }) => count))))
  const width = bars.length * MONTH_STEP - MONTH_GAP
  const shapes = bars.map((bar, i) => {
    const height = bar.count === 0 ? 0 : Math.max(MIN_BAR_HEIGHT, (bar.count / top) * MONTHS_HEIGHT)
    const rects = html`<rect class="room" x="${i * MONTH_STEP}" y="0" width="${MONTH_STEP}" height="${MONTHS_HEIGHT}"/><rect class="bar" x="${i * MONTH_STEP}" y="${(MONTHS_HEIGHT - height).toFixed(1)}" width="${MONTH_STEP - MONTH_GAP}" height="${height.toFixed(1)}"/>`
    const value = html` data-value="${tooltipOf(bar)}"`
    if (bar.count === 0) return html`<g${value}><title>${tooltipOf(bar)}</title>${rects}</g>`
    return html`<a href="${bar.address}" aria-label="${tooltipOf(bar)}"${value}${bar.isChosen && html` class="chosen" aria-current="true"`}><title>${tooltipOf(bar)}</title>${rects}</a>`
  })
  // The role is group, because the role img would hide the links from screen readers.
  return chartHtml(
    html`<svg class="months" viewBox="0 0 ${width} ${MONTHS_HEIGHT}" preserveAspectRatio="none" role="group" aria-label="${label}">${gridLines(width, MONTHS_HEIGHT)}${shapes}</svg>`,
    [grouped(top), grouped(top / 2), "0"],
    [bars[0]?.month ?? "", bars.at(-1)?.month ?? ""],
  )
}

const SHARE_WIDTH = 1000
const LEVEL_NAMES = ["proved", "likely", "unknown"] as const

/** How many lines are proved, likely and unknown, as a bar with a legend. */
export function shareBar(counts: LevelCounts): Html {
  const { total } = counts
  if (total === 0) return html``
  let x = 0
  const pieces = LEVEL_NAMES.map((level) => {
    const width = (counts[level] / total) * SHARE_WIDTH
    const piece = html`<rect class="${level}" x="${x.toFixed(1)}" y="0" width="${width.toFixed(1)}" height="10"/>`
    x += width
    return piece
  })
  const label = LEVEL_NAMES.map((level) => `${counts[level]} ${level}`).join(", ")
  const legend = LEVEL_NAMES.map(
    (level) =>
      html`<span><i class="level ${level}" aria-hidden="true"></i>${counts[level]} ${level} <span class="share">${percent(counts[level], total)}</span></span>`,
  )
  return html`<figure class="shares"><svg viewBox="0 0 ${SHARE_WIDTH} 10" preserveAspectRatio="none" role="img" aria-label="${many(total, "line")}: ${label}">${pieces}</svg><figcaption>${legend}</figcaption></figure>`
}

/** Never shows 0 % for a part that exists, nor 100 % for less than all. */
function percent(part: number, total: number): string {
  const share = (part / total) * 100
  if (part > 0 && share < 1) return "under 1 %"
  return `${part < total ? Math.min(99, Math.round(share)) : 100} %`
}

const STACK_WIDTH = 100

/** One bar, stacked from its parts in the order of the colours. A sum of `max` fills the width. */
export function stackBar(parts: number[], max: number, label: string): Html {
  let x = 0
  const rects = parts.map((part, colour) => {
    const width = (part / Math.max(max, 1e-9)) * STACK_WIDTH
    const rect =
      width > 0 &&
      html`<rect class="colour${colour}" x="${x.toFixed(2)}" y="0" width="${width.toFixed(2)}" height="10"/>`
    x += width
    return rect
  })
  return html`<svg class="stack" viewBox="0 0 ${STACK_WIDTH} 10" preserveAspectRatio="none" role="img" aria-label="${label}">${rects}</svg>`
}

/** A colour sample for a legend. */
export function swatch(colour: number): Html {
  return html`<svg class="swatch" viewBox="0 0 10 10" aria-hidden="true"><rect class="colour${colour}" width="10" height="10" rx="2"/></svg>`
}
