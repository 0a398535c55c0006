import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { isSamePath } from "../../core/path-key.ts"
import { formatRef } from "../../core/ref.ts"
import type { Delivery } from "../../core/suggestion.ts"
import { many } from "../../render/words.ts"
import type { StoredSuggestion, Suggestions } from "../../store/suggestions/suggestions.ts"
import { learnFromVerdict } from "../../suggest/feedback/feedback.ts"
import type { Dex } from "../context.ts"
import { dateRange } from "../fields.ts"
import { isCurrentProject, projectsHiddenFromCaller } from "../resolve.ts"
import { isPrivate } from "../subscriptions/delivery.ts"
import type { FeedbackInput, SuggestionsInput } from "./suggestions.ts"

const MAX_SUGGESTIONS_READ = 100_000

export async function run(dex: Dex, input: SuggestionsInput) {
  if (input.take && input.status !== undefined)
    throw new DexError("usage", "--take shows pending suggestions: omit --status.")
  const suggestions = await dex.suggestions()
  const subscription = input.subscription === undefined ? undefined : subscriptionNamed(suggestions, input.subscription)
  const status = input.take ? "pending" : input.status
  const { from } = dateRange({ from: input.from }, dex.now())
  const storedSuggestions = suggestions.list({
    status,
    would: input.take ? false : input.would,
    // If a subscription is named, suggestions of any project are shown.
    project: !input.all && subscription === undefined ? dex.project : undefined,
    subscription,
    from,
    after: input.take ? 0 : undefined,
    limit: MAX_SUGGESTIONS_READ,
  })
  const deliveries = new Map(suggestions.subscriptions().map(({ id, deliver }) => [id, deliver]))
  // --take omits suggestions that are delivered by a stream or a webhook, unless their subscription is named.
  const relevant = storedSuggestions.filter(
    (suggestion) =>
      !input.take ||
      subscription !== undefined ||
      isPolled(suggestion.subscription && deliveries.get(suggestion.subscription)),
  )
  const hidden = new Set<string>()
  for (const project of new Set(relevant.map(({ moment }) => moment.project)))
    if (!isCurrentProject(dex, project) && (await isPrivate(dex, project))) hidden.add(project)
  const visible = relevant.filter(({ moment }) => !hidden.has(moment.project))
  const listed = visible.slice(0, input.limit)
  if (input.take) for (const { id } of listed) suggestions.setStatus(id, "shown")
  const notes: string[] = []
  if (visible.length > listed.length)
    notes.push(
      `Not shown: ${many(visible.length - listed.length, "more suggestion")}. Use a higher --limit to see all.`,
    )
  if (relevant.length > visible.length)
    notes.push(`Not shown: ${many(relevant.length - visible.length, "suggestion")} in private projects.`)
  return { suggestions: listed.map(describeSuggestion), notes }
}

function isPolled(deliver: Delivery | "" | undefined): boolean {
  return deliver !== "sse" && deliver !== "webhook"
}

export async function giveFeedback(dex: Dex, input: FeedbackInput) {
  const suggestions = await dex.suggestions()
  if (input.reset) {
    if (input.id !== undefined) throw new DexError("usage", "--reset undoes all feedback: omit the id.")
    return { items: [], reset: suggestions.resetWeights(), note: "All learned weights are reset." }
  }
  const { id, verdict, item } = input
  if (id === undefined || verdict === undefined)
    throw new DexError(
      "usage",
      "Which one, and did it help? dex suggest --feedback <id> used|dismissed. `dex suggest` and `dex suggest --list` show the ids.",
    )
  const suggestion = await suggestionNamed(dex, suggestions, id)
  const updated = suggestion && suggestions.setStatus(suggestion.id, verdict, item, learnFromVerdict)
  if (!updated) throw notFoundError(suggestion, id, item)
  const isItemUnnamed = verdict === "used" && item === undefined && updated.items.length > 1
  return {
    id: updated.id,
    status: updated.status,
    items: updated.items.map(({ number, kind, title, status }) => ({ number, kind, title, status })),
    note: isItemUnnamed
      ? "Noted. dex learns more if you name the item with --item."
      : "Noted. Later suggestions take it into account, within limits. To undo all feedback: dex suggest --feedback --reset",
  }
}

export async function reportUse(dex: Dex) {
  const suggestions = await dex.suggestions()
  const metrics = suggestions.metrics()
  const rate = (count: number) => (metrics.offered === 0 ? 0 : Number((count / metrics.offered).toFixed(3)))
  return {
    ...metrics,
    used_rate: rate(metrics.used),
    dismissed_rate: rate(metrics.dismissed),
    weights: Object.fromEntries(
      Object.entries(suggestions.weights())
        .map(([name, value]) => [name, Number(value.toFixed(3))] as const)
        .filter(([, value]) => value !== 0),
    ),
  }
}

/** Finds a suggestion by the beginning of its id. An agent does not find suggestions of other projects that are private. */
async function suggestionNamed(dex: Dex, suggestions: Suggestions, id: string): Promise<StoredSuggestion | undefined> {
  const hidden = dex.hasHistory() ? await projectsHiddenFromCaller(dex) : []
  return suggestions.get(id, (project) => !hidden.some((path) => isSamePath(path, project, dex.machine.platform)))
}

function notFoundError(suggestion: StoredSuggestion | undefined, id: string, item: number | undefined): DexError {
  if (suggestion)
    return new DexError(
      "no_item",
      `That suggestion has no item ${item}. Its items are ${suggestion.items.map(({ number }) => number).join(", ")}.`,
    )
  return new DexError(
    "no_suggestion",
    `"${id.slice(0, 40)}" matches no suggestion, or several. Use a complete id: \`dex suggest --list --all\` lists them.`,
  )
}

function subscriptionNamed(suggestions: Suggestions, idPrefix: string): string {
  const matching = suggestions.subscriptions().filter(({ id }) => id.startsWith(idPrefix))
  if (matching.length === 1) return matching[0]!.id
  throw new DexError(
    "no_subscription",
    `"${idPrefix.slice(0, 40)}" matches no subscription, or several. Use a complete id: \`dex subscribe --list --all\` lists them.`,
  )
}

function describeSuggestion({ id, seq, status, would, subscription, moment, items }: StoredSuggestion) {
  return {
    id,
    sequence: seq,
    date: isoDate(moment.at),
    status,
    would: would || undefined,
    event: moment.event,
    project: moment.project,
    session:
      moment.source !== undefined && moment.session !== undefined
        ? formatRef({ source: moment.source, id: moment.session })
        : undefined,
    subscription,
    items: items.map(({ number, kind, title, summary, reason, ref, file, symbol, relevance, status }) => ({
      number,
      kind,
      title,
      summary,
      reason,
      ref,
      file,
      symbol,
      relevance: Number(relevance.toFixed(2)),
      status,
    })),
  }
}
