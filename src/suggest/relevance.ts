import type { ItemKind } from "../core/suggestion.ts"

/** The weights of each kind's features, in log-odds. A kind without features has only `bias`. */
export type RelevanceWeights = Partial<Record<ItemKind, Record<string, number>>>

/** The relevance of a kind whose items nobody ever labelled: about this share of all candidates was used. */
const UNLABELLED_RELEVANCE = 0.1

/** How likely an item is to be used. All kinds share one scale, because all are fitted to what was used. */
export function relevanceOf(kind: ItemKind, features: Record<string, number>, weights: RelevanceWeights): number {
  const kindWeights = weights[kind]
  if (!kindWeights) return UNLABELLED_RELEVANCE
  let logOdds = kindWeights.bias ?? 0
  for (const [name, value] of Object.entries(features)) logOdds += (kindWeights[name] ?? 0) * value
  return 1 / (1 + Math.exp(-logOdds))
}

/** True if the relevance says how often such items were used: their kind was labelled, and so was one of their features. */
export function isRelevanceFitted(
  kind: ItemKind,
  features: Record<string, number>,
  weights: RelevanceWeights,
): boolean {
  return Object.keys(features).some((name) => weights[kind]?.[name] !== undefined)
}

/**
 * Fitted on the earlier half of genuine conversations by `npm run eval:suggest -- --fit`; docs/suggest.md has the results for the
 * later half. The conversations span six weeks, so nothing may become likelier with age: features for how recent something is
 * (`within_…`) have no negative weight. Neither do counts of conversations, because more evidence never makes an item less
 * likely. A kind without weights here was never labelled, so its items are shown only on request, except for news and notes.
 * `recalled` was not fitted: with it, an item is as likely as recalled conversations were right at labelled prompts.
 */
export const RELEVANCE_WEIGHTS: RelevanceWeights = {
  fix: { bias: -3.108, likeness: 6.443, same: 0.17 },
  decision: { bias: -2.377, typed: 0.387, names: 0.75, done: -0.315, recalled: 3.2 },
  change: { bias: -2.197, recalled: 4.3 },
  related_code: {
    bias: -2.818,
    touched_together: 0.394,
    on_branch: 0.819,
    session: 0.516,
    same_folder: 0.588,
    same_stem: 1.508,
    within_hours: 0.566,
    in_prompt: 0.123,
    listed: 0.913,
    is_test: -0.384,
    is_text: 0.02,
    done: -0.33,
    visits: 0.239,
  },
  conversation: {
    bias: -2.588,
    start: 1.096,
    start_on_branch: 1.307,
    start_on_main: -0.289,
    start_within_days: 0.851,
    others: 0.385,
    done: -0.035,
    size: -0.06,
    recalled: 4.3,
  },
}

/**
 * Only suggestions with at least this relevance are shown unasked. It is the lowest multiple of 0.1 at which more than half of
 * the suggestions were used, in the half of the data to which the weights were fitted.
 */
export const RELEVANCE_FLOOR = 0.4
