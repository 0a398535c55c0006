import type { ask } from "../../answers/ask.ts"
import type { why } from "../../answers/why.ts"
import { sectionsOf, shareText, whyMarkdown } from "../../answers/why-page.ts"
import { grouped } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { clip, padEnd, paint, safe, safeLine, type Terminal, wrap, wrapAfter } from "../../render/terminal.ts"
import { many, when } from "../../render/words.ts"
import { laterChangeLines } from "../../tools/changed-later.ts"
import { type PrintContext, type PrintedOutput, showFirst } from "./words.ts"

type AskOutput = OutputOf<typeof ask>

export function printAsk(output: AskOutput, { terminal }: PrintContext): PrintedOutput {
  const { answer, sources, extractive, likely = [] } = output
  if (sources.length === 0)
    return { lines: [], notes: [answer, ...notesOf(output)], listing: likely.map(({ ref }) => ref) }
  const lines = extractive
    ? quotesIn(answer).flatMap((quote) => quoteLines(quote, sources, terminal))
    : [
        ...safe(answer)
          .split("\n")
          .flatMap((line) => wrap(line, terminal.columns)),
        "",
        ...sourceLines(sources, terminal),
      ]
  return {
    lines: [confidenceLine(output), "", ...lines],
    notes: notesOf(output),
    listing: sources.map(({ ref }) => ref),
  }
}

/** How reliable the answer is. The first line that people see. */
export function confidenceLine({ confidence, extractive }: AskOutput): string {
  return `Confidence: ${confidence}. ${extractive ? "Exact quotes." : "Written by a model from these sources."}`
}

type Quote = { text: string; n: number }

function quotesIn(answer: string): Quote[] {
  return [...answer.matchAll(/“([\s\S]*?)” \[(\d+)\](?=\n|$)/g)].map(([, text, n]) => ({ text: text!, n: Number(n) }))
}

/** A quote with its source below it. */
function quoteLines({ text, n }: Quote, sources: AskOutput["sources"], terminal: Terminal): string[] {
  const lines = safe(text)
    .split("\n")
    .flatMap((line) => (TABLE_RULE.test(line) || CODE_FENCE.test(line) ? [] : withoutPipes(line)))
  const indented = lines.flatMap((line) => wrapAfter("  ", line, terminal.columns))
  const cited = sources.filter((source) => source.n === n)
  return [...indented, ...sourceLines(cited, terminal), ""]
}

const TABLE_ROW = /^\s*\|.*\|\s*$/
const TABLE_RULE = /^\s*\|(?:\s*:?-+:?\s*\|)+\s*$/
const CODE_FENCE = /^\s*(?:`{3,}|~{3,})\w*\s*$/

/** A row of a Markdown table as one line of text. */
function withoutPipes(line: string): string {
  if (!TABLE_ROW.test(line)) return line
  const cells = line.trim().slice(1, -1).split("|")
  return cells
    .map((cell) => cell.trim())
    .filter((cell) => cell !== "")
    .join(" · ")
}

export function sourceLines(sources: AskOutput["sources"], terminal: Terminal): string[] {
  const width = Math.max(...sources.map(({ n }) => String(n).length)) + 4
  return sources.flatMap(({ n, ref, title, origin, date, ...changed }) => [
    `${paint(terminal, "cyan", padEnd(`[${n}]`, width))}${safeLine(ref)}`,
    ...wrap([date, `said by: ${origin}`, safeLine(title)].filter(Boolean).join(" · "), terminal.columns - width).map(
      (line) => `${" ".repeat(width)}${paint(terminal, "dim", line)}`,
    ),
    ...laterChangeLines(changed).map((line) => " ".repeat(width) + clip(safeLine(line), terminal.columns - width)),
  ])
}

/** The likeliest conversations if there is no answer, what is uncertain or left out, and what it cost. */
export function notesOf({ likely = [], note, used: usage }: AskOutput): string[] {
  return [
    ...(likely.length > 0 ? ["These conversations are the most likely to contain it:"] : []),
    ...likely.flatMap(({ ref, title, date }, i) => [
      `${i + 1}  ${safeLine(ref)}`,
      `   ${[date, safeLine(title)].filter(Boolean).join(" · ")}`,
    ]),
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

function conversationLines(
  conversation: Conversation,
  number: number,
  lineCount: number,
  terminal: Terminal,
): string[] {
  const facts = `${shareText(conversation, lineCount)} · ${conversation.source} · ${when(conversation.date)} · ${safeLine(conversation.ref)}`
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
