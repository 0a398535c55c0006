import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
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
import type { Dex } from "../context.ts"
import type { BlameInput } from "./blame.ts"
import type { LineKnowledge } from "./line-knowledge.ts"
import { memoryNote } from "./memory-note.ts"
import { countsByAgent, countsOf, ownerFacts } from "./owner-facts.ts"
import type { CommitFinding } from "./stored-findings.ts"
import type { BlameTarget } from "./target.ts"

type FileTarget = Extract<BlameTarget, { kind: "file" }>

export async function blamedFile(dex: Dex, input: BlameInput, target: FileTarget, knowing: Promise<LineKnowledge>) {
  const { moves, copies } = input
  const { root, path, from, to } = target
  const rev = input.rev === undefined ? undefined : await revisionOf(dex, root, input.rev)
  const lines = await blameLines(root, path, { rev, from, to, moves, copies, signal: dex.signal })
  const { owners, commits, notes } = await ownersOfLines(dex, root, [{ path, lines }], knowing)
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

export async function revisionOf(dex: Dex, root: string, named: string): Promise<string> {
  const hash = await resolveCommit(root, named, dex.signal)
  if (hash !== undefined) return hash
  throw new DexError("not_found", `There is no commit "${named}" here. \`git log\` lists them.`)
}

export type BlamedFile = { path: string; lines: BlamedLine[] }

/** The owner of each line of these files, in order. */
export async function ownersOfLines(
  dex: Dex,
  root: string,
  files: readonly BlamedFile[],
  knowing: Promise<LineKnowledge> | LineKnowledge,
): Promise<{ owners: LineOwner[]; commits: Map<string, CommitHead>; facts: BlameFacts; notes: string[] }> {
  const paths = pathsByCommit(files)
  const known = await knowing
  const fresh = files.map(({ path, lines }) =>
    uncommittedDiff(
      path,
      lines.filter((line) => !isCommitted(line)),
      dex.now(),
    ),
  )
  const { commits, foundIn, facts } = await findingsFor(
    dex,
    root,
    paths,
    known,
    fresh.filter(({ files: [file] }) => file!.added.length > 0),
  )
  const ownerOf = ownersOf(commits, foundIn, facts, known.traces)
  const owners = files.flatMap(({ path, lines }, i) => {
    const ownerOfFresh = uncommittedOwners(fresh[i]!, facts)
    return lines.map((line) =>
      isCommitted(line)
        ? ownerOf(line.hash, line.was.path, line.was.line, line.text)
        : ownerOfFresh(line.hash, path, line.was.line, line.text),
    )
  })
  const left = paths.size - commits.length
  const cut = left === 0 ? [] : [`${grouped(left)} commits were not read: there are too many, or they are too large.`]
  const memories = known.isTeam ? [memoryNote(owners)] : []
  return {
    owners,
    commits: new Map(commits.map((commit) => [commit.hash, commit])),
    facts,
    notes: [...memories, ...known.notes, ...cut],
  }
}

/** The commits that added the lines, each with the paths that the files had then. */
function pathsByCommit(files: readonly BlamedFile[]): Map<string, Set<string>> {
  const paths = new Map<string, Set<string>>()
  for (const line of files.flatMap(({ lines }) => lines)) {
    if (!isCommitted(line)) continue
    const own = paths.get(line.hash)
    if (own) own.add(line.was.path)
    else paths.set(line.hash, new Set([line.was.path]))
  }
  return paths
}

function isCommitted({ hash }: BlamedLine): boolean {
  return !/^0+$/.test(hash)
}

/** The most commits to read. Lines of further commits have no owner, and a note says so. */
const MAX_COMMITS = 5_000
const MASS_FILES = 100

/** For each commit, the files whose lines are wanted. */
type WantedPaths = ReadonlyMap<string, ReadonlySet<string>>

type Findings = {
  facts: BlameFacts
  commits: CommitHead[]
  foundIn(commit: CommitHead): readonly AttributedFile[]
}

/**
 * The findings about these commits, and the facts about them and about uncommitted lines. Stored findings are reused unless
 * something new affects them; otherwise the diffs are read.
 */
export async function findingsFor(
  dex: Dex,
  root: string,
  wanted: WantedPaths,
  { factsFor, kept }: Pick<LineKnowledge, "factsFor" | "kept">,
  fresh: readonly CommitDiff[],
): Promise<Findings> {
  const { signal } = dex
  const hashes = [...wanted.keys()].slice(0, MAX_COMMITS)
  // Findings about single files are stored. They do not depend on the commit's other files.
  const single = new Map(
    hashes.flatMap((hash) => (wanted.get(hash)!.size === 1 ? [[hash, [...wanted.get(hash)!][0]!]] : [])),
  )
  const known: Map<string, readonly AttributedFile[]> = new Map(
    [...(kept?.find(single) ?? [])].map(([hash, file]) => [hash, [file]]),
  )
  const [heads, diffs] = await Promise.all([
    readCommitHeads(root, [...known.keys()], { signal }),
    readDiffs(
      root,
      wanted,
      hashes.filter((hash) => !known.has(hash)),
      signal,
    ),
  ])
  const facts = await factsFor([...diffs, ...fresh])
  const findings: CommitFinding[] = []
  for (const commit of diffs) {
    const paths = wanted.get(commit.hash)!
    const { files } = attributeCommit(commit, facts, (path) => paths.has(path))
    known.set(commit.hash, files)
    const path = single.get(commit.hash)
    if (path !== undefined) findings.push({ commit, path, lines: files.find((one) => one.path === path)?.lines ?? [] })
  }
  kept?.keep(findings)
  return { facts, commits: [...heads, ...diffs], foundIn: ({ hash }) => known.get(hash) ?? [] }
}

/**
 * Reads only the requested files of a commit that changes more than MASS_FILES files: such a commit says little about one
 * conversation.
 */
async function readDiffs(
  root: string,
  wanted: WantedPaths,
  hashes: string[],
  signal: AbortSignal | undefined,
): Promise<CommitDiff[]> {
  const counts = await countTouchedFiles(root, hashes, { signal })
  const [large, others] = [true, false].map((is) => hashes.filter((one) => (counts.get(one) ?? 0) > MASS_FILES === is))
  const half = Math.ceil(others!.length / 2)
  const paths = [...new Set(large!.flatMap((hash) => [...wanted.get(hash)!]))]
  const [mass, ...read] = await Promise.all([
    readCommitDiffs(root, large!, { signal, paths }),
    // git uses one processor for each request, so two requests finish sooner.
    readCommitDiffs(root, others!.slice(0, half), { signal }),
    readCommitDiffs(root, others!.slice(half), { signal }),
  ])
  const ofMass = mass.commits.map((commit) => ({
    ...commit,
    files: commit.files.filter(({ path }) => wanted.get(commit.hash)!.has(path)),
  }))
  return [...ofMass, ...read.flatMap(({ commits }) => commits)]
}
