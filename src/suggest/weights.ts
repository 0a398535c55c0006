import type { RelevanceWeights } from "./relevance.ts"

/**
 * Fitted on the earlier half of genuine conversations by `npm run eval:suggest -- --fit`; docs/suggest.md tells how the later
 * half fared. A kind that stands here with no weights of its own was never labelled: it is told to who asks, not pushed.
 */
export const RELEVANCE_WEIGHTS: RelevanceWeights = {
  fix: { bias: -3.108, likeness: 6.443, same: 0.17 },
  decision: { bias: -2.296, typed: 1.047, names: 0.974, within_weeks: -1.24, done: -0.474 },
  related_code: {
    bias: -2.423,
    together: 0.326,
    read_together: 0.95,
    branch: 0.06,
    on_branch: 0.91,
    session: 0.44,
    same_folder: 0.606,
    same_stem: 1.5,
    within_hours: 1.249,
    within_days: -0.83,
    in_prompt: 0.159,
    listed: 0.891,
    is_test: -0.379,
    is_text: 0.004,
    done: -0.372,
    visits: 0.199,
    together_count: -0.033,
  },
  conversation: {
    bias: -2.24,
    start: 0.824,
    start_on_branch: 1.353,
    start_on_main: -0.308,
    start_within_hours: -0.28,
    start_within_days: 0.931,
    visits: 0.008,
    others: 0.408,
    within_days: -0.154,
    within_weeks: -0.624,
    done: -0.023,
    size: -0.037,
  },
}

/** The lowest floor, in steps of a tenth, at which more than half were used in the half that the weights were fitted on. */
export const FLOOR = 0.4
