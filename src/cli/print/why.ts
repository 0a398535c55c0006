import type { why } from "../../answers/why.ts"
import { sectionsOf, shareText, whyMarkdown } from "../../answers/why-page.ts"
import type { OutputOf } from "../../core/tool.ts"
import { paint, safeLine, type Terminal, wrap, wrapAfter } from "../../render/terminal.ts"
import { many, when } from "../../render/words.ts"
import type { PrintContext, Printed } from "./printer.ts"
import { showFirst } from "./words.ts"

type Output = OutputOf<typeof why>
type Conversation = Output["conversations"][number]

export function printWhy(output: Output, context: PrintContext, { pr }: { pr?: boolean } = {}): Printed {
  const { conversations, notes, commits, answer, lines, unknown } = output
  const { terminal } = context
  const listing = conversations.map((one) => one.asked.at(-1)?.ref ?? one.ref)
  if (conversations.length === 0)
    return { lines: [], notes: ["No conversation is known to have written this.", ...notes] }
  if (pr) return { lines: whyMarkdown(output), notes, listing }
  return {
    lines: [
      ...commits.map(({ hash, subject, date }) => `${hash.slice(0, 10)}  ${safeLine(subject)}  ${when(date)}`),
      ...(commits.length > 0 ? [""] : []),
      ...(answer ? [...wrap(safeLine(answer.text), terminal.columns), ...sourceLines(answer.sources), ""] : []),
      ...conversations.flatMap((one, i) => conversationLines(one, i + 1, lines, terminal)),
    ],
    notes: [
      ...(unknown > 0 ? [`${many(unknown, "line")} of ${lines}: unknown.`] : []),
      `Read on: ${showFirst(listing, context)}`,
      ...notes,
    ],
    listing,
  }
}

function sourceLines(sources: { n: number; ref: string }[]): string[] {
  return ["", ...sources.map(({ n, ref }) => `[${n}]  ${safeLine(ref)}`)]
}

const INDENT = "    "

function conversationLines(one: Conversation, number: number, lines: number, terminal: Terminal): string[] {
  const facts = `${shareText(one, lines)} · ${one.source} · ${when(one.date)} · ${safeLine(one.ref)}`
  return [
    `${paint(terminal, "cyan", String(number).padStart(2))}  ${paint(terminal, "bold", safeLine(one.title))}`,
    ...wrap(facts, terminal.columns - INDENT.length).map((line) => INDENT + paint(terminal, "dim", line)),
    ...sectionsOf(one).flatMap(({ title, rows }) => [
      INDENT + paint(terminal, "bold", title),
      ...rows.flatMap(({ text, ref }) => wrapAfter(`${INDENT}  `, `${text} ${numberOf(ref)}`, terminal.columns)),
    ]),
    "",
  ]
}

/** The conversation is named above. */
function numberOf(ref: string): string {
  return ref.slice(ref.lastIndexOf("#"))
}
