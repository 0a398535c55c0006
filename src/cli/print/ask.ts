import type { ask } from "../../answers/ask.ts"
import type { OutputOf } from "../../core/tool.ts"
import { padEnd, paint, safe, safeLine, type Terminal, wrap } from "../../render/terminal.ts"
import type { PrintContext, Printed } from "./printer.ts"

export type AskOutput = OutputOf<typeof ask>

export function printAsk(output: AskOutput, { terminal }: PrintContext): Printed {
  const { answer, sources } = output
  if (sources.length === 0) return { lines: [], notes: [answer, ...notesOf(output)], listing: [] }
  const said = safe(answer)
    .split("\n")
    .flatMap((line) => wrap(line, terminal.columns))
  return {
    lines: [...said, "", ...sourceLines(sources, terminal)],
    notes: notesOf(output),
    listing: sources.map(({ ref }) => ref),
  }
}

export function sourceLines(sources: AskOutput["sources"], terminal: Terminal): string[] {
  const width = Math.max(...sources.map(({ n }) => String(n).length)) + 4
  return sources.flatMap(({ n, ref, title, origin, date }) => [
    `${paint(terminal, "cyan", padEnd(`[${n}]`, width))}${safeLine(ref)}`,
    ...wrap([date, `said by: ${origin}`, safeLine(title)].filter(Boolean).join(" · "), terminal.columns - width).map(
      (line) => `${" ".repeat(width)}${paint(terminal, "dim", line)}`,
    ),
  ])
}

/** How much the answer is worth, what is uncertain or left out, and what it cost. */
export function notesOf({ sources, confidence, extractive, note, used }: AskOutput): string[] {
  const how = extractive ? "Exact quotes." : "Written by a model from these sources."
  return [
    ...(sources.length > 0 ? [`Confidence: ${confidence}. ${how}`] : []),
    ...(note ? [safe(note)] : []),
    ...usedLine(used),
  ]
}

/** What the agent that was asked says it cost, at list prices: a plan may cover it. */
export function moneyWords({ cost_usd }: { cost_usd?: number | undefined }): string {
  return cost_usd === undefined ? "" : `; $${cost_usd.toFixed(cost_usd < 0.1 ? 4 : 2)} by its own count`
}

function usedLine(used: AskOutput["used"]): string[] {
  if (!used) return []
  const about = used.is_estimate ? "about " : ""
  return [
    `${safeLine(used.model)}: ${used.calls} calls, ${about}${used.input_tokens} tokens read and ${used.output_tokens} written${moneyWords(used)}.`,
  ]
}
