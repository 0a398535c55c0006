import { grouped } from "../../core/format.ts"
import { isInTitle } from "../../core/suggestion.ts"
import type { InputOf, OutputOf } from "../../core/tool.ts"
import { clip, padEnd, paint, safeLine, type Terminal, wrap } from "../../render/terminal.ts"
import { many, seconds, shortPath, when } from "../../render/words.ts"
import type { subscriptions } from "../../tools/subscriptions/subscriptions.ts"
import type { suggest } from "../../tools/suggest/suggest.ts"
import type { feedback, report, suggestions } from "../../tools/suggestions/suggestions.ts"
import { factsWithRef, kindName, type PrintContext, type PrintedOutput } from "./words.ts"

type SuggestionsInput = Partial<InputOf<typeof suggestions>>
type Suggested = OutputOf<typeof suggestions>["suggestions"][number]

export function printSuggestions(
  output: { suggestions: Suggested[]; notes: string[] },
  { terminal }: PrintContext,
  input: SuggestionsInput,
): PrintedOutput {
  if (output.suggestions.length === 0) return { lines: [], notes: [nothingNote(input), ...output.notes] }
  const lines = output.suggestions.flatMap(({ id, date, status, would, event, items }) => [
    `${paint(terminal, "cyan", id)}  ${when(date)}  ${would ? "only recorded" : status}, ${event.replaceAll("_", " ")}`,
    ...items.flatMap((item) => itemLines(item, terminal)),
    "",
  ])
  const [openItem] = output.suggestions.flatMap(({ id, items }) =>
    items.filter(({ status }) => !isJudged(status)).map(({ number }) => ({ id, number })),
  )
  const feedbackHint = openItem
    ? [`Did it help? dex suggest --feedback ${openItem.id.slice(0, 8)} used --item ${openItem.number}`]
    : []
  return { lines, notes: [...feedbackHint, ...output.notes] }
}

type ListedItem = Suggested["items"][number]

function nothingNote({ take, all, status, from, subscription }: SuggestionsInput): string {
  if (take) return "Nothing is pending. `dex suggest --list` shows earlier suggestions."
  if (status !== undefined || from !== undefined || subscription !== undefined)
    return `Nothing like that was suggested ${all ? "anywhere" : "here"}. \`dex suggest --list${all ? " --all" : ""}\` shows everything.`
  const allProjectsHint = all ? "" : " `dex suggest --list --all` looks at every project."
  return `Nothing was suggested ${all ? "yet" : "here"}. ${HOW_TO_ASK}${allProjectsHint}`
}

const HOW_TO_ASK = "Ask now: dex suggest --file <file>. Agents get suggestions through hooks (dex install)."

function itemLines(
  { number, kind, title, summary, reason, ref, file, status }: ListedItem,
  terminal: Terminal,
): string[] {
  const room = terminal.columns - 5
  const verdict = isJudged(status) ? `(${status}) ` : ""
  const head = clip(`${verdict}${kindName(kind)}: ${safeLine(title)}`, room)
  const fileText = safeLine(file ?? "")
  return [
    `${String(number).padStart(3)}  ${paint(terminal, "bold", head)}`,
    ...summaryLines(summary, room).map((line) => `     ${line}`),
    ...wrap(safeLine(reason), room).map((line) => `     ${paint(terminal, "dim", line)}`),
    ...factsWithRef([head.includes(fileText) ? "" : fileText], ref && safeLine(ref), room).map(
      (line) => `     ${paint(terminal, "dim", line)}`,
    ),
  ]
}

/** The lines of a summary. A summary that quotes an edit has several. */
function summaryLines(summary: string, room: number): string[] {
  return summary
    .split("\n")
    .filter((line) => line !== "")
    .flatMap((line) => wrap(safeLine(line), room))
}

function isJudged(status: string): boolean {
  return status === "used" || status === "dismissed"
}

type FeedbackOutput = OutputOf<typeof feedback>

export function printFeedback(
  { id, items, note, reset }: FeedbackOutput,
  { terminal }: PrintContext,
  input: { verdict?: string; item?: number },
): PrintedOutput {
  if (reset !== undefined) return { lines: [`${many(reset, "weight was", "weights were")} reset. ${note}`] }
  const judgedItems = items.filter(({ number }) => input.item === undefined || number === input.item)
  return {
    lines: [
      `${paint(terminal, "cyan", id ?? "")}  ${input.verdict}`,
      ...judgedItems.map(
        ({ number, kind, title }) =>
          `${String(number).padStart(3)}  ${clip(`${kindName(kind)}: ${safeLine(title)}`, terminal.columns - 5)}`,
      ),
    ],
    notes: [note],
  }
}

type SubscriptionsOutput = OutputOf<typeof subscriptions>

export function printSubscribed(
  output: ListedSubscription & { secret?: string; notes: string[] },
  context: PrintContext,
): PrintedOutput {
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

type ListedSubscription = SubscriptionsOutput["subscriptions"][number]

export function printSubscriptions(output: SubscriptionsOutput, context: PrintContext): PrintedOutput {
  const { waiting, delivered, dead, last_problem } = output.outbox
  const notes: string[] = []
  if (output.retried !== undefined) notes.push(`${many(output.retried, "message")} will be retried.`)
  if (output.sent)
    notes.push(
      `Sent now: ${output.sent.delivered} delivered, ${output.sent.again} to be retried, ${output.sent.dead} failed permanently.`,
    )
  if (waiting + delivered + dead > 0)
    notes.push(
      `Webhooks: ${grouped(delivered)} delivered, ${grouped(waiting)} waiting, ${grouped(dead)} failed permanently.${last_problem === undefined ? "" : ` Last problem: ${last_problem}.`}${dead > 0 ? " To retry: dex subscribe --list --retry-dead --send" : ""}`,
    )
  if (output.subscriptions.length === 0)
    return {
      lines: [],
      notes: ["No subscriptions here. For example: dex subscribe 'file:src/auth/**'", ...notes, ...output.notes],
    }
  return {
    lines: output.subscriptions.flatMap((subscription) => [...subscriptionLines(subscription, context), ""]),
    notes: [...notes, ...output.notes],
  }
}

function subscriptionLines(subscription: ListedSubscription, { terminal, home }: PrintContext): string[] {
  const room = terminal.columns - 4
  const destination =
    subscription.url === undefined ? subscription.deliver : `${subscription.deliver} ${safeLine(subscription.url)}`
  const lastNotified =
    subscription.last_triggered === undefined
      ? "not notified yet"
      : `last notified ${when(subscription.last_triggered)}`
  const cooldown = subscription.cooldown_ms === 0 ? "" : `, at most every ${seconds(subscription.cooldown_ms)}`
  return [
    `${paint(terminal, "cyan", subscription.id)}  ${clip(shortPath(safeLine(subscription.project), home), terminal.columns - subscription.id.length - 2)}`,
    ...wrap(subscription.patterns.map(safeLine).join(", "), room).map((line) => `    ${line}`),
    `    ${paint(terminal, "dim", clip(`${destination}; relevance ≥ ${subscription.min_relevance}, ${subscription.max_per_trigger} at a time${cooldown}; ${lastNotified}`, room))}`,
    ...(subscription.enabled
      ? []
      : [`    ${paint(terminal, "yellow", clip(`off: ${safeLine(subscription.disabled_because ?? "")}`, room))}`]),
  ]
}

export function printUnsubscribed({ id }: { id: string }): PrintedOutput {
  return { lines: [`Subscription ${id} is removed.`] }
}

type UseReport = OutputOf<typeof report>
type Rates = Pick<UseReport, "offered" | "used" | "dismissed">

export function printUseReport(stats: UseReport, { terminal }: PrintContext): PrintedOutput {
  if (stats.suggestions + stats.would === 0) return { lines: [], notes: [`Nothing was suggested yet. ${HOW_TO_ASK}`] }
  const label = (name: string) => paint(terminal, "cyan", padEnd(name, 15))
  return {
    lines: [
      `${label("suggestions")}${grouped(stats.suggestions)} with ${many(stats.offered, "item")}${stats.would > 0 ? `; ${grouped(stats.would)} more only recorded` : ""}`,
      `${label("used")}${grouped(stats.used)} (${shareText(stats.used, stats.offered)})`,
      `${label("dismissed")}${grouped(stats.dismissed)} (${shareText(stats.dismissed, stats.offered)})`,
      `${label("took")}${seconds(stats.latency_ms.median)} median, ${seconds(stats.latency_ms.p95)} at the 95th percentile`,
      "",
      ...rateRows(
        "by kind",
        stats.by_kind.map((row) => [kindName(row.kind), row]),
        terminal,
      ),
      "",
      ...rateRows(
        "by relevance",
        stats.by_relevance.map((row) => [`${row.from.toFixed(1)} to ${(row.from + 0.1).toFixed(1)}`, row]),
        terminal,
      ),
      ...weightLines(stats.weights, label),
    ].map((line) => clip(line, terminal.columns)),
    notes: [
      "A bar shows the share of items that were used. Items without a verdict count as neither used nor dismissed.",
    ],
  }
}

function weightLines(weights: Record<string, number>, label: (name: string) => string): string[] {
  const weightTexts = Object.entries(weights)
    .filter(([, value]) => Math.abs(value) >= 0.005)
    .sort(([, a], [, b]) => Math.abs(b) - Math.abs(a))
    .slice(0, MAX_WEIGHTS)
    .map(([name, value]) => `${safeLine(name)}${NON_BREAKING_SPACE}${value > 0 ? "+" : ""}${value.toFixed(2)}`)
  if (weightTexts.length === 0) return []
  const lines = wrap(weightTexts.join(", "), 60).map((line) => line.replaceAll(NON_BREAKING_SPACE, " "))
  return ["", ...lines.map((line, i) => label(i === 0 ? "learnt" : "") + line)]
}

const NON_BREAKING_SPACE = "\u00a0"
const BAR_COLUMNS = 20
const MAX_WEIGHTS = 8

function rateRows(title: string, entries: [name: string, rates: Rates][], terminal: Terminal): string[] {
  const lines = entries.map(([name, { offered, used, dismissed }]) => {
    const filled = offered === 0 ? 0 : Math.round((BAR_COLUMNS * used) / offered)
    const bar = paint(terminal, "green", "█".repeat(filled)) + paint(terminal, "dim", "·".repeat(BAR_COLUMNS - filled))
    const counts = `${grouped(used)} of ${grouped(offered)} used, ${grouped(dismissed)} dismissed`
    return `  ${padEnd(name, 13)}${bar} ${shareText(used, offered).padStart(5)}  ${counts}`
  })
  return [paint(terminal, "bold", title), ...lines]
}

function shareText(part: number, total: number): string {
  return total === 0 ? "0 %" : `${Math.round((100 * part) / total)} %`
}

type Output = OutputOf<typeof suggest>

export function printSuggest(output: Output, context: PrintContext): PrintedOutput {
  const { terminal } = context
  const suggestions = output.suggestions
  const code = output.code ? codeLines(output.code, terminal) : []
  const waiting = output.waiting ? printSuggestions({ suggestions: output.waiting, notes: [] }, context, {}).lines : []
  if (suggestions.length === 0)
    return {
      lines: [...code, ...waiting],
      notes: [
        code.length > 0 ? "No suggestions besides." : "No suggestions here. `dex search` looks for words.",
        ...output.notes,
      ],
    }
  const room = terminal.columns - 4
  const lines = suggestions.flatMap(({ kind, title, summary, reason, relevance, ref }, i) => [
    ...wrap(safeLine(title), room).map(
      (line, n) =>
        `${paint(terminal, "cyan", (n === 0 ? String(i + 1) : "").padStart(2))}  ${paint(terminal, "bold", line)}`,
    ),
    ...[
      ...(isInTitle({ title, summary }) ? [] : summaryLines(summary, room)),
      ...[
        ...wrap(safeLine(reason), room),
        ...factsWithRef(
          [kindName(kind), relevance === undefined ? "" : `${percent(relevance)} likely to help`],
          ref && safeLine(ref),
          room,
        ),
      ].map((line) => paint(terminal, "dim", line)),
    ].map((line) => `    ${line}`),
    "",
  ])
  return {
    lines: [...code, ...lines, ...waiting],
    notes: [`Did one help? dex suggest --feedback ${output.id.slice(0, 8)} used --item 1`, ...output.notes],
    listing: suggestions.map(({ ref }) => ref ?? ""),
  }
}

/** Every definition, caller and callee, one line each. */
function codeLines({ definitions, callers, callees }: NonNullable<Output["code"]>, terminal: Terminal): string[] {
  type Place = { file: string; line: number; in?: string; resolution?: string }
  const section = <P extends Place>(title: string, places: P[], nameOf: (place: P) => string) => {
    const rows = places.map((place) => {
      const guess = place.resolution === "by_name" ? ", by name only" : ""
      return `  ${safeLine(`${place.file}:${place.line}`)}  ${paint(terminal, "dim", safeLine(`${nameOf(place)}${guess}`))}`
    })
    return rows.length === 0 ? [] : [paint(terminal, "bold", `${title} (${rows.length})`), ...rows, ""]
  }
  const isIn = ({ in: container }: Place) => (container === undefined ? "" : `in ${container}`)
  return [
    ...section("Defined", definitions, (one) => [one.kind, isIn(one)].join(" ").trim()),
    ...section("Used", callers, (one) => [one.kind === "call" ? "called" : "named", isIn(one)].join(" ").trim()),
    ...section("Calls", callees, (one) => (one.in === undefined ? one.name : `${one.in}.${one.name}`)),
  ]
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
