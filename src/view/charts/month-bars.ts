import { type Html, html } from "../../render/html/html.ts"

export type MonthBar = {
  /** 2026-11 */
  month: string
  count: number
  address: string
  isChosen: boolean
}

const HEIGHT = 56
const STEP = 12
const GAP = 3
/** What is there can be seen, however little it is. */
const LEAST_BAR = 2

/** How much there was in each month; a bar is a link to it. */
export function monthBars(bars: readonly MonthBar[], label: string, says: (bar: MonthBar) => string): Html {
  const most = Math.max(1, ...bars.map(({ count }) => count))
  const width = bars.length * STEP - GAP
  const drawn = bars.map((bar, i) => {
    const height = bar.count === 0 ? 0 : Math.max(LEAST_BAR, (bar.count / most) * (HEIGHT - 4))
    const rects = html`<rect class="room" x="${i * STEP}" y="0" width="${STEP}" height="${HEIGHT}"/><rect class="bar" x="${i * STEP}" y="${(HEIGHT - height).toFixed(1)}" width="${STEP - GAP}" height="${height.toFixed(1)}" rx="1"/>`
    if (bar.count === 0) return html`<g><title>${says(bar)}</title>${rects}</g>`
    return html`<a href="${bar.address}" aria-label="${says(bar)}"${bar.isChosen && html` class="chosen" aria-current="true"`}><title>${says(bar)}</title>${rects}</a>`
  })
  // A picture with links in it is a group: an image would hide them from whoever cannot see it.
  return html`<svg class="months" viewBox="0 0 ${width} ${HEIGHT}" role="group" aria-label="${label}">${drawn}</svg>`
}
