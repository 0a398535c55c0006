import type { OutputOf } from "../../core/tool.ts"
import { paint, safe, type Terminal } from "../../render/terminal.ts"
import type { scan } from "../../tools/scan/scan.ts"
import type { timeline } from "../../tools/timeline/timeline.ts"
import type { PrintContext, Printed } from "./printer.ts"
import { headLines } from "./show.ts"
import { many } from "./words.ts"

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
  if (output.truncated) {
    const more = output.hidden_parts ? "" : " (--hide tool_result makes more of them fit)"
    notes.push(
      `${many(output.truncated.messages_left_out, "message")} left out to stay within the budget${more}. Continue with: ${output.truncated.continue_with}`,
    )
  }
  return {
    lines: [...headLines(output, context), "", ...output.lines.map((line) => shown(line, context.terminal))],
    notes,
  }
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
    lines: [...headLines(output, context), ...others, "", ...output.lines.map((line) => shown(line, context.terminal))],
    notes,
  }
}

/** Not cut to the terminal's width: how much of a message is shown was asked for. */
function shown(line: string, terminal: Terminal): string {
  const clean = safe(line)
  const label = /^[^\t]*\t/.exec(clean)?.[0] ?? ""
  const role = /^\[[^\]]*\]/.exec(clean.slice(label.length))?.[0] ?? ""
  const rest = clean.slice(label.length + role.length)
  const style = role.startsWith("[user") ? "green" : "cyan"
  return (
    paint(terminal, label.trimStart().startsWith(">") ? "bold" : "dim", label) + paint(terminal, style, role) + rest
  )
}

function shortId(id: string): string {
  return id.slice(id.indexOf(":") + 1).slice(0, 8)
}
