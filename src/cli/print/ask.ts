import type { ask } from "../../answers/ask.ts"
import type { why } from "../../answers/why.ts"
import { sectionsOf, shareText, whyMarkdown } from "../../answers/why-page.ts"
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
export function notesOf({ sources, confidence, extractive, note, used }: AskOutput): string[] {
  const how = extractive ? "Exact quotes." : "Written by a model from these sources."
  return [
    ...(sources.length > 0 ? [`Confidence: ${confidence}. ${how}`] : []),
    ...(note ? [safe(note)] : []),
    ...usageLine(used),
  ]
}

/** The cost that the agent itself reports, at list prices. A plan may cover it. */
export function moneyWords({ cost_usd }: { cost_usd?: number | undefined }): string {
  return cost_usd === undefined ? "" : `; $${cost_usd.toFixed(cost_usd < 0.1 ? 4 : 2)} by its own count`
}

function usageLine(used: AskOutput["used"]): string[] {
  if (!used) return []
  const about = used.is_estimate ? "about " : ""
  return [
    `${safeLine(used.model)}: ${used.calls} calls, ${about}${used.input_tokens} tokens read and ${used.output_tokens} written${moneyWords(used)}.`,
  ]
}

type Output = OutputOf<typeof why>
type Conversation = Output["conversations"][number]

export function printWhy(output: Output, context: PrintContext, { pr }: { pr?: boolean } = {}): PrintedOutput {
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
      ...(answer ? [...wrap(safeLine(answer.text), terminal.columns), ...whySourceLines(answer.sources), ""] : []),
      ...conversations.flatMap((one, i) => conversationLines(one, i + 1, lines, terminal)),
    ],
    notes: [
      ...(unknown > 0 ? [`${many(unknown, "line")} of ${lines}: unknown.`] : []),
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

/** The message number alone, because the conversation is named above it. */
function numberOf(ref: string): string {
  return ref.slice(ref.lastIndexOf("#"))
}
