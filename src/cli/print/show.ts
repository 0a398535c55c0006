import { formatCount } from "../../core/format.ts"
import { clip, paint, safe, safeLine, wrap } from "../../render/terminal.ts"
import type { PrintContext, Printed } from "./printer.ts"
import { many, shortPath, when } from "./words.ts"

type Message = {
  index: number
  role: string
  origin: string
  date?: string
  content: string
  tokens: number
  state?: string
}
type Conversation = {
  id: string
  title: string
  project: string
  date: string
  kind: string
  parent?: string
  fork_of?: string
  archived?: boolean
  messages: Message[]
  files: string[]
  total_tokens: number
  has_more_before?: boolean
  has_more_after?: boolean
  truncated?: { messages_left_out: number; continue_with: string }
}
type Output = { conversations: Conversation[] }

const NAMES: Record<string, string> = { user: "User", assistant: "Assistant", tool: "Tool", system: "System" }

export function printShow(output: Output, context: PrintContext, format: string): Printed {
  const lines: string[] = []
  const notes: string[] = []
  for (const conversation of output.conversations) {
    lines.push(...headLines(conversation, context), "")
    for (const message of conversation.messages)
      lines.push(...(format === "outline" ? [outlineLine(message, context)] : messageLines(message, context)))
    if (format === "outline") lines.push("")
    notes.push(...endNotes(conversation))
  }
  return { lines, notes }
}

function headLines(conversation: Conversation, { terminal, home }: PrintContext): string[] {
  const facts = [conversation.id, shortPath(safeLine(conversation.project), home), when(conversation.date)].filter(
    (fact) => fact !== "",
  )
  const lines = [
    paint(terminal, "bold", safeLine(conversation.title)),
    ...wrap(facts.join(" · "), terminal.columns).map((line) => paint(terminal, "dim", line)),
  ]
  if (conversation.parent) lines.push(paint(terminal, "dim", `a subagent of ${conversation.parent}`))
  if (conversation.fork_of) lines.push(paint(terminal, "dim", `a fork of ${conversation.fork_of}`))
  if (conversation.archived)
    lines.push(paint(terminal, "dim", "the agent has deleted its own file; this is the only copy"))
  if (conversation.files.length > 0)
    lines.push(paint(terminal, "dim", clip(`files: ${conversation.files.map(safeLine).join(", ")}`, terminal.columns)))
  return lines
}

function speaker(message: Message): string {
  const name = NAMES[message.role] ?? message.role
  return message.role === "user" && !message.origin.includes("person") ? `${name}, injected` : name
}

function outlineLine(message: Message, { terminal }: PrintContext): string {
  const state = message.state ? ` (${message.state})` : ""
  const size = ` (${formatCount(message.tokens)} tokens)${state}`
  const head = `${String(message.index).padStart(4)}  [${speaker(message)}] `
  return `${paint(terminal, "cyan", head)}${clip(safeLine(message.content), terminal.columns - head.length - size.length)}${paint(terminal, "dim", size)}`
}

function messageLines(message: Message, { terminal }: PrintContext): string[] {
  const state = message.state ? `, ${message.state}` : ""
  const head = `#${message.index} ${speaker(message)}`
  const rest = `${message.date ? `, ${when(message.date)}` : ""}${state}`
  return [
    paint(terminal, message.role === "user" ? "green" : "cyan", head) + paint(terminal, "dim", rest),
    safe(message.content),
    "",
  ]
}

function endNotes(conversation: Conversation): string[] {
  const notes: string[] = []
  if (conversation.truncated)
    notes.push(
      `${many(conversation.truncated.messages_left_out, "message")} left out to stay below the limit. Go on with: ${conversation.truncated.continue_with}`,
    )
  if (conversation.has_more_before || conversation.has_more_after) {
    const sides = [conversation.has_more_before && "before", conversation.has_more_after && "after"]
      .filter(Boolean)
      .join(" and ")
    notes.push(`There is more ${sides}: dex show ${conversation.id}`)
  }
  return notes
}
