import type { CommitFeatures, LineFeatures } from "./evidence.ts"

// How much each piece of evidence weighs. Fitted by `npm run eval:blame -- --fit` on the earlier half of 428 commits that a
// public project linked to its conversations, as they are and squash merged; the later half only measures. No weight is set
// by hand.

export type Weights<F> = Record<keyof F | "bias", number>

/** Which of the conversations that are known made a commit: fitted where one of them did. */
export const ORDER: Weights<CommitFeatures> = {
  bias: -0.586,
  wrote: 1.646,
  wrote_of_commit: -0.994,
  arrives: 5.336,
  removed: 1.654,
  edited_last: 2.962,
  newest_edit: -0.314,
  since_edit: -1.152,
  since_said: -3.642,
  newest_said: 1.734,
  went_on: -1.22,
}

/** Whether this one made it: fitted where one did, and again with those that did taken out of the history. */
export const TRUST: Weights<CommitFeatures> = {
  bias: -0.494,
  wrote: 0.655,
  wrote_of_commit: 0.55,
  arrives: 5.291,
  removed: 1.734,
  edited_last: 2.037,
  newest_edit: -0.557,
  since_edit: -1.598,
  since_said: -3.972,
  newest_said: 1.093,
  went_on: -1.1,
}

/** Whether this one wrote a line: fitted in the same way. */
export const WROTE: Weights<LineFeatures> = {
  bias: -1.154,
  wrote: 1.866,
  alone: 1.758,
  wrote_of_commit: 1.516,
  arrives: 2.684,
  since_edit: -4.923,
  last: 0.791,
}

// From which trust on an answer is given: set with room, since they drift over time.

/** A commit. */
export const TELLS_COMMIT = 0.65
/** A line that the conversation is known to have written. */
export const PROVES_LINE = 0.95
export const LIKELY_LINE = 0.6
/** A line that nobody is known to have written, of a commit that the conversation made. */
export const LIKELY_COMMIT = 0.7
/** … and of whose written lines it wrote so many. */
export const ALONE = 0.9
/** Where git said in the conversation that it made this very commit, of files that it had edited. */
export const RAN = 0.97
