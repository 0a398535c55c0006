import type { TraceRow } from "../../core/trace.ts"
import { addsUp } from "../../core/trace.ts"
import { safeLine } from "../../render/terminal.ts"

type Sum = Pick<TraceRow, "score_final" | "terms">

/** A score as the sum it is: words 6.87 + pairs 2.23 = 9.10 */
export function sumLine(row: Sum): string {
  const decimals = decimalsFor(row)
  const parts = row.terms.map(({ name, value }, i) => {
    const sign = value < 0 ? "− " : i === 0 ? "" : "+ "
    return `${sign}${safeLine(name)} ${Math.abs(value).toFixed(decimals)}`
  })
  return `${parts.join(" ")} ${addsUp(row) ? "=" : "≠"} ${row.score_final.toFixed(decimals)}`
}

/** Four digits that tell something, whatever the scale: bm25 counts in tens, fused ranks in hundredths. */
function decimalsFor({ score_final, terms }: Sum): number {
  const largest = Math.max(...[score_final, ...terms.map((term) => term.value)].map(Math.abs))
  return largest === 0 ? 0 : Math.min(9, Math.max(2, 3 - Math.floor(Math.log10(largest))))
}
