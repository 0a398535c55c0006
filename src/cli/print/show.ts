import { byName } from "../../core/by-name.ts"
import { formatCount, messageText } from "../../core/format.ts"
import type { InputOf, OutputOf } from "../../core/tool.ts"
import { clip, paint, safe, safeLine, type Terminal, wrap, wrapAfter } from "../../render/terminal.ts"
import { many, shortPath, when } from "../../render/words.ts"
import type { read, scan, timeline } from "../../tools/show/forms.ts"
import type { show } from "../../tools/show/show.ts"
import { formLine } from "../../tools/view.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"

type Output = OutputOf<typeof show>
/** The facts above every view of a conversation. */
export type Head = {
  id: string
  title: string
  project: string
  date: string
  kind: string
  parent?: string
  fork_of?: string
  archived?: boolean
  imported_from?: string
  files?: string[]
}
type ShownConversation = Output["conversations"][number]
type ShownMessage = ShownConversation["messages"][number]

const ROLE_NAMES: Record<string, string> = { user: "User", assistant: "Assistant", tool: "Tool", system: "System" }

export function printShow(output: Output, context: PrintContext, { format }: InputOf<typeof show>): PrintedOutput {
  const lines: string[] = []
  for (const conversation of output.conversations) {
    lines.push(...headLines(conversation, context), "")
    if (conversation.summary) lines.push(...summaryLines(conversation.summary, context))
    for (const message of conversation.messages)
      lines.push(...(format === "outline" ? [outlineLine(message, context)] : messageLines(message, context)))
    if (format === "outline") lines.push("")
  }
  return { lines, notes: notesOfShow(output) }
}

type Summary = NonNullable<ShownConversation["summary"]>

/** A model's words, if there are any, and then what the record says, each line with the number of its message. */
function summaryLines({ words, goal, state, decisions, files }: Summary, { terminal }: PrintContext): string[] {
  const room = terminal.interactive ? terminal.columns : Number.POSITIVE_INFINITY
  const numberOf = (ref: string) => safe(ref.slice(ref.lastIndexOf("#")))
  const section = (title: string, rows: { ref: string; text: string }[]) => {
    if (rows.length === 0) return []
    const width = Math.max(...rows.map(({ ref }) => numberOf(ref).length))
    const lines = rows.flatMap(({ ref, text }) => wrapAfter(`  ${numberOf(ref).padEnd(width)}  `, safeLine(text), room))
    return [paint(terminal, "bold", title), ...lines, ""]
  }
  const sources = words?.sources.map(({ n, ref }) => `[${n}] ${numberOf(ref)}`).join("  ") ?? ""
  const quoted = (rows: Summary["goal"]) =>
    rows.map(({ ref, question, text }) => ({ ref, text: question === undefined ? text : `${text} (${question})` }))
  return [
    ...(words ? [...wrap(safeLine(words.text), room), paint(terminal, "dim", sources), ""] : []),
    ...section("Goal", quoted(goal)),
    ...section("State", quoted(state)),
    ...section("Decisions", quoted(decisions)),
    ...section(
      "Files",
      files.map(({ ref, kind, path, added, removed }) => ({
        ref,
        text: kind === "edited" ? `${path} +${added} -${removed}` : `${path} (read)`,
      })),
    ),
  ]
}

/** Notes on what was left out, and the command that continues. */
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
  if (conversation.imported_from !== undefined)
    lines.push(paint(terminal, "dim", `imported from ${safeLine(conversation.imported_from)}`))
  else if (conversation.archived)
    lines.push(paint(terminal, "dim", "the agent deleted its file; this is the only copy"))
  if (conversation.files && conversation.files.length > 0)
    lines.push(paint(terminal, "dim", clip(`files: ${conversation.files.map(safeLine).join(", ")}`, terminal.columns)))
  return lines
}

function speaker(message: { role: string; origin: string }): string {
  const name = byName(ROLE_NAMES, message.role) ?? message.role
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
  const { summary } = conversation
  const omitted = Object.values(summary?.left_out ?? {}).reduce((sum, count) => sum + count, 0)
  if (omitted > 0) notes.push(`${many(omitted, "item")} left out to stay within the budget; --max-tokens shows more.`)
  if (summary?.note !== undefined) notes.push(summary.note)
  for (const { index, cut } of conversation.messages)
    if (cut) notes.push(`Message ${index} is longer than the budget. To read all of it: ${cut.continue_with}`)
  if (conversation.hidden_parts) notes.push(`${many(conversation.hidden_parts, "part")} hidden.`)
  if (conversation.truncated)
    notes.push(
      `${many(conversation.truncated.messages_left_out, "message")} left out to stay within the budget. Continue with: ${conversation.truncated.continue_with}`,
    )
  const sides = sidesWithMore(conversation)
  if (sides !== "") notes.push(`There is more ${sides}: dex show ${conversation.id}`)
  return notes
}

/** "before", "after" or "before and after", depending on where there is more. */
function sidesWithMore(output: { has_more_before?: boolean; has_more_after?: boolean }): string {
  return [output.has_more_before && "before", output.has_more_after && "after"].filter(Boolean).join(" and ")
}

export function printRead(output: OutputOf<typeof read>, context: PrintContext): PrintedOutput {
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
      notes.push(`Message ${message.index} is shown up to character ${message.cut.to} of ${message.cut.of}.`)
  }
  if (output.not_found !== undefined) notes.push(`There is no message with the number ${output.not_found}.`)
  if (output.hidden_parts) notes.push(`${many(output.hidden_parts, "part")} hidden.`)
  if (output.truncated)
    notes.push(
      `${many(output.truncated.messages_left_out, "message")} left out. Continue with: ${output.truncated.continue_with}`,
    )
  return { lines, notes }
}

type Scan = OutputOf<typeof scan>

export function printScan(output: Scan, context: PrintContext): PrintedOutput {
  const notes: string[] = []
  if (output.lines.length === 0) notes.push("There is no message to show.")
  else
    notes.push(
      `${many(output.lines.length, "message")}, about ${output.estimated_tokens} tokens. Read some: ${formLine(context, "read", [shortId(output.id), "5-10"])}`,
    )
  if (output.hidden_parts) notes.push(`${many(output.hidden_parts, "part")} hidden.`)
  if (output.left_out) notes.push(leftOutNote(output.left_out))
  if (output.truncated) {
    notes.push(
      `${many(output.truncated.messages_left_out, "message")} left out at the end to stay within the budget. Continue with: ${output.truncated.continue_with}`,
    )
  }
  return {
    lines: [
      ...headLines(output, context),
      "",
      ...output.lines.flatMap((line) => wrapLabelledLine(line, context.terminal)),
    ],
    notes,
  }
}

const OMITTED_NAMES: Record<NonNullable<Scan["left_out"]>[number]["kind"], [one: string, more: string]> = {
  results: ["tool result", "tool results"],
  asides: ["message of thoughts or injected text", "messages of thoughts or injected text"],
  calls: ["tool call", "tool calls"],
  failures: ["failed call or its output", "failed calls and their outputs"],
}

function leftOutNote(leftOut: NonNullable<Scan["left_out"]>): string {
  const kinds = leftOut.map(({ kind, messages }) => many(messages, ...OMITTED_NAMES[kind]))
  return `Left out between these lines, to keep the others readable: ${kinds.join(", ")}. A larger --max-tokens shows them.`
}

type Timeline = OutputOf<typeof timeline>

export function printTimeline(output: Timeline, context: PrintContext): PrintedOutput {
  const notes: string[] = []
  const others = (output.others ?? []).map(({ id, title }) =>
    paint(context.terminal, "dim", safe(`with ${id} ${title}`)),
  )
  if (output.hidden_parts) notes.push(`${many(output.hidden_parts, "part")} hidden.`)
  if (output.truncated) {
    notes.push(`${many(output.truncated.messages_left_out, "message")} left out to stay within the budget.`)
    if (output.truncated.continue_before) notes.push(`To read earlier messages: ${output.truncated.continue_before}`)
    if (output.truncated.continue_with) notes.push(`To read later messages: ${output.truncated.continue_with}`)
  } else if (sidesWithMore(output) !== "") {
    const readCommand = formLine(context, "read", [shortId(output.id), String(output.message_index)])
    notes.push(
      `There is more ${sidesWithMore(output)}: larger values of --before and --after show more. To read the message in full: ${readCommand}`,
    )
  }
  return {
    lines: [
      ...headLines(output, context),
      ...others,
      "",
      ...output.lines.flatMap((line) => wrapLabelledLine(line, context.terminal)),
    ],
    notes,
  }
}

/** Wraps a line without cutting it, because the caller chose how much of a message is shown. */
function wrapLabelledLine(line: string, terminal: Terminal): string[] {
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
