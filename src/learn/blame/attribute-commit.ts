import type { CommitDiff } from "../../git/commit-diffs.ts"
import { type CommitCandidate, type CommitFeatures, evidenceFor, type LineFeatures, type Writer } from "./evidence.ts"
import type { BlameFacts, KnownEdit, Worker } from "./facts.ts"
import { lineKey } from "./line-key.ts"

export type AttributionLevel = "proved" | "likely" | "unknown"
/** Why a commit or a line is attributed to a conversation, strongest reason first. */
export type AttributionReason = "ran_commit" | "wrote_line" | "wrote_near" | "files_and_time"

type RankedWorker = CommitCandidate & { order: number; trust: number }

/** `key` is the `lineKey` of the line's text. */
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
  /** The likeliest candidate, if its probability is high enough to report it. */
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
  const isProved = first.ran || files.some(({ lines }) => lines.some((line) => isProvedFor(line, first.worker)))
  return { ranked, attributed: { ...first, level: isProved ? "proved" : "likely" }, files }
}

function isProvedFor(line: AttributedLine, worker: Worker): boolean {
  return line.level === "proved" && line.worker === worker
}

function rankWorkers(candidates: CommitCandidate[]): RankedWorker[] {
  return candidates
    .map(({ ran, ...one }) => {
      // Running the commit is not enough: a conversation may commit lines that others wrote.
      const isOwn = ran !== undefined && one.has_edited
      return {
        ...one,
        ran: isOwn ? ran : undefined,
        order: isOwn ? 1 : probability(one.features, ORDER_WEIGHTS),
        trust: Math.max(isOwn ? RAN_COMMIT_TRUST : 0, probability(one.features, TRUST_WEIGHTS)),
      }
    })
    .sort((a, b) => b.order - a.order)
}

function probability<F extends Record<string, number>>(features: F, weights: Weights<F>): number {
  let odds = weights.bias
  for (const name in features) odds += weights[name] * features[name]!
  return 1 / (1 + Math.exp(-odds))
}

function linesOf(
  added: CommitDiff["files"][number]["added"],
  writers: Writer[][],
  first: RankedWorker | undefined,
): AttributedLine[] {
  const authors = writers.map(likeliestWriter)
  return added.map(({ line, text }, i): AttributedLine => {
    const base = { line, key: lineKey(text) }
    const author = authors[i]
    if (author) {
      const { worker, ref } = author.edit
      if (author.trust < MIN_LIKELY_LINE_TRUST) return { ...base, level: "unknown" }
      return {
        ...base,
        level: author.trust >= MIN_PROVED_LINE_TRUST ? "proved" : "likely",
        reason: "wrote_line",
        worker,
        ref,
      }
    }
    const neighbour = authorOfNeighbours(added, authors, i)
    if (neighbour) return { ...base, level: "likely", reason: "wrote_near", worker: neighbour.worker }
    if (!first || first.trust < MIN_LIKELY_COMMIT_TRUST || !isSoleAuthor(first)) return { ...base, level: "unknown" }
    return { ...base, level: "likely", reason: first.ran ? "ran_commit" : "files_and_time", worker: first.worker }
  })
}

/**
 * False if the conversation wrote only some of the lines with a known author, because others may then have written the remaining
 * lines too.
 */
function isSoleAuthor({ features: { wrote } }: RankedWorker): boolean {
  return wrote === 0 || wrote >= MIN_SOLE_AUTHOR_SHARE
}

type LikelyWriter = { edit: KnownEdit; trust: number }

function likeliestWriter(writers: Writer[]): LikelyWriter | undefined {
  return writers
    .map(({ edit, features }) => ({ edit, trust: probability(features, WROTE_WEIGHTS) }))
    .reduce<LikelyWriter | undefined>((best, one) => (best && best.trust >= one.trust ? best : one), undefined)
}

/**
 * If the nearest known authors above and below a line are the same conversation, that conversation most likely wrote the line
 * too: the line was changed since, or is too short to recognise.
 */
function authorOfNeighbours(
  added: CommitDiff["files"][number]["added"],
  authors: (LikelyWriter | undefined)[],
  i: number,
): KnownEdit | undefined {
  const nearestAuthor = (step: 1 | -1) => {
    for (let at = i + step, distance = 1; distance <= MAX_DISTANCE; at += step, distance++) {
      if (added[at]?.line !== added[i]!.line + step * distance) return undefined
      const author = authors[at]
      if (author) return author.trust >= MIN_LIKELY_LINE_TRUST ? author.edit : undefined
    }
    return undefined
  }
  const [above, below] = [nearestAuthor(-1), nearestAuthor(1)]
  return above && below && above.worker === below.worker ? above : undefined
}

/** The maximum distance, in lines, to a line with a known author. */
const MAX_DISTANCE = 3

// The weights of the evidence. `npm run eval:blame -- --fit` fits the weights on the earlier half of 428 commits that a
// public project linked to its conversations, both as they are and squash merged. The later half is only used to measure. No
// weight is set by hand.

export type Weights<F> = Record<keyof F | "bias", number>

/** Weights that rank the known conversations as makers of a commit. Fitted on commits that one of them made. */
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
  was_running: -1.22,
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
  was_running: -1.1,
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

// The minimum probabilities for reporting an attribution. They include a margin, because the fitted values drift over time.

/** The minimum probability for attributing a commit to a conversation. */
export const MIN_COMMIT_TRUST = 0.65
/** The minimum probability for calling the author of a line proved. */
export const MIN_PROVED_LINE_TRUST = 0.95
/** The minimum probability for calling the author of a line likely. */
export const MIN_LIKELY_LINE_TRUST = 0.6
/** Lines without a known author are attributed to the commit's maker only if the maker has at least this probability. */
const MIN_LIKELY_COMMIT_TRUST = 0.7
/**
 * Lines without a known author are attributed only if the maker wrote at least this share of the commit's other lines, or none of
 * them.
 */
export const MIN_SOLE_AUTHOR_SHARE = 0.9
/** The probability that a conversation made a commit if git printed it there and the conversation had edited its files. */
const RAN_COMMIT_TRUST = 0.97
