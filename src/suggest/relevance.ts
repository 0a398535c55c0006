import type { ItemKind } from "../core/suggestion.ts"

/** Weights of the features of a kind, on the scale of log-odds; `bias` where there are none. */
export type RelevanceWeights = Partial<Record<ItemKind, Record<string, number>>>

/** Of all that could be said, about so much was used: what is known of a kind that nobody ever labelled. */
const UNLABELLED = 0.1

/** How likely something is to be used: one scale for all kinds, since all are fitted on what was used. */
export function relevanceOf(kind: ItemKind, features: Record<string, number>, weights: RelevanceWeights): number {
  const own = weights[kind]
  if (!own) return UNLABELLED
  let odds = own.bias ?? 0
  for (const [name, value] of Object.entries(features)) odds += (own[name] ?? 0) * value
  return 1 / (1 + Math.exp(-odds))
}
