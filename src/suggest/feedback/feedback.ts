import type { Item } from "../../core/suggestion.ts"
import type { LearnWeights } from "../../store/suggestions/verdicts.ts"

/**
 * The most that feedback can change the weight of a kind or of a feature, in log-odds. A verdict changes the weights by one step
 * of logistic regression on the item's kind and features. The limits ensure that no series of clicks can silence a kind forever,
 * or show all of its items.
 */
export const MAX_KIND_WEIGHT = 1
export const MAX_FEATURE_WEIGHT = 0.5
/**
 * The most that all feedback together can change an item's log-odds. For example, it can change a relevance of 0.5 to anything
 * from 0.27 to 0.73.
 */
export const MAX_SHIFT = 1
const LEARNING_RATE = 0.2

/**
 * Learns from a verdict, for `setStatus`. Withdrawing a verdict moves the weights back by the same amount, except for what a
 * limit cut off.
 */
export const learnFromVerdict: LearnWeights = (item, before, after, weight) =>
  Object.fromEntries(
    Object.entries(termsOf(item)).map(([name, x]) => {
      const bound = name.startsWith("kind:") ? MAX_KIND_WEIGHT : MAX_FEATURE_WEIGHT
      return [name, clamp(weight(name) + LEARNING_RATE * (after - (before ?? item.relevance)) * x, bound)]
    }),
  )

/** The item's relevance, adjusted by the user's feedback. */
export function adjustedRelevance(
  item: Pick<Item, "kind" | "features" | "relevance">,
  weights: Record<string, number>,
): number {
  const shift = Object.entries(termsOf(item)).reduce((sum, [name, x]) => sum + (weights[name] ?? 0) * x, 0)
  if (shift === 0) return item.relevance
  const p = Math.min(0.999, Math.max(0.001, item.relevance))
  return 1 / (1 + Math.exp(-(Math.log(p / (1 - p)) + clamp(shift, MAX_SHIFT))))
}

function termsOf({ kind, features }: Pick<Item, "kind" | "features">): Record<string, number> {
  const namedFeatures = Object.entries(features).map(([name, value]) => [`${kind}.${name}`, clamp(value, 1)] as const)
  return { [`kind:${kind}`]: 1, ...Object.fromEntries(namedFeatures) }
}

function clamp(value: number, bound: number): number {
  return Number.isFinite(value) ? Math.min(bound, Math.max(-bound, value)) : 0
}
