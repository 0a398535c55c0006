import { type Html, html } from "../../render/html/html.ts"
import { many } from "../../render/words.ts"
import type { LevelCounts } from "../../tools/blame/owner-facts.ts"

const WIDTH = 1000
const LEVEL_NAMES = ["proved", "likely", "unknown"] as const

/** How many lines are proved, likely and unknown: a bar, and the same in words. */
export function shareBar(counts: LevelCounts): Html {
  const { total } = counts
  if (total === 0) return html``
  let from = 0
  const pieces = LEVEL_NAMES.map((level) => {
    const width = (counts[level] / total) * WIDTH
    const piece = html`<rect class="${level}" x="${from.toFixed(1)}" y="0" width="${width.toFixed(1)}" height="10"/>`
    from += width
    return piece
  })
  const said = LEVEL_NAMES.map((level) => `${counts[level]} ${level}`).join(", ")
  const legend = LEVEL_NAMES.map(
    (level) =>
      html`<span><i class="level ${level}" aria-hidden="true"></i>${counts[level]} ${level} <span class="share">${percent(counts[level], total)}</span></span>`,
  )
  return html`<figure class="shares"><svg viewBox="0 0 ${WIDTH} 10" preserveAspectRatio="none" role="img" aria-label="${many(total, "line")}: ${said}">${pieces}</svg><figcaption>${legend}</figcaption></figure>`
}

/** Nothing that is there is said to be 0 %, and nothing but all to be 100 %. */
function percent(part: number, all: number): string {
  const share = (part / all) * 100
  if (part > 0 && share < 1) return "under 1 %"
  return `${part < all ? Math.min(99, Math.round(share)) : 100} %`
}
