import { padEnd, paint, safe, safeLine, wrap } from "../../render/terminal.ts"
import type { PrintContext, Printed } from "./printer.ts"

type Output = {
  answer: string
  sources: { n: number; ref: string; title: string; origin: string; date?: string }[]
  confidence: string
  extractive: boolean
  partial?: boolean
  note?: string
  used?: { model: string; calls: number; input_tokens: number; output_tokens: number; is_estimate: boolean }
}

export function printAsk(output: Output, { terminal }: PrintContext): Printed {
  const { answer, sources, confidence, extractive, note, used } = output
  if (sources.length === 0) return { lines: [], notes: [answer, ...(note ? [safe(note)] : []), ...usedLine(used)] }
  const width = Math.max(...sources.map(({ n }) => String(n).length)) + 4
  const lines = [
    ...safe(answer)
      .split("\n")
      .flatMap((line) => wrap(line, terminal.columns)),
    "",
    ...sources.flatMap(({ n, ref, title, origin, date }) => [
      `${paint(terminal, "cyan", padEnd(`[${n}]`, width))}${safeLine(ref)}`,
      ...wrap([date, `words of: ${origin}`, safeLine(title)].filter(Boolean).join(" · "), terminal.columns - width).map(
        (line) => `${" ".repeat(width)}${paint(terminal, "dim", line)}`,
      ),
    ]),
  ]
  const how = extractive ? "Quotes, as they were written." : "Written by a model from these sources."
  return {
    lines,
    notes: [`Confidence: ${confidence}. ${how}`, ...(note ? [safe(note)] : []), ...usedLine(used)],
    listing: sources.map(({ ref }) => ref),
  }
}

function usedLine(used: Output["used"]): string[] {
  if (!used) return []
  const about = used.is_estimate ? "about " : ""
  return [
    `${safeLine(used.model)}: ${used.calls} calls, ${about}${used.input_tokens} tokens read and ${used.output_tokens} written.`,
  ]
}
