import type { OutputOf } from "../../core/tool.ts"
import { clip, paint, safeLine, wrap } from "../../render/terminal.ts"
import type { suggest } from "../../tools/suggest/suggest.ts"
import type { PrintContext, Printed } from "./printer.ts"
import { printSuggestions, saidLines } from "./suggestions.ts"
import { kindName, whereTo } from "./words.ts"

type Output = OutputOf<typeof suggest>

export function printSuggest(output: Output, context: PrintContext): Printed {
  const { terminal } = context
  const told = output.suggestions
  const waiting = output.waiting ? printSuggestions({ suggestions: output.waiting, notes: [] }, context, {}).lines : []
  if (told.length === 0)
    return {
      lines: waiting,
      notes: ["No suggestions here. `dex search` looks for words.", ...output.notes],
    }
  const room = terminal.columns - 4
  const lines = told.flatMap(({ kind, title, summary, reason, relevance, ref }, i) => [
    `${paint(terminal, "cyan", String(i + 1).padStart(2))}  ${paint(terminal, "bold", clip(safeLine(title), room))}`,
    ...[
      ...saidLines(summary, room),
      ...[
        ...wrap(safeLine(reason), room),
        ...whereTo([kindName(kind), `${percent(relevance)} likely to help`], ref && safeLine(ref), room),
      ].map((line) => paint(terminal, "dim", line)),
    ].map((line) => `    ${line}`),
    "",
  ])
  return {
    lines: [...lines, ...waiting],
    notes: [`Did one help? dex feedback ${output.id.slice(0, 8)} used --item 1`, ...output.notes],
    listing: told.map(({ ref }) => ref ?? ""),
  }
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
