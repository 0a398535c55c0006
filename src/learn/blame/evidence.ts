import type { CommitDiff } from "../../git/commit-diffs.ts"
import {
  type BlameFacts,
  type CommitRun,
  editsUntil,
  fileIndex,
  type KnownEdit,
  lastEditsUntil,
  type Worker,
} from "./facts.ts"
import { lineKey } from "./line-key.ts"

/** Evidence that a conversation made a commit. Each value is between 0 and about 1. The weights are in attribute-commit.ts. */
export type CommitFeatures = {
  /** Of the lines with a known author, the share that the conversation wrote last. A line with many authors counts less. */
  wrote: number
  /** The share of all added lines that the conversation wrote last. */
  wrote_of_commit: number
  /** Of everything that the conversation ever wrote into the commit's files, the share that this commit contains. */
  arrives: number
  /** The share of the removed lines that the conversation removed. */
  removed: number
  /** The share of the files whose last edit was the conversation's. */
  edited_last: number
  /** 1 if the conversation made the newest edit of any of the files. */
  newest_edit: number
  /** The time since the conversation edited one of the files, as a logarithm. */
  since_edit: number
  /** The time since the conversation's last message, as a logarithm. */
  since_message: number
  /** 1 if the conversation has the newest message of all conversations. */
  newest_message: number
  /** 1 if the conversation was still running at the time of the commit. */
  was_running: number
}

/** Evidence that a conversation wrote a line, if it once wrote the same text into this file. */
export type LineFeatures = {
  /** The share of the lines added to this file that the conversation wrote. */
  wrote: number
  /** The share of these lines that no other conversation wrote. */
  alone: number
  /** The share of all added lines that the conversation wrote last. */
  wrote_of_commit: number
  /** Of everything that the conversation ever wrote into the commit's files, the share that this commit contains. */
  arrives: number
  /** The time since the conversation edited this file, as a logarithm. */
  since_edit: number
  /** 1 if no other conversation wrote this line later. */
  last: number
}

export type CommitCandidate = {
  worker: Worker
  features: CommitFeatures
  /** True if the conversation edited any of the commit's files before the commit. */
  has_edited: boolean
  ran?: CommitRun
}
export type Writer = { edit: KnownEdit; features: LineFeatures }

type CommitEvidence = {
  candidates: CommitCandidate[]
  /** Returns the possible authors of each line added to the nth file, each with the newest edit that wrote the line. */
  writersIn: (file: number) => Writer[][]
}

type BlamedCommit = Pick<CommitDiff, "hash" | "at" | "subject" | "files">

const MINUTE_MS = 60_000
/** How much later than the commit something may have happened, because clocks differ and git rounds times. */
const TIME_TOLERANCE_MS = 2 * MINUTE_MS
/** How long a conversation may be silent, in seconds, and still be a candidate for a commit whose files it did not edit. */
export const MAX_SILENCE_SECONDS = 24 * 60 * 60
/** The age, in minutes, that is assumed if there is no edit or message. */
const NEVER_MINUTES = 60 * 24 * 60

/** The latest time at which something counts as evidence about a commit. */
export function evidenceDeadline({ at }: Pick<BlamedCommit, "at">): number {
  return at + TIME_TOLERANCE_MS
}

/** Collects the evidence about the authors of a commit. Pure, except that it reads facts. */
export function evidenceFor(commit: BlamedCommit, facts: BlameFacts): CommitEvidence {
  const until = evidenceDeadline(commit)
  const files = commit.files.map((file) => readCommitFile(file, facts.editsOf(file.path, until), until))
  const sums = sumsOver(files)
  return {
    candidates: candidatesOf(commit, facts, sums, until),
    writersIn: (file) => writersOf(files[file]!, sums, until),
  }
}

/** A file of a commit, with the known authors of its lines. */
type CommitFile = {
  /** For each added line, the edits that wrote it, oldest first. Undefined if the line is too short to attribute. */
  lineEdits: (KnownEdit[] | undefined)[]
  /** For each removed line, the conversations that had removed it. */
  removers: Worker[][]
  editors: Map<Worker, { at: number; lineCount: number }>
  /**
   * For each conversation, how many of the added lines it wrote, how many of those nobody else wrote, and the keys of the
   * different lines.
   */
  lines: Map<Worker, { all: number; alone: number; different: Set<number> }>
}

function readCommitFile(
  { added, removed }: CommitDiff["files"][number],
  edits: KnownEdit[],
  until: number,
): CommitFile {
  const index = fileIndex(edits)
  const lines: CommitFile["lines"] = new Map()
  const lineEdits = added.map(({ text }) => {
    const key = lineKey(text)
    if (key === 0) return undefined
    const editsOfLine = editsUntil(index.added.get(key), until)
    const workers = workersOf(editsOfLine)
    for (const worker of workers) {
      const sum = lines.get(worker) ?? { all: 0, alone: 0, different: new Set() }
      lines.set(worker, sum)
      sum.all++
      if (workers.length === 1) sum.alone++
      sum.different.add(key)
    }
    return editsOfLine
  })
  const removers = removed.map((text) => workersOf(editsUntil(index.removed.get(lineKey(text)), until)))
  return { lineEdits, removers, editors: lastEditsUntil(index, until), lines }
}

/** Returns each conversation once. Most lines have one author or none. */
function workersOf(edits: readonly KnownEdit[]): Worker[] {
  if (edits.length < 2) return edits.map(({ worker }) => worker)
  return [...new Set(edits.map(({ worker }) => worker))]
}

type CommitSums = {
  byWorker: Map<Worker, WorkerSums>
  /** The sum of the weights of the added lines with a known author. A line with many authors has a smaller weight. */
  written: number
  /** The same sum for the removed lines. */
  removed: number
  /** The time of the newest edit of any of the files. */
  newestEdit: number
  /** The number of added lines that are long enough to attribute. */
  lineCount: number
}
type WorkerSums = {
  wrote: number
  removed: number
  editedLast: number
  lastEdit: number
  newestLines: number
  linesArrived: number
  linesEverWritten: number
}

function sumsOver(files: CommitFile[]): CommitSums {
  const sums: CommitSums = { byWorker: new Map(), written: 0, removed: 0, newestEdit: 0, lineCount: 0 }
  const sumsOf = (worker: Worker) => {
    const workerSums = sums.byWorker.get(worker) ?? { ...EMPTY_SUMS }
    sums.byWorker.set(worker, workerSums)
    return workerSums
  }
  for (const { lineEdits, removers, editors, lines } of files) {
    for (const editsOfLine of lineEdits) {
      if (editsOfLine === undefined) continue
      sums.lineCount++
      const newest = editsOfLine.at(-1)
      if (!newest) continue
      const weight = 1 / workersOf(editsOfLine).length
      sums.written += weight
      sumsOf(newest.worker).wrote += weight
      sumsOf(newest.worker).newestLines++
    }
    for (const workers of removers) {
      const weight = 1 / Math.max(1, workers.length)
      sums.removed += weight
      for (const worker of workers) sumsOf(worker).removed += weight
    }
    let last: { worker: Worker; at: number } | undefined
    for (const [worker, { at, lineCount }] of editors) {
      const workerSums = sumsOf(worker)
      workerSums.lastEdit = Math.max(workerSums.lastEdit, at)
      workerSums.linesEverWritten += lineCount
      workerSums.linesArrived += lines.get(worker)?.different.size ?? 0
      if (!last || at >= last.at) last = { worker, at }
    }
    if (last) sumsOf(last.worker).editedLast++
    sums.newestEdit = Math.max(sums.newestEdit, last?.at ?? 0)
  }
  return sums
}

const EMPTY_SUMS = {
  wrote: 0,
  removed: 0,
  editedLast: 0,
  lastEdit: 0,
  newestLines: 0,
  linesArrived: 0,
  linesEverWritten: 0,
}

function candidatesOf(commit: BlamedCommit, facts: BlameFacts, sums: CommitSums, until: number): CommitCandidate[] {
  const atSeconds = Math.floor(until / 1000)
  const recent = activeWithin(facts.workers, atSeconds, MAX_SILENCE_SECONDS)
  const lastMessageAge = Math.min(...recent.values())
  const commitRuns = commitRunsOf(commit, facts.commitRuns)
  const fileCount = Math.max(1, commit.files.length)
  return [...new Set([...sums.byWorker.keys(), ...recent.keys(), ...commitRuns.keys()])].map(
    (worker): CommitCandidate => {
      const { wrote, newestLines, linesArrived, linesEverWritten, removed, editedLast, lastEdit } =
        sums.byWorker.get(worker) ?? EMPTY_SUMS
      const sinceMessage = recent.get(worker) ?? secondsSince(worker, atSeconds)
      const run = commitRuns.get(worker)
      return {
        worker,
        features: {
          wrote: share(wrote, sums.written),
          wrote_of_commit: share(newestLines, sums.lineCount),
          arrives: share(linesArrived, linesEverWritten),
          removed: share(removed, sums.removed),
          edited_last: editedLast / fileCount,
          newest_edit: lastEdit > 0 && lastEdit === sums.newestEdit ? 1 : 0,
          since_edit: logMinutes(lastEdit === 0 ? NEVER_MINUTES : (until - lastEdit) / MINUTE_MS),
          since_message: logMinutes(sinceMessage === undefined ? NEVER_MINUTES : sinceMessage / 60),
          newest_message: recent.get(worker) === lastMessageAge ? 1 : 0,
          was_running: wasRunning(worker, Math.floor(commit.at / 1000)) ? 1 : 0,
        },
        has_edited: lastEdit > 0,
        ran: run,
      }
    },
  )
}

function writersOf({ lineEdits, editors, lines }: CommitFile, sums: CommitSums, until: number): Writer[][] {
  const count = lineEdits.filter((own) => own !== undefined).length
  return lineEdits.map((own = []) => {
    const newest = own.at(-1)?.worker
    const byWorker = new Map(own.map((edit) => [edit.worker, edit]))
    return [...byWorker].map(([worker, edit]) => {
      const { all, alone } = lines.get(worker)!
      const { newestLines, linesArrived, linesEverWritten } = sums.byWorker.get(worker)!
      return {
        edit,
        features: {
          wrote: share(all, count),
          alone: share(alone, all),
          wrote_of_commit: share(newestLines, sums.lineCount),
          arrives: share(linesArrived, linesEverWritten),
          since_edit: logMinutes((until - (editors.get(worker)?.at ?? 0)) / MINUTE_MS),
          last: worker === newest ? 1 : 0,
        },
      }
    })
  })
}

const share = (part: number, total: number) => (total === 0 ? 0 : part / total)
const logMinutes = (minutes: number) => Math.log1p(Math.max(0, minutes)) / 10

/**
 * Finds the conversations in which git printed the commit's hash. A rebase changes the hash. If no hash matches, a commit with
 * the same subject at the same time counts.
 */
function commitRunsOf(commit: BlamedCommit, ran: CommitRun[]): Map<Worker, CommitRun> {
  const exact = ran.filter((one) => isSameCommit(commit, one))
  const similar = ran.filter((one) => isSimilarCommit(commit, one))
  return new Map((exact.length > 0 ? exact : similar).map((one) => [one.worker, one]))
}

type NamedCommit = Pick<CommitDiff, "hash" | "at" | "subject">

function isSameCommit({ hash }: NamedCommit, ran: { hash: string }): boolean {
  return hash.startsWith(ran.hash)
}

function isSimilarCommit({ at, subject }: NamedCommit, ran: { subject: string; at: number }): boolean {
  return ran.subject === subject && Math.abs(ran.at - at) <= TIME_TOLERANCE_MS
}

/** Whether the commit that git printed can be this one. */
export function mayBeSameCommit(commit: NamedCommit, ran: { hash: string; subject: string; at: number }): boolean {
  return isSameCommit(commit, ran) || isSimilarCommit(commit, ran)
}

/** How long after its last message a conversation still counts as running. */
const MAX_PAUSE_SECONDS = 10 * 60

/** Maps each conversation with a message in the last `maxSeconds` seconds to the age of its last message. */
function activeWithin(workers: Worker[], atSeconds: number, maxSeconds: number): Map<Worker, number> {
  const ages = new Map<Worker, number>()
  for (const worker of workers) {
    if ((worker.activeSeconds.at(-1) ?? 0) < atSeconds - maxSeconds) continue
    const age = secondsSince(worker, atSeconds)
    if (age !== undefined && age <= maxSeconds) ages.set(worker, age)
  }
  return ages
}

/** The seconds between this time and the last message before it. Undefined if there is none. Times are seconds since 1970. */
function secondsSince({ activeSeconds }: Worker, atSeconds: number): number | undefined {
  let [low, high] = [0, activeSeconds.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (activeSeconds[middle]! <= atSeconds) low = middle + 1
    else high = middle
  }
  return low === 0 ? undefined : atSeconds - activeSeconds[low - 1]!
}

/** Whether the conversation had begun by this time and had not ended more than a few minutes before. */
function wasRunning({ activeSeconds }: Worker, atSeconds: number): boolean {
  return (
    activeSeconds.length > 0 && activeSeconds[0]! <= atSeconds && atSeconds <= activeSeconds.at(-1)! + MAX_PAUSE_SECONDS
  )
}
