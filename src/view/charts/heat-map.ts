import { localDay } from "../../core/dates.ts"
import { type Html, html } from "../../render/html/html.ts"
import { daysBetween, localWeek } from "../../usage/periods.ts"

/** A day on which something was done: how much, in a number and in words, and where it leads. */
export type HeatDay = { day: string; amount: number; says: string; address: string }

const WEEKS = 53
const STEP = 14
const CELL = 11
const LEFT = 30
const TOP = 18
const LEVELS = 4
const WEEKDAYS = ["Mon", "", "Wed", "", "Fri", "", ""]
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/** The first day that a year's map until this day shows: a Monday. */
export function heatMapStart(until: string): string {
  const monday = new Date(`${localWeek(noon(until))}T12:00:00`)
  monday.setDate(monday.getDate() - (WEEKS - 1) * 7)
  return localDay(monday.getTime())
}

/** A year as a calendar, a week in each column. The stronger a day, the more was done; four strengths, as many days in each. */
export function heatMap(days: HeatDay[], until: string, label: string): Html {
  const byDay = new Map(days.map((one) => [one.day, one]))
  const all = daysBetween(heatMapStart(until), until)
  const levelOf = levels(days.map(({ amount }) => amount))
  const cells = all.map((day, i) => {
    const x = LEFT + Math.floor(i / 7) * STEP
    const y = TOP + (i % 7) * STEP
    const one = byDay.get(day)
    const rect = (level: number) =>
      html`<rect class="heat${level}" x="${x}" y="${y}" width="${CELL}" height="${CELL}" rx="2"/>`
    if (!one || one.amount === 0) return rect(0)
    return html`<a href="${one.address}" tabindex="-1" aria-label="${one.says}"><title>${one.says}</title>${rect(levelOf(one.amount))}</a>`
  })
  const months = all.flatMap((day, i) =>
    day.endsWith("-01") && i < all.length - 14
      ? [html`<text x="${LEFT + Math.ceil(i / 7) * STEP}" y="11">${MONTHS[Number(day.slice(5, 7)) - 1]!}</text>`]
      : [],
  )
  const weekdays = WEEKDAYS.map(
    (name, i) => name !== "" && html`<text x="0" y="${TOP + i * STEP + CELL - 1.5}">${name}</text>`,
  )
  return html`<div class="heat-map"><svg viewBox="0 0 ${LEFT + WEEKS * STEP} ${TOP + 7 * STEP}" role="group" aria-label="${label}"><g aria-hidden="true">${months}${weekdays}</g>${cells}</svg></div>`
}

/** Which of the four strengths an amount has among all of them. */
function levels(amounts: number[]): (amount: number) => number {
  const sorted = amounts.filter((amount) => amount > 0).sort((a, b) => a - b)
  const edges = Array.from({ length: LEVELS - 1 }, (_, i) => sorted[Math.ceil(((i + 1) * sorted.length) / LEVELS) - 1]!)
  return (amount) => 1 + edges.filter((edge) => amount > edge).length
}

const noon = (day: string) => Date.parse(`${day}T12:00:00`)
