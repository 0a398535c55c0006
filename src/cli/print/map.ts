import { markdownOf } from "../../answers/map/markdown.ts"
import type { MapOutput } from "../../answers/map.ts"
import { formatCount } from "../../core/format.ts"
import { paint, safeLine } from "../../render/terminal.ts"
import { many, shortPath } from "../../render/words.ts"
import { moneyWords } from "./ask.ts"
import type { PrintContext, Printed } from "./printer.ts"

export function printMap(output: MapOutput, context: PrintContext): Printed {
  if (output.conversations === 0)
    return { lines: [], notes: ["No conversations match. `dex list` shows what there is.", ...output.notes] }
  if (output.dry_run) return printDryRun(output, context)
  const { written, result, partial, notes } = output
  const place = written === undefined ? [] : [`Written: ${shortPath(safeLine(written), context.home)}`]
  const lines = written === undefined ? markdownOf(output.title, result ?? {}, []).split("\n") : []
  return { lines: partial ? ["PARTIAL", "", ...lines] : lines, notes: [...place, ...notes, ...costLines(output)] }
}

function printDryRun(output: MapOutput, { terminal }: PrintContext): Printed {
  const { conversations, batches, packed = [], estimated_tokens, batch_tokens, notes } = output
  const rows = packed.map(({ conversations, estimated_tokens, cached }, i) => {
    const full = `${Math.round((100 * estimated_tokens) / batch_tokens)} %`.padStart(6)
    const said = `${formatCount(estimated_tokens).padStart(6)} tokens${full}  ${many(conversations, "conversation")}`
    return `${paint(terminal, "cyan", String(i + 1).padStart(4))}  ${said}${cached ? "  answered already" : ""}`
  })
  const left = packed.filter(({ cached }) => !cached).reduce((sum, batch) => sum + batch.estimated_tokens, 0)
  return {
    lines: [
      `${many(conversations, "conversation")}, ${many(batches.total, "batch", "batches")}, about ${formatCount(estimated_tokens)} tokens to read`,
      ...rows,
    ],
    notes: [
      ...notes,
      `Nothing was asked. ${batches.cached} of ${many(batches.total, "batch", "batches")} are answered already; about ${formatCount(left)} tokens of conversations would be sent, not counting answers and merging.`,
    ],
  }
}

/** What it took. */
export function costLines({ model, batches, merges, used }: MapOutput): string[] {
  if (!used || model === undefined) return []
  const { requests, input_tokens, output_tokens, is_estimate } = used
  return [
    `${many(batches.total, "batch", "batches")}: ${batches.asked ?? 0} asked, ${batches.cached} answered before; ${many((merges?.asked ?? 0) + (merges?.cached ?? 0), "merge")}, ${merges?.cached ?? 0} of them before.`,
    `${safeLine(model)}: ${many(requests, "request")}, ${is_estimate ? "about " : ""}${input_tokens} tokens read and ${output_tokens} written${moneyWords(used)}.`,
  ]
}
