import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { type BlamedLine, blameLines } from "../../git/blame-lines.ts"
import {
  type CommitDiff,
  type CommitHead,
  countTouchedFiles,
  readCommitDiffs,
  readCommitHeads,
} from "../../git/commit-diffs.ts"
import { resolveCommit } from "../../git/revisions.ts"
import { type AttributedFile, attributeCommit } from "../../learn/blame/attribute-commit.ts"
import type { BlameFacts } from "../../learn/blame/facts.ts"
import { type LineOwner, ownersOf, uncommittedDiff, uncommittedOwners } from "../../learn/blame/owners.ts"
import { many } from "../../render/words.ts"
import type { Dex } from "../context.ts"
import type { BlameInput } from "./blame.ts"
import type { LineKnowledge } from "./line-knowledge.ts"
import { importedNotes, memoryNote } from "./memory-note.ts"
import { countsByAgent, countsOf, ownerFacts } from "./owner-facts.ts"
import type { CommitFinding } from "./stored-findings.ts"
import type { BlameTarget } from "./target.ts"

type FileTarget = Extract<BlameTarget, { kind: "file" }>

export async function blameFile(
  dex: Dex,
  input: BlameInput,
  target: FileTarget,
  knowledgePromise: Promise<LineKnowledge>,
) {
  const { moves, copies } = input
  const { root, path, from, to } = target
  const rev = input.rev === undefined ? undefined : await revisionOf(dex, root, input.rev)
  const lines = await blameLines(root, path, { rev, from, to, moves, copies, signal: dex.signal })
  const { owners, commits, notes } = await ownersOfLines(dex, root, [{ path, lines }], knowledgePromise)
  const dates = new Map([...commits].map(([hash, { at }]) => [hash, isoDate(at)]))
  return {
    kind: "file" as const,
    path,
    lines: lines.map((line, i) => {
      const commit = commits.get(line.hash)
      return {
        line: line.line,
        text: line.text,
        commit: isCommitted(line) ? line.hash : "",
        was_line: line.was.line,
        was_path: line.was.path,
        date: dates.get(line.hash) ?? "",
        subject: commit?.subject ?? "",
        ...ownerFacts(owners[i]!),
      }
    }),
    commits: [],
    agents: countsByAgent(owners),
    ...countsOf(owners.map(({ level }) => level)),
    notes,
  }
}

export async function revisionOf(dex: Dex, root: string, typedRev: string): Promise<string> {
  const hash = await resolveCommit(root, typedRev, dex.signal)
  if (hash !== undefined) return hash
  throw new DexError("not_found", `There is no commit "${typedRev}" here. \`git log\` lists them.`)
}

export type BlamedFile = { path: string; lines: BlamedLine[] }

/** The owner of each line of these files, in order. */
export async function ownersOfLines(
  dex: Dex,
  root: string,
  files: readonly BlamedFile[],
  knowledgeOrPromise: Promise<LineKnowledge> | LineKnowledge,
): Promise<{ owners: LineOwner[]; commits: Map<string, CommitHead>; facts: BlameFacts; notes: string[] }> {
  const paths = pathsByCommit(files)
  const knowledge = await knowledgeOrPromise
  const uncommitted = files.map(({ path, lines }) =>
    uncommittedDiff(
      path,
      lines.filter((line) => !isCommitted(line)),
      dex.now(),
    ),
  )
  const { commits, filesOf, facts } = await findingsFor(
    dex,
    root,
    paths,
    knowledge,
    uncommitted.filter(({ files: [file] }) => file!.added.length > 0),
  )
  const ownerOf = ownersOf(commits, filesOf, facts, knowledge.traces)
  const owners = files.flatMap(({ path, lines }, i) => {
    const ownerOfUncommitted = uncommittedOwners(uncommitted[i]!, facts)
    return lines.map((line) =>
      isCommitted(line)
        ? ownerOf(line.hash, line.was.path, line.was.line, line.text)
        : ownerOfUncommitted(line.hash, path, line.was.line, line.text),
    )
  })
  const unreadCount = paths.size - commits.length
  const unreadNotes =
    unreadCount === 0
      ? []
      : [`Left out, because there are too many or they are too large: ${many(unreadCount, "commit")}.`]
  const memoryNotes = knowledge.isTeam ? [memoryNote(owners)] : []
  return {
    owners,
    commits: new Map(commits.map((commit) => [commit.hash, commit])),
    facts,
    notes: [...memoryNotes, ...(await importedNotes(dex, owners)), ...knowledge.notes, ...unreadNotes],
  }
}

/** The commits that added the lines, each with the paths that the files had then. */
function pathsByCommit(files: readonly BlamedFile[]): Map<string, Set<string>> {
  const paths = new Map<string, Set<string>>()
  for (const line of files.flatMap(({ lines }) => lines)) {
    if (!isCommitted(line)) continue
    const commitPaths = paths.get(line.hash)
    if (commitPaths) commitPaths.add(line.was.path)
    else paths.set(line.hash, new Set([line.was.path]))
  }
  return paths
}

function isCommitted({ hash }: BlamedLine): boolean {
  return !/^0+$/.test(hash)
}

/** The maximum number of commits to read. Lines of further commits have no owner, and a note says so. */
const MAX_COMMITS = 5_000
const MASS_COMMIT_FILES = 100

/** Maps the hash of each commit to the paths of the files whose lines are wanted. */
type WantedPaths = ReadonlyMap<string, ReadonlySet<string>>

type Findings = {
  facts: BlameFacts
  commits: CommitHead[]
  /** The files of a commit, with the lines that were attributed. */
  filesOf(commit: CommitHead): readonly AttributedFile[]
}

/**
 * The findings about these commits, and the facts about them and about uncommitted lines. The diffs are read only for commits
 * without a stored finding, or whose finding is outdated.
 */
export async function findingsFor(
  dex: Dex,
  root: string,
  wanted: WantedPaths,
  { factsFor, stored }: Pick<LineKnowledge, "factsFor" | "stored">,
  uncommitted: readonly CommitDiff[],
): Promise<Findings> {
  const { signal } = dex
  const hashes = [...wanted.keys()].slice(0, MAX_COMMITS)
  // Findings are stored and reused only for commits from which a single file is requested, because each finding is about one
  // file.
  const singlePaths = new Map(
    hashes.flatMap((hash) => (wanted.get(hash)!.size === 1 ? [[hash, [...wanted.get(hash)!][0]!]] : [])),
  )
  const filesByCommit: Map<string, readonly AttributedFile[]> = new Map(
    [...(stored?.find(singlePaths) ?? [])].map(([hash, file]) => [hash, [file]]),
  )
  const [heads, diffs] = await Promise.all([
    readCommitHeads(root, [...filesByCommit.keys()], { signal }),
    readDiffs(
      root,
      wanted,
      hashes.filter((hash) => !filesByCommit.has(hash)),
      signal,
    ),
  ])
  const facts = await factsFor([...diffs, ...uncommitted])
  const findings: CommitFinding[] = []
  for (const commit of diffs) {
    const paths = wanted.get(commit.hash)!
    const { files } = attributeCommit(commit, facts, (path) => paths.has(path))
    filesByCommit.set(commit.hash, files)
    const path = singlePaths.get(commit.hash)
    if (path !== undefined)
      findings.push({ commit, path, lines: files.find((file) => file.path === path)?.lines ?? [] })
  }
  stored?.keep(findings)
  return { facts, commits: [...heads, ...diffs], filesOf: ({ hash }) => filesByCommit.get(hash) ?? [] }
}

/**
 * Reads the diffs of these commits. If a commit changes more than MASS_COMMIT_FILES files, only the requested files are read,
 * because its other files say little about who made it.
 */
async function readDiffs(
  root: string,
  wanted: WantedPaths,
  hashes: string[],
  signal: AbortSignal | undefined,
): Promise<CommitDiff[]> {
  const counts = await countTouchedFiles(root, hashes, { signal })
  const [large, ordinary] = [true, false].map((isLarge) =>
    hashes.filter((hash) => (counts.get(hash) ?? 0) > MASS_COMMIT_FILES === isLarge),
  )
  const half = Math.ceil(ordinary!.length / 2)
  const paths = [...new Set(large!.flatMap((hash) => [...wanted.get(hash)!]))]
  const [mass, ...others] = await Promise.all([
    readCommitDiffs(root, large!, { signal, paths }),
    // git uses one processor for each request, so two requests finish sooner.
    readCommitDiffs(root, ordinary!.slice(0, half), { signal }),
    readCommitDiffs(root, ordinary!.slice(half), { signal }),
  ])
  const massDiffs = mass.commits.map((commit) => ({
    ...commit,
    files: commit.files.filter(({ path }) => wanted.get(commit.hash)!.has(path)),
  }))
  return [...massDiffs, ...others.flatMap(({ commits }) => commits)]
}
