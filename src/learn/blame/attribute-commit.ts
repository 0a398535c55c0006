import type { CommitDiff } from "../../git/commit-diffs.ts"
import { type CommitCandidate, type CommitFeatures, evidenceFor, type LineFeatures, type Writer } from "./evidence.ts"
import type { BlameFacts, KnownEdit, Worker } from "./facts.ts"
import { lineKey } from "./line-key.ts"

export type AttributionLevel = "proved" | "likely" | "unknown"
/** Why a commit or a line is attributed to a conversation, strongest reason first. */
export type AttributionReason = "ran_commit" | "wrote_line" | "wrote_near" | "files_and_time"

type RankedWorker = CommitCandidate & { order: number; trust: number }

/** `key` is the key of the line's text. */
export type AttributedLine = { line: number; key: number } & (
  | { level: "unknown" }
  | {
      level: "proved" | "likely"
      reason: AttributionReason
      worker: Worker
      /** The message that wrote the line. */
      ref?: KnownEdit["ref"]
    }
)

export type AttributedFile = { path: string; lines: AttributedLine[] }

export type AttributedCommit = {
  /** The candidates, likeliest first. */
  ranked: RankedWorker[]
  /** The first candidate, if it is certain enough to report. */
  attributed?: RankedWorker & { level: "proved" | "likely" }
  files: AttributedFile[]
}

/**
 * Finds the conversation that made a commit, and the one that wrote each line that it added. Lines are attributed only in
 * the files that `isWanted` selects. Pure, except that it reads facts.
 */
export function attributeCommit(
  commit: CommitDiff,
  facts: BlameFacts,
  isWanted: (path: string) => boolean = () => true,
): AttributedCommit {
  const { candidates, writersIn } = evidenceFor(commit, facts)
  const ranked = rankWorkers(candidates)
  const files = commit.files.flatMap(({ path, added }, i) =>
    isWanted(path) ? [{ path, lines: linesOf(added, writersIn(i), ranked[0]) }] : [],
  )
  const [first] = ranked
  if (!first || first.trust < MIN_COMMIT_TRUST) return { ranked, files }
  const isProved = first.ran || files.some(({ lines }) => lines.some((line) => provesFor(line, first.worker)))
  return { ranked, attributed: { ...first, level: isProved ? "proved" : "likely" }, files }
}

function provesFor(line: AttributedLine, worker: Worker): boolean {
  return line.level === "proved" && line.worker === worker
}

function rankWorkers(candidates: CommitCandidate[]): RankedWorker[] {
  return candidates
    .map(({ ran, ...one }) => {
      // A conversation that commits other people's lines also ran the commit.
      const isOwn = ran !== undefined && one.has_edited
      return {
        ...one,
        ran: isOwn ? ran : undefined,
        order: isOwn ? 1 : chance(one.features, ORDER_WEIGHTS),
        trust: Math.max(isOwn ? RAN : 0, chance(one.features, TRUST_WEIGHTS)),
      }
    })
    .sort((a, b) => b.order - a.order)
}

function chance<F extends Record<string, number>>(features: F, weights: Weights<F>): number {
  let odds = weights.bias
  for (const name in features) odds += weights[name] * features[name]!
  return 1 / (1 + Math.exp(-odds))
}

function linesOf(
  added: CommitDiff["files"][number]["added"],
  writers: Writer[][],
  first: RankedWorker | undefined,
): AttributedLine[] {
  const written = writers.map(likeliest)
  return added.map(({ line, text }, i): AttributedLine => {
    const base = { line, key: lineKey(text) }
    const own = written[i]
    if (own) {
      const { worker, ref } = own.edit
      if (own.trust < MIN_LIKELY_LINE_TRUST) return { ...base, level: "unknown" }
      return {
        ...base,
        level: own.trust >= MIN_PROVED_LINE_TRUST ? "proved" : "likely",
        reason: "wrote_line",
        worker,
        ref,
      }
    }
    const near = neighbour(added, written, i)
    if (near) return { ...base, level: "likely", reason: "wrote_near", worker: near.worker }
    if (!first || first.trust < LIKELY_COMMIT || !isAlone(first)) return { ...base, level: "unknown" }
    return { ...base, level: "likely", reason: first.ran ? "ran_commit" : "files_and_time", worker: first.worker }
  })
}

/** If a commit contains the work of several conversations, a line without a known author may belong to any of them. */
function isAlone({ features: { wrote } }: RankedWorker): boolean {
  return wrote === 0 || wrote >= MIN_SOLE_AUTHOR_SHARE
}

type Likeliest = { edit: KnownEdit; trust: number }

function likeliest(writers: Writer[]): Likeliest | undefined {
  return writers
    .map(({ edit, features }) => ({ edit, trust: chance(features, WROTE_WEIGHTS) }))
    .reduce<Likeliest | undefined>((best, one) => (best && best.trust >= one.trust ? best : one), undefined)
}

/**
 * The author of a line between two lines of one conversation: that conversation wrote it too, but the line was changed since or
 * is too short.
 */
function neighbour(
  added: CommitDiff["files"][number]["added"],
  written: (Likeliest | undefined)[],
  i: number,
): KnownEdit | undefined {
  const beside = (step: 1 | -1) => {
    for (let at = i + step, far = 1; far <= MAX_DISTANCE; at += step, far++) {
      if (added[at]?.line !== added[i]!.line + step * far) return undefined
      const own = written[at]
      if (own) return own.trust >= MIN_LIKELY_LINE_TRUST ? own.edit : undefined
    }
    return undefined
  }
  const [above, below] = [beside(-1), beside(1)]
  return above && below && above.worker === below.worker ? above : undefined
}

/** The greatest distance, in lines, to a line with a known author. */
const MAX_DISTANCE = 3

// The weight of each piece of evidence. `npm run eval:blame -- --fit` fits the weights on the earlier half of 428 commits that a
// public project linked to its conversations, both as they are and squash merged. The later half is only used to measure. No
// weight is set by hand.

export type Weights<F> = Record<keyof F | "bias", number>

/** Weights that order the known conversations by how likely each made a commit. Fitted on commits that one of them made. */
export const ORDER_WEIGHTS: Weights<CommitFeatures> = {
  bias: -0.586,
  wrote: 1.646,
  wrote_of_commit: -0.994,
  arrives: 5.336,
  removed: 1.654,
  edited_last: 2.962,
  newest_edit: -0.314,
  since_edit: -1.152,
  since_message: -3.642,
  newest_message: 1.734,
  went_on: -1.22,
}

/**
 * Weights for the probability that a conversation made a commit. Fitted on the same commits, with and without their authors in
 * the history.
 */
export const TRUST_WEIGHTS: Weights<CommitFeatures> = {
  bias: -0.494,
  wrote: 0.655,
  wrote_of_commit: 0.55,
  arrives: 5.291,
  removed: 1.734,
  edited_last: 2.037,
  newest_edit: -0.557,
  since_edit: -1.598,
  since_message: -3.972,
  newest_message: 1.093,
  went_on: -1.1,
}

/** Weights for the probability that a conversation wrote a line. Fitted in the same way. */
export const WROTE_WEIGHTS: Weights<LineFeatures> = {
  bias: -1.154,
  wrote: 1.866,
  alone: 1.758,
  wrote_of_commit: 1.516,
  arrives: 2.684,
  since_edit: -4.923,
  last: 0.791,
}

// The probabilities from which an answer is reported. They include a margin, because the values drift over time.

/** The least probability for attributing a commit. */
export const MIN_COMMIT_TRUST = 0.65
/** The least probability for a line that the conversation is known to have written. */
export const MIN_PROVED_LINE_TRUST = 0.95
export const MIN_LIKELY_LINE_TRUST = 0.6
/** The least probability for a line without a known author, in a commit that the conversation made … */
const LIKELY_COMMIT = 0.7
/** … if the conversation wrote at least this share of the lines with a known author. */
export const MIN_SOLE_AUTHOR_SHARE = 0.9
/** The probability if git printed this very commit in the conversation, which had edited the commit's files. */
const RAN = 0.97
