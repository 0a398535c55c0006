import type { OutputOf } from "../../core/tool.ts"
import { paint, safe, type Terminal, wrapAfter } from "../../render/terminal.ts"
import { many } from "../../render/words.ts"
import type { scan } from "../../tools/scan/scan.ts"
import type { timeline } from "../../tools/timeline/timeline.ts"
import type { PrintContext, Printed } from "./printer.ts"
import { headLines } from "./show.ts"

// A conversation as lines: scan and timeline.

type Scan = OutputOf<typeof scan>

export function printScan(output: Scan, context: PrintContext): Printed {
  const notes: string[] = []
  if (output.lines.length === 0) notes.push("There is no message to show.")
  else
    notes.push(
      `${many(output.lines.length, "message")}, about ${output.estimated_tokens} tokens. Read some: dex read ${shortId(output.id)} 5-10`,
    )
  if (output.hidden_parts) notes.push(`${many(output.hidden_parts, "part")} hidden.`)
  if (output.left_out) notes.push(leftOutNote(output.left_out))
  if (output.truncated) {
    notes.push(
      `${many(output.truncated.messages_left_out, "message")} left out at the end to stay within the budget. Continue with: ${output.truncated.continue_with}`,
    )
  }
  return {
    lines: [...headLines(output, context), "", ...output.lines.flatMap((line) => shown(line, context.terminal))],
    notes,
  }
}

const LEFT_OUT: Record<NonNullable<Scan["left_out"]>[number]["kind"], [one: string, more: string]> = {
  results: ["tool result", "tool results"],
  asides: ["message of thoughts or injected text", "messages of thoughts or injected text"],
  calls: ["tool call", "tool calls"],
  failures: ["failed call or its output", "failed calls and their outputs"],
}

function leftOutNote(leftOut: NonNullable<Scan["left_out"]>): string {
  const kinds = leftOut.map(({ kind, messages }) => many(messages, ...LEFT_OUT[kind]))
  return `Left out between these lines, to keep the others readable: ${kinds.join(", ")}. A larger --max-tokens shows them.`
}

type Timeline = OutputOf<typeof timeline>

export function printTimeline(output: Timeline, context: PrintContext): Printed {
  const notes: string[] = []
  const others = (output.others ?? []).map(({ id, title }) =>
    paint(context.terminal, "dim", safe(`with ${id} ${title}`)),
  )
  if (output.hidden_parts) notes.push(`${many(output.hidden_parts, "part")} hidden.`)
  if (output.truncated) {
    notes.push(`${many(output.truncated.messages_left_out, "message")} left out to stay within the budget.`)
    if (output.truncated.continue_before) notes.push(`Before: ${output.truncated.continue_before}`)
    if (output.truncated.continue_with) notes.push(`After: ${output.truncated.continue_with}`)
  } else if (output.has_more_before || output.has_more_after) {
    const sides = [output.has_more_before && "before", output.has_more_after && "after"].filter(Boolean).join(" and ")
    notes.push(
      `There is more ${sides}: --before and --after widen it. In full: dex read ${shortId(output.id)} ${output.message_index}`,
    )
  }
  return {
    lines: [
      ...headLines(output, context),
      ...others,
      "",
      ...output.lines.flatMap((line) => shown(line, context.terminal)),
    ],
    notes,
  }
}

/** Not cut to the terminal's width: how much of a message is shown was asked for. */
function shown(line: string, terminal: Terminal): string[] {
  const clean = safe(line)
  const label = /^[^\t]*\t/.exec(clean)?.[0] ?? ""
  const role = /^\[[^\]]*\]/.exec(clean.slice(label.length))?.[0] ?? ""
  const rest = clean.slice(label.length + role.length)
  const style = role.startsWith("[user") ? "green" : "cyan"
  const emphasis = label.trimStart().startsWith(">") ? "bold" : "dim"
  const text = paint(terminal, style, role) + rest
  if (!terminal.interactive) return [paint(terminal, emphasis, label) + text]
  return wrapAfter(paint(terminal, emphasis, label.replace("\t", "  ")), text, terminal.columns)
}

function shortId(id: string): string {
  return id.slice(id.indexOf(":") + 1).slice(0, 8)
}
