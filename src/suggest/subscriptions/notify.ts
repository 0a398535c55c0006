import { DAY_MS } from "../../core/dates.ts"
import { type Item, type Moment, newSuggestionId, type Pattern } from "../../core/suggestion.ts"
import { mayContainSecret } from "../../redact/may-contain-secret.ts"
import type { SaveResult, Suggestions } from "../../store/suggestions/suggestions.ts"
import { withRedactedNames } from "../redacted-moment.ts"
import { matchingSubscriptions, type SubscriptionMatch, type Trigger } from "./matching.ts"

export type TriggerParts = {
  suggestions: Suggestions
  /** The items for a moment, best first, without items that may not be shown unasked. */
  suggest(moment: Moment): Promise<Item[]>
  /** The time in milliseconds, for measuring durations. */
  clock(): number
}

export type SubscriptionNotice = { subscription: string; suggestion: string; items: number; saved: SaveResult }

/**
 * Notifies the subscriptions that match a trigger. Each gets one suggestion, stored in one transaction with the webhook's
 * delivery. Subscribers that poll or stream find it there.
 */
export async function notifySubscriptions(parts: TriggerParts, trigger: Trigger): Promise<SubscriptionNotice[]> {
  const { suggestions, suggest, clock } = parts
  const matched = await matchingByEitherName(suggestions, trigger)
  if (matched.length === 0) return []
  const resultBySymbol = new Map<string | undefined, { moment: Moment; items: Item[]; latency_ms: number }>()
  const findFor = async ({ type, pattern }: Pattern) => {
    const symbol = type === "symbol" ? pattern.split(/[.#:]+/).at(-1)! : undefined
    const cached = resultBySymbol.get(symbol)
    if (cached) return cached
    const moment = await withRedactedNames(momentOf(trigger, symbol))
    const started = clock()
    const items = await suggest(moment)
    const result = { moment, items, latency_ms: clock() - started }
    resultBySymbol.set(symbol, result)
    return result
  }
  const notices: SubscriptionNotice[] = []
  for (const { subscription, pattern } of matched) {
    const { moment, items, latency_ms } = await findFor(pattern)
    const sentKeys = keysSentTo(suggestions, subscription.id, trigger.at)
    const newItems = items
      .filter(({ key, relevance }) => relevance >= subscription.min_relevance && !sentKeys.has(key))
      .slice(0, subscription.max_per_trigger)
    if (newItems.length === 0) continue
    const id = newSuggestionId()
    const saved = suggestions.save(
      { id, moment, items: newItems, status: "pending", latency_ms },
      { subscription: subscription.id },
    )
    notices.push({ subscription: subscription.id, suggestion: id, items: newItems.length, saved })
  }
  return notices
}

/** Patterns are stored redacted, so names are also compared in their redacted form. */
async function matchingByEitherName(suggestions: Suggestions, trigger: Trigger): Promise<SubscriptionMatch[]> {
  const allSubscriptions = suggestions.subscriptions(trigger.project)
  const matched = matchingSubscriptions(allSubscriptions, trigger)
  if (![trigger.file ?? "", ...(trigger.symbols ?? [])].some(mayContainSecret)) return matched
  const { redactName } = await import("../../redact/redact.ts")
  const { file, symbols } = trigger
  const redactedTrigger = {
    ...trigger,
    file: file && redactName(file),
    symbols: symbols?.map(redactName),
  }
  const others = allSubscriptions.filter(({ id }) => !matched.some(({ subscription }) => subscription.id === id))
  return [...matched, ...matchingSubscriptions(others, redactedTrigger)]
}

/** The keys of items that were sent within the last day, which are not sent again. */
function keysSentTo(suggestions: Suggestions, subscription: string, now: number): Set<string> {
  const recent = suggestions.list({ subscription, from: now - DAY_MS, limit: 200 })
  return new Set(recent.flatMap(({ items }) => items.map(({ key }) => key)))
}

function momentOf({ project, at, lastFile, file = lastFile, text }: Trigger, symbol: string | undefined): Moment {
  return {
    event: "watch",
    project,
    at,
    file,
    symbol,
    prompt: text,
  }
}
