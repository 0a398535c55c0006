import { byName } from "../../core/by-name.ts"
import { formatCount } from "../../core/format.ts"
import type { InputOf, OutputOf } from "../../core/tool.ts"
import { clip, paint, safe, safeLine, wrap } from "../../render/terminal.ts"
import { many, shortPath, when } from "../../render/words.ts"
import type { show } from "../../tools/show/show.ts"
import type { PrintContext, Printed } from "./printer.ts"

type Output = OutputOf<typeof show>
/** What stands above every view of a conversation. */
export type Head = {
  id: string
  title: string
  project: string
  date: string
  kind: string
  parent?: string
  fork_of?: string
  archived?: boolean
  files?: string[]
}
type ShownConversation = Output["conversations"][number]
type ShownMessage = ShownConversation["messages"][number]

const NAMES: Record<string, string> = { user: "User", assistant: "Assistant", tool: "Tool", system: "System" }

export function printShow(output: Output, context: PrintContext, { format }: InputOf<typeof show>): Printed {
  const lines: string[] = []
  for (const conversation of output.conversations) {
    lines.push(...headLines(conversation, context), "")
    for (const message of conversation.messages)
      lines.push(...(format === "outline" ? [outlineLine(message, context)] : messageLines(message, context)))
    if (format === "outline") lines.push("")
  }
  return { lines, notes: notesOfShow(output) }
}

/** What was left out, and how to go on. */
export function notesOfShow(output: Output): string[] {
  const notes = output.conversations.flatMap(endNotes)
  if (output.left_out)
    notes.push(
      `${many(output.left_out.conversations, "conversation")} left out to stay within the budget. Continue with: ${output.left_out.continue_with}`,
    )
  return notes
}

export function headLines(conversation: Head, { terminal, home }: PrintContext): string[] {
  const facts = [conversation.id, shortPath(safeLine(conversation.project), home), when(conversation.date)].filter(
    (fact) => fact !== "",
  )
  const title = safeLine(conversation.title)
  const lines = [
    ...(terminal.interactive ? wrap(title, terminal.columns) : [title]).map((line) => paint(terminal, "bold", line)),
    ...wrap(facts.join(" · "), terminal.columns).map((line) => paint(terminal, "dim", line)),
  ]
  if (conversation.parent) lines.push(paint(terminal, "dim", `a subagent of ${conversation.parent}`))
  if (conversation.fork_of) lines.push(paint(terminal, "dim", `a fork of ${conversation.fork_of}`))
  if (conversation.archived) lines.push(paint(terminal, "dim", "the agent deleted its file; this is the only copy"))
  if (conversation.files && conversation.files.length > 0)
    lines.push(paint(terminal, "dim", clip(`files: ${conversation.files.map(safeLine).join(", ")}`, terminal.columns)))
  return lines
}

function speaker(message: { role: string; origin: string }): string {
  const name = byName(NAMES, message.role) ?? message.role
  return message.role === "user" && !message.origin.includes("person") ? `${name}, injected` : name
}

function outlineLine(message: ShownMessage, { terminal }: PrintContext): string {
  const state = message.state ? ` (${message.state})` : ""
  const size = ` (${formatCount(message.tokens)} tokens)${state}`
  const head = `${String(message.index).padStart(4)}  [${speaker(message)}] `
  return `${paint(terminal, "cyan", head)}${clip(safeLine(message.content), terminal.columns - head.length - size.length)}${paint(terminal, "dim", size)}`
}

function messageLines(message: ShownMessage, context: PrintContext): string[] {
  return [messageHead(message, context), safe(message.content), ""]
}

export function messageHead(
  message: { index: number; role: string; origin: string; date?: string; state?: string },
  { terminal }: PrintContext,
): string {
  const state = message.state ? `, ${message.state}` : ""
  const head = `#${message.index} ${speaker(message)}`
  const rest = `${message.date ? `, ${when(message.date)}` : ""}${state}`
  return paint(terminal, message.role === "user" ? "green" : "cyan", head) + paint(terminal, "dim", rest)
}

function endNotes(conversation: ShownConversation): string[] {
  const notes: string[] = []
  for (const { index, cut } of conversation.messages)
    if (cut) notes.push(`Message ${index} is longer than the budget. All of it: ${cut.continue_with}`)
  if (conversation.hidden_parts) notes.push(`${many(conversation.hidden_parts, "part")} hidden.`)
  if (conversation.truncated)
    notes.push(
      `${many(conversation.truncated.messages_left_out, "message")} left out to stay within the budget. Continue with: ${conversation.truncated.continue_with}`,
    )
  if (conversation.has_more_before || conversation.has_more_after) {
    const sides = [conversation.has_more_before && "before", conversation.has_more_after && "after"]
      .filter(Boolean)
      .join(" and ")
    notes.push(`There is more ${sides}: dex show ${conversation.id}`)
  }
  return notes
}
