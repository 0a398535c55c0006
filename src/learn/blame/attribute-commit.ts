import type { CommitDiff } from "../../git/commit-diffs.ts"
import { type CommitCandidate, type CommitFeatures, evidenceFor, type LineFeatures, type Writer } from "./evidence.ts"
import type { BlameFacts, KnownEdit, Worker } from "./facts.ts"
import { lineKey } from "./line-key.ts"

export type Level = "proved" | "likely" | "unknown"
/** Why an answer is given, the strongest first. */
export type Reason = "ran_commit" | "wrote_line" | "wrote_near" | "files_and_time"

type RankedWorker = CommitCandidate & { order: number; trust: number }

/** `key` stands for what the line says. */
export type AttributedLine = { line: number; key: number } & (
  | { level: "unknown" }
  | {
      level: "proved" | "likely"
      reason: Reason
      worker: Worker
      /** The message that wrote it. */
      ref?: KnownEdit["ref"]
    }
)

export type AttributedFile = { path: string; lines: AttributedLine[] }

export type AttributedCommit = {
  /** The likeliest first. */
  ranked: RankedWorker[]
  /** The first, where it is sure enough to be told. */
  told?: RankedWorker & { level: "proved" | "likely" }
  files: AttributedFile[]
}

/**
 * Which conversation made a commit, and which wrote each line that it added; of its lines, only those of files that are
 * `asked` for, where that is said. Pure, but for reading facts.
 */
export function attributeCommit(
  commit: CommitDiff,
  facts: BlameFacts,
  isAsked: (path: string) => boolean = () => true,
): AttributedCommit {
  const { candidates, writersIn } = evidenceFor(commit, facts)
  const ranked = rankWorkers(candidates)
  const files = commit.files.flatMap(({ path, added }, i) =>
    isAsked(path) ? [{ path, lines: linesOf(added, writersIn(i), ranked[0]) }] : [],
  )
  const [first] = ranked
  if (!first || first.trust < TELLS_COMMIT) return { ranked, files }
  const isProved = first.ran || files.some(({ lines }) => lines.some((line) => provesFor(line, first.worker)))
  return { ranked, told: { ...first, level: isProved ? "proved" : "likely" }, files }
}

function provesFor(line: AttributedLine, worker: Worker): boolean {
  return line.level === "proved" && line.worker === worker
}

function rankWorkers(candidates: CommitCandidate[]): RankedWorker[] {
  return candidates
    .map(({ ran, ...one }) => {
      // Who commits what others wrote ran the commit too.
      const isOwn = ran !== undefined && one.has_edited
      return {
        ...one,
        ran: isOwn ? ran : undefined,
        order: isOwn ? 1 : chance(one.features, ORDER),
        trust: Math.max(isOwn ? RAN : 0, chance(one.features, TRUST)),
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
    const asked = { line, key: lineKey(text) }
    const own = written[i]
    if (own) {
      const { worker, ref } = own.edit
      if (own.trust < LIKELY_LINE) return { ...asked, level: "unknown" }
      return { ...asked, level: own.trust >= PROVES_LINE ? "proved" : "likely", reason: "wrote_line", worker, ref }
    }
    const near = neighbour(added, written, i)
    if (near) return { ...asked, level: "likely", reason: "wrote_near", worker: near.worker }
    if (!first || first.trust < LIKELY_COMMIT || !isAlone(first)) return { ...asked, level: "unknown" }
    return { ...asked, level: "likely", reason: first.ran ? "ran_commit" : "files_and_time", worker: first.worker }
  })
}

/** Of a commit that holds several conversations' work, a line that nobody is known to have written may be anybody's. */
function isAlone({ features: { wrote } }: RankedWorker): boolean {
  return wrote === 0 || wrote >= ALONE
}

type Likeliest = { edit: KnownEdit; trust: number }

function likeliest(writers: Writer[]): Likeliest | undefined {
  return writers
    .map(({ edit, features }) => ({ edit, trust: chance(features, WROTE) }))
    .reduce<Likeliest | undefined>((best, one) => (best && best.trust >= one.trust ? best : one), undefined)
}

/** A line between two that one conversation wrote: it wrote this one too, and it was changed since, or says too little. */
function neighbour(
  added: CommitDiff["files"][number]["added"],
  written: (Likeliest | undefined)[],
  i: number,
): KnownEdit | undefined {
  const beside = (step: 1 | -1) => {
    for (let at = i + step, far = 1; far <= FARTHEST; at += step, far++) {
      if (added[at]?.line !== added[i]!.line + step * far) return undefined
      const own = written[at]
      if (own) return own.trust >= LIKELY_LINE ? own.edit : undefined
    }
    return undefined
  }
  const [above, below] = [beside(-1), beside(1)]
  return above && below && above.worker === below.worker ? above : undefined
}

/** Lines between it and one that was written. */
const FARTHEST = 3

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
const LIKELY_COMMIT = 0.7
/** … and of whose written lines it wrote so many. */
export const ALONE = 0.9
/** Where git said in the conversation that it made this very commit, of files that it had edited. */
const RAN = 0.97
