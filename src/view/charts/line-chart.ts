import { type Html, html } from "../../render/html/html.ts"

const WIDTH = 260
const HEIGHT = 48
const MOST_POINTS = 130

/** How a sum grew: a line with the area below it. */
export function lineChart(values: number[], label: string): Html {
  const most = Math.max(...values.slice(-1), 1e-9)
  const step = Math.max(1, Math.ceil(values.length / MOST_POINTS))
  const kept = values.filter((_, i) => i % step === 0 || i === values.length - 1)
  const x = (i: number) => (kept.length === 1 ? WIDTH : (i / (kept.length - 1)) * WIDTH).toFixed(1)
  const y = (value: number) => (HEIGHT - 2 - (value / most) * (HEIGHT - 6)).toFixed(1)
  const line = kept.map((value, i) => `${x(i)},${y(value)}`).join(" ")
  return html`<svg class="line" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${label}" preserveAspectRatio="none"><polygon points="0,${HEIGHT} ${line} ${WIDTH},${HEIGHT}"/><polyline points="${line}"/></svg>`
}
