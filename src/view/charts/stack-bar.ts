import { type Html, html } from "../../render/html/html.ts"

const WIDTH = 100

/** One bar, stacked of its parts in the order of the colours; `most` is as long as the longest beside it. */
export function stackBar(parts: number[], most: number, label: string): Html {
  let x = 0
  const rects = parts.map((part, colour) => {
    const width = (part / Math.max(most, 1e-9)) * WIDTH
    const rect =
      width > 0 &&
      html`<rect class="colour${colour}" x="${x.toFixed(2)}" y="0" width="${width.toFixed(2)}" height="10"/>`
    x += width
    return rect
  })
  return html`<svg class="stack" viewBox="0 0 ${WIDTH} 10" preserveAspectRatio="none" role="img" aria-label="${label}">${rects}</svg>`
}

/** What a colour of the bars means. */
export function swatch(colour: number): Html {
  return html`<svg class="swatch" viewBox="0 0 10 10" aria-hidden="true"><rect class="colour${colour}" width="10" height="10" rx="2"/></svg>`
}
