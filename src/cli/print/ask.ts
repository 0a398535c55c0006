import type { ask } from "../../answers/ask.ts"
import type { why } from "../../answers/why.ts"
import { sectionsOf, shareText, whyMarkdown } from "../../answers/why-page.ts"
import { grouped } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { padEnd, paint, safe, safeLine, type Terminal, wrap, wrapAfter } from "../../render/terminal.ts"
import { many, when } from "../../render/words.ts"
import { type PrintContext, type PrintedOutput, showFirst } from "./words.ts"

type AskOutput = OutputOf<typeof ask>

export function printAsk(output: AskOutput, { terminal }: PrintContext): PrintedOutput {
  const { answer, sources } = output
  if (sources.length === 0) return { lines: [], notes: [answer, ...notesOf(output)], listing: [] }
  const text = safe(answer)
    .split("\n")
    .flatMap((line) => wrap(line, terminal.columns))
  return {
    lines: [...text, "", ...sourceLines(sources, terminal)],
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

/** How reliable the answer is, what is uncertain or left out, and what it cost. */
export function notesOf({ sources, confidence, extractive, note, used: usage }: AskOutput): string[] {
  const basis = extractive ? "Exact quotes." : "Written by a model from these sources."
  return [
    ...(sources.length > 0 ? [`Confidence: ${confidence}. ${basis}`] : []),
    ...(note ? [safe(note)] : []),
    ...usageLine(usage),
  ]
}

/** The cost that the agent itself reports, at list prices. A plan may cover it. */
export function costText({ cost_usd }: { cost_usd?: number | undefined }): string {
  return cost_usd === undefined ? "" : `; $${cost_usd.toFixed(cost_usd < 0.1 ? 4 : 2)} by the agent's own count`
}

function usageLine(usage: AskOutput["used"]): string[] {
  if (!usage) return []
  const approximately = usage.is_estimate ? "about " : ""
  return [
    `${safeLine(usage.model)}: ${many(usage.calls, "call")}, ${approximately}${usage.input_tokens} tokens read and ${usage.output_tokens} written${costText(usage)}.`,
  ]
}

type Output = OutputOf<typeof why>
type Conversation = Output["conversations"][number]

export function printWhy(output: Output, context: PrintContext, { pr }: { pr?: boolean } = {}): PrintedOutput {
  const { conversations, notes, commits, answer, lines, unknown } = output
  const { terminal } = context
  const listing = conversations.map((conversation) => conversation.asked.at(-1)?.ref ?? conversation.ref)
  if (conversations.length === 0)
    return { lines: [], notes: ["No conversation is known to have written this.", ...notes] }
  if (pr) return { lines: whyMarkdown(output), notes, listing }
  return {
    lines: [
      ...commits.map(({ hash, subject, date }) => `${hash.slice(0, 10)}  ${safeLine(subject)}  ${when(date)}`),
      ...(commits.length > 0 ? [""] : []),
      ...(answer ? [...wrap(safeLine(answer.text), terminal.columns), ...whySourceLines(answer.sources), ""] : []),
      ...conversations.flatMap((conversation, i) => conversationLines(conversation, i + 1, lines, terminal)),
    ],
    notes: [
      ...(unknown > 0
        ? [`Of ${many(lines, "line")}, ${grouped(unknown)} ${unknown === 1 ? "is" : "are"} of unknown origin.`]
        : []),
      `Read more: ${showFirst(listing, context)}`,
      ...notes,
    ],
    listing,
  }
}

function whySourceLines(sources: { n: number; ref: string }[]): string[] {
  return ["", ...sources.map(({ n, ref }) => `[${n}]  ${safeLine(ref)}`)]
}

const INDENT = "    "

function conversationLines(conversation: Conversation, number: number, lines: number, terminal: Terminal): string[] {
  const facts = `${shareText(conversation, lines)} · ${conversation.source} · ${when(conversation.date)} · ${safeLine(conversation.ref)}`
  return [
    `${paint(terminal, "cyan", String(number).padStart(2))}  ${paint(terminal, "bold", safeLine(conversation.title))}`,
    ...wrap(facts, terminal.columns - INDENT.length).map((line) => INDENT + paint(terminal, "dim", line)),
    ...sectionsOf(conversation).flatMap(({ title, rows }) => [
      INDENT + paint(terminal, "bold", title),
      ...rows.flatMap(({ text, ref }) => wrapAfter(`${INDENT}  `, `${text} ${numberOf(ref)}`, terminal.columns)),
    ]),
    "",
  ]
}

/** The message number alone, because the conversation is named above it. */
function numberOf(ref: string): string {
  return ref.slice(ref.lastIndexOf("#"))
}
