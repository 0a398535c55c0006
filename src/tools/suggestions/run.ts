import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { isSamePath } from "../../core/path-key.ts"
import { formatRef } from "../../core/ref.ts"
import type { Delivery } from "../../core/suggestion.ts"
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
  const kept = await dex.suggestions()
  const subscription = input.subscription === undefined ? undefined : subscriptionNamed(kept, input.subscription)
  const status = input.take ? "pending" : input.status
  const { from } = dateRange({ from: input.from }, dex.now())
  const found = kept.list({
    status,
    would: input.take ? false : input.would,
    // If a subscription is named, suggestions of any project are shown.
    project: !input.all && subscription === undefined ? dex.project : undefined,
    subscription,
    from,
    after: input.take ? 0 : undefined,
    limit: MAX_SUGGESTIONS_READ,
  })
  const deliveries = new Map(kept.subscriptions().map(({ id, deliver }) => [id, deliver]))
  // Streamed or sent suggestions are left to their receiver, unless their subscription is named.
  const meant = found.filter(
    (one) =>
      !input.take || subscription !== undefined || isPolled(one.subscription && deliveries.get(one.subscription)),
  )
  const hidden = new Set<string>()
  for (const project of new Set(meant.map(({ moment }) => moment.project)))
    if (!isCurrentProject(dex, project) && (await isPrivate(dex, project))) hidden.add(project)
  const allowed = meant.filter(({ moment }) => !hidden.has(moment.project))
  const shown = allowed.slice(0, input.limit)
  if (input.take) for (const { id } of shown) kept.setStatus(id, "shown")
  const notes: string[] = []
  if (allowed.length > shown.length)
    notes.push(`${allowed.length - shown.length} more are not shown. Use a higher --limit to see them.`)
  if (meant.length > allowed.length) notes.push(`Not shown: ${meant.length - allowed.length} in private projects.`)
  return { suggestions: shown.map(listedSuggestion), notes }
}

function isPolled(deliver: Delivery | "" | undefined): boolean {
  return deliver !== "sse" && deliver !== "webhook"
}

export async function giveFeedback(dex: Dex, input: FeedbackInput) {
  const kept = await dex.suggestions()
  if (input.reset) {
    if (input.id !== undefined) throw new DexError("usage", "--reset undoes all feedback: omit the id.")
    return { items: [], reset: kept.resetWeights(), note: "All learned weights are reset." }
  }
  const { id, verdict, item } = input
  if (id === undefined || verdict === undefined)
    throw new DexError(
      "usage",
      "Which one, and did it help? dex suggest --feedback <id> used|dismissed. `dex suggest` and `dex suggest --list` show the ids.",
    )
  const meant = await suggestionNamed(dex, kept, id)
  const after = meant && kept.setStatus(meant.id, verdict, item, learnFromVerdict)
  if (!after) throw notFound(meant, id, item)
  const unknown = verdict === "used" && item === undefined && after.items.length > 1
  return {
    id: after.id,
    status: after.status,
    items: after.items.map(({ number, kind, title, status }) => ({ number, kind, title, status })),
    note: unknown
      ? "Noted. dex learns more if you name the item with --item."
      : "Noted. Later suggestions take it into account, within limits. To undo all feedback: dex suggest --feedback --reset",
  }
}

/** For an agent, what was suggested in another project that is private does not exist. */
async function suggestionNamed(dex: Dex, kept: Suggestions, id: string): Promise<StoredSuggestion | undefined> {
  const hidden = dex.hasHistory() ? await projectsHiddenFromCaller(dex) : []
  return kept.get(id, (project) => !hidden.some((one) => isSamePath(one, project, dex.machine.platform)))
}

function notFound(known: StoredSuggestion | undefined, id: string, item: number | undefined): DexError {
  if (known)
    return new DexError(
      "no_item",
      `That suggestion has no item ${item}. Its items are ${known.items.map((one) => one.number).join(", ")}.`,
    )
  return new DexError(
    "no_suggestion",
    `No single suggestion has an id that begins with "${id.slice(0, 40)}". \`dex suggest --list --all\` lists them.`,
  )
}

function subscriptionNamed(kept: Suggestions, start: string): string {
  const meant = kept.subscriptions().filter(({ id }) => id.startsWith(start))
  if (meant.length === 1) return meant[0]!.id
  throw new DexError(
    "no_subscription",
    `No single subscription has an id that begins with "${start.slice(0, 40)}". \`dex subscribe --list --all\` lists them.`,
  )
}

function listedSuggestion({ id, seq, status, would, subscription, moment, items }: StoredSuggestion) {
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
