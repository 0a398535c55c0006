import { grouped } from "../../core/format.ts"
import { clip, padEnd, paint, safeLine, type Terminal, wrap } from "../../render/terminal.ts"
import type { PrintContext, Printed } from "./printer.ts"
import { many, seconds, shortPath, when } from "./words.ts"

// What was suggested, who is told, and what came of it: suggestions, feedback, subscribe, subscriptions, stats.

type Item = { number: number; kind: string; title: string; reason: string; ref?: string; file?: string; status: string }
type Suggested = { id: string; date: string; status: string; would?: boolean; event: string; items: Item[] }

export function printSuggestions(
  output: { suggestions: Suggested[]; notes: string[] },
  { terminal }: PrintContext,
): Printed {
  if (output.suggestions.length === 0) return { lines: [], notes: ["Nothing was suggested here.", ...output.notes] }
  const lines = output.suggestions.flatMap(({ id, date, status, would, event, items }) => [
    `${paint(terminal, "cyan", id)}  ${when(date)}  ${would ? "not said" : status}, ${event.replaceAll("_", " ")}`,
    ...items.flatMap((item) => itemLines(item, terminal)),
    "",
  ])
  return { lines, notes: ["Did it help? dex feedback <id> used --item 1", ...output.notes] }
}

function itemLines({ number, kind, title, reason, ref, file, status }: Item, terminal: Terminal): string[] {
  const room = terminal.columns - 5
  const verdict = status === "used" || status === "dismissed" ? ` (${status})` : ""
  const where = [file, ref].filter((one) => one !== undefined).map((one) => safeLine(one))
  return [
    `${String(number).padStart(3)}  ${paint(terminal, "bold", clip(`${kind.replaceAll("_", " ")}: ${safeLine(title)}${verdict}`, room))}`,
    ...wrap(safeLine(reason), room).map((line) => `     ${line}`),
    ...(where.length > 0 ? [`     ${paint(terminal, "dim", clip(where.join(" · "), room))}`] : []),
  ]
}

export function printFeedback(output: { status?: string; note: string; reset?: number }): Printed {
  if (output.reset !== undefined) return { lines: [`${many(output.reset, "weight")} taken back. ${output.note}`] }
  return { lines: [`${output.status}. ${output.note}`] }
}

type Told = {
  id: string
  project: string
  patterns: string[]
  deliver: string
  url?: string
  min_relevance: number
  max_per_trigger: number
  cooldown_ms: number
  last_triggered?: string
  enabled: boolean
  disabled_because?: string
}

export function printSubscribed(output: Told & { secret?: string; notes: string[] }, context: PrintContext): Printed {
  const lines = subscriptionLines(output, context)
  if (output.secret === undefined) return { lines, notes: output.notes }
  return {
    lines: [...lines, "", `secret ${output.secret}`],
    notes: [
      "The receiver checks the signature with the secret (Standard Webhooks). It is not shown again.",
      ...output.notes,
    ],
  }
}

type Listed = {
  subscriptions: Told[]
  outbox: { waiting: number; delivered: number; dead: number; last_problem?: string }
  sent?: { delivered: number; again: number; dead: number }
  retried?: number
  notes: string[]
}

export function printSubscriptions(output: Listed, context: PrintContext): Printed {
  const { waiting, delivered, dead, last_problem } = output.outbox
  const notes: string[] = []
  if (output.retried !== undefined) notes.push(`${many(output.retried, "message")} will be tried again.`)
  if (output.sent)
    notes.push(
      `Sent now: ${output.sent.delivered} delivered, ${output.sent.again} to be tried again, ${output.sent.dead} given up.`,
    )
  if (waiting + delivered + dead > 0)
    notes.push(
      `Webhooks: ${grouped(delivered)} delivered, ${grouped(waiting)} waiting, ${grouped(dead)} given up.${last_problem === undefined ? "" : ` Last problem: ${last_problem}.`}${dead > 0 ? " Again: dex subscriptions --retry-dead --send" : ""}`,
    )
  if (output.subscriptions.length === 0)
    return {
      lines: [],
      notes: ["No subscriptions here. For example: dex subscribe 'file:src/auth/**'", ...notes, ...output.notes],
    }
  return {
    lines: output.subscriptions.flatMap((one) => [...subscriptionLines(one, context), ""]),
    notes: [...notes, ...output.notes],
  }
}

function subscriptionLines(one: Told, { terminal, home }: PrintContext): string[] {
  const room = terminal.columns - 4
  const to = one.url === undefined ? one.deliver : `${one.deliver} ${safeLine(one.url)}`
  const last = one.last_triggered === undefined ? "not told yet" : `last told ${when(one.last_triggered)}`
  return [
    `${paint(terminal, "cyan", one.id)}  ${clip(shortPath(safeLine(one.project), home), terminal.columns - one.id.length - 2)}`,
    ...wrap(one.patterns.map(safeLine).join(", "), room).map((line) => `    ${line}`),
    `    ${paint(terminal, "dim", clip(`${to}; from ${one.min_relevance} on, ${one.max_per_trigger} at a time, every ${seconds(one.cooldown_ms)}; ${last}`, room))}`,
    ...(one.enabled
      ? []
      : [`    ${paint(terminal, "yellow", clip(`off: ${safeLine(one.disabled_because ?? "")}`, room))}`]),
  ]
}

export function printUnsubscribed({ id }: { id: string }): Printed {
  return { lines: [`${id} is not told any more.`] }
}

type Rates = { items: number; used: number; dismissed: number }
export type SuggestionStats = Rates & {
  suggestions: number
  would: number
  latency_ms: { median: number; p95: number }
  by_kind: (Rates & { kind: string })[]
  by_relevance: (Rates & { from: number })[]
  weights: Record<string, number>
}

export function printSuggestionStats(stats: SuggestionStats, { terminal }: PrintContext): Printed {
  if (stats.suggestions + stats.would === 0) return { lines: [], notes: ["Nothing was suggested yet."] }
  const label = (name: string) => paint(terminal, "cyan", padEnd(name, 15))
  return {
    lines: [
      `${label("suggestions")}${grouped(stats.suggestions)} with ${many(stats.items, "item")}${stats.would > 0 ? `; ${grouped(stats.would)} more only noted` : ""}`,
      `${label("used")}${grouped(stats.used)} (${share(stats.used, stats.items)})`,
      `${label("dismissed")}${grouped(stats.dismissed)} (${share(stats.dismissed, stats.items)})`,
      `${label("took")}${seconds(stats.latency_ms.median)} in the middle, ${seconds(stats.latency_ms.p95)} for 19 of 20`,
      "",
      ...rows(
        "by kind",
        stats.by_kind.map((row) => [row.kind.replaceAll("_", " "), row]),
        terminal,
      ),
      "",
      ...rows(
        "by relevance",
        stats.by_relevance.map((row) => [`${row.from.toFixed(1)} to ${(row.from + 0.1).toFixed(1)}`, row]),
        terminal,
      ),
      ...learntLines(stats.weights, label),
    ].map((line) => clip(line, terminal.columns)),
    notes: ["A bar is how many of the items were used. What nobody said anything of counts as neither."],
  }
}

function learntLines(weights: Record<string, number>, label: (name: string) => string): string[] {
  const named = Object.entries(weights)
    .filter(([, value]) => Math.abs(value) >= 0.005)
    .sort(([, a], [, b]) => Math.abs(b) - Math.abs(a))
    .slice(0, MOST_WEIGHTS)
    .map(([name, value]) => `${safeLine(name)} ${value > 0 ? "+" : ""}${value.toFixed(2)}`)
  if (named.length === 0) return []
  return ["", ...wrap(named.join(", "), 60).map((line, i) => label(i === 0 ? "learnt" : "") + line)]
}

const BAR = 20
const MOST_WEIGHTS = 8

function rows(title: string, of: [name: string, rates: Rates][], terminal: Terminal): string[] {
  const lines = of.map(([name, { items, used, dismissed }]) => {
    const filled = items === 0 ? 0 : Math.round((BAR * used) / items)
    const bar = paint(terminal, "green", "█".repeat(filled)) + paint(terminal, "dim", "·".repeat(BAR - filled))
    return `  ${padEnd(name, 13)}${bar} ${share(used, items).padStart(5)} of ${grouped(items).padEnd(6)}${dismissed > 0 ? `${grouped(dismissed)} dismissed` : ""}`.trimEnd()
  })
  return [paint(terminal, "bold", title), ...lines]
}

function share(part: number, of: number): string {
  return of === 0 ? "0 %" : `${Math.round((100 * part) / of)} %`
}
