import { type Html, html } from "../../render/html/html.ts"

/** A day's column: what it is made of, in the order of the colours, and what it says when one points at it. */
export type DayColumn = { day: string; parts: number[]; says: string }

const HEIGHT = 100
const STEP = 10
const GAP = 2

/** Columns of days, each stacked of its parts. Words stand beside it, not in it: it is as wide as there is room. */
export function dayBars(columns: DayColumn[], label: string, most: string): Html {
  const sums = columns.map(({ parts }) => parts.reduce((sum, part) => sum + part, 0))
  const highest = Math.max(...sums, 1e-9)
  const drawn = columns.map(({ parts, says }, i) => {
    let top = HEIGHT
    const rects = parts.map((part, colour) => {
      const height = (part / highest) * HEIGHT
      top -= height
      return (
        height > 0 &&
        html`<rect class="colour${colour}" x="${i * STEP}" y="${top.toFixed(2)}" width="${STEP - GAP}" height="${height.toFixed(2)}"/>`
      )
    })
    return html`<g><title>${says}</title><rect class="behind" x="${i * STEP}" y="0" width="${STEP}" height="${HEIGHT}"/>${rects}</g>`
  })
  const [first, last] = [columns[0]?.day ?? "", columns.at(-1)?.day ?? ""]
  return html`<div class="day-bars"><p class="most" aria-hidden="true">${most}</p><svg viewBox="0 0 ${Math.max(1, columns.length * STEP - GAP)} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}">${drawn}</svg><p class="ends" aria-hidden="true"><span>${first}</span><span>${last}</span></p></div>`
}
