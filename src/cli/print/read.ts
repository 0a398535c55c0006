import { messageText } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { paint, safe } from "../../render/terminal.ts"
import { many } from "../../render/words.ts"
import type { read } from "../../tools/read/read.ts"
import type { PrintContext, Printed } from "./printer.ts"
import { headLines, messageHead } from "./show.ts"

type Output = OutputOf<typeof read>

export function printRead(output: Output, context: PrintContext): Printed {
  const lines = [...headLines(output, context), ""]
  const notes: string[] = []
  for (const message of output.messages) {
    lines.push(messageHead(message, context))
    if (message.cut && message.cut.from > 0) lines.push(paint(context.terminal, "dim", `… from ${message.cut.from}`))
    for (const part of message.parts) {
      lines.push(safe(messageText({ parts: [part] }, "full")))
      if (part.patch !== undefined) lines.push(safe(part.patch))
      lines.push("")
    }
    if (message.cut && message.cut.to < message.cut.of)
      notes.push(`Message ${message.index} is shown to character ${message.cut.to} of ${message.cut.of}.`)
  }
  if (output.not_found !== undefined) notes.push(`No message has the number ${output.not_found}.`)
  if (output.hidden_parts) notes.push(`${many(output.hidden_parts, "part")} hidden.`)
  if (output.truncated)
    notes.push(
      `${many(output.truncated.messages_left_out, "message")} not read to the end. Continue with: ${output.truncated.continue_with}`,
    )
  return { lines, notes }
}
