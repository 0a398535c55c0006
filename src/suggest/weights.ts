import type { RelevanceWeights } from "./relevance.ts"

/**
 * Fitted on the earlier half of genuine conversations by `npm run eval:suggest -- --fit`; docs/suggest.md tells how the later
 * half fared. The conversations span six weeks, so nothing may get likelier with age: what says how recent something is
 * (`within_…`) has no negative weight. A kind that stands here with no weights of its own was never labelled: it is told to who asks, not pushed.
 */
export const RELEVANCE_WEIGHTS: RelevanceWeights = {
  fix: { bias: -3.108, likeness: 6.443, same: 0.17 },
  decision: { bias: -2.377, typed: 0.387, names: 0.75, done: -0.315 },
  related_code: {
    bias: -2.704,
    together: 0.165,
    read_together: 1.108,
    branch: -0.316,
    on_branch: 0.877,
    session: 0.557,
    same_folder: 0.587,
    same_stem: 1.553,
    within_hours: 0.536,
    in_prompt: 0.116,
    listed: 0.915,
    is_test: -0.377,
    is_text: 0.034,
    done: -0.337,
    visits: 0.218,
    together_count: -0.026,
  },
  conversation: {
    bias: -2.545,
    start: 1.068,
    start_on_branch: 1.306,
    start_on_main: -0.29,
    start_within_days: 0.836,
    visits: -0.063,
    others: 0.392,
    done: -0.03,
    size: -0.059,
  },
}

/** The lowest floor, in steps of a tenth, at which more than half were used in the half that the weights were fitted on. */
export const FLOOR = 0.4
