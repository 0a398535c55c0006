import { type LineOwner, ownersOf, uncommittedOwners } from "../../blame/owners.ts"
import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
import { type BlamedLine, blameLines } from "../../git/blame-lines.ts"
import { type CommitDiff, countTouched, readCommitDiffs } from "../../git/commit-diffs.ts"
import { commitNamed } from "../../git/revisions.ts"
import type { Dex } from "../context.ts"
import type { KnownOfLines } from "./known.ts"
import type { BlameInput } from "./run.ts"
import type { BlameTarget } from "./target.ts"
import { countsByAgent, countsOf, toldOwner } from "./told-owner.ts"

type FileTarget = Extract<BlameTarget, { kind: "file" }>

/** More commits than this are not looked into; their lines are unknown, and a note says so. */
const MOST_COMMITS = 5_000
const MASS_FILES = 100

export async function blamedFile(dex: Dex, input: BlameInput, target: FileTarget, knowing: Promise<KnownOfLines>) {
  const { moves, copies } = input
  const { root, path, from, to } = target
  const rev = input.rev === undefined ? undefined : await revisionOf(dex, root, input.rev)
  const lines = await blameLines(root, path, { rev, from, to, moves, copies, signal: dex.signal })
  const { owners, commits, notes } = await ownersIn(dex, root, [{ path, lines }], knowing)
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
        ...toldOwner(owners[i]!),
      }
    }),
    commits: [],
    agents: countsByAgent(owners),
    ...countsOf(owners.map(({ level }) => level)),
    notes,
  }
}

export async function revisionOf(dex: Dex, root: string, named: string): Promise<string> {
  const hash = await commitNamed(root, named, dex.signal)
  if (hash !== undefined) return hash
  throw new DexError("not_found", `There is no commit "${named}" here. \`git log\` lists them.`)
}

export type BlamedFile = { path: string; lines: BlamedLine[] }

/** Whose each line of these files is, in their order. */
export async function ownersIn(
  dex: Dex,
  root: string,
  files: readonly BlamedFile[],
  knowing: Promise<KnownOfLines> | KnownOfLines,
): Promise<{ owners: LineOwner[]; commits: Map<string, CommitDiff>; notes: string[] }> {
  const hashes = [...new Set(files.flatMap(({ lines }) => lines.filter(isCommitted).map(({ hash }) => hash)))]
  const names = new Set(files.flatMap(({ path, lines }) => [path, ...lines.map(({ was }) => was.path)]))
  const diffs = readDiffs(dex, root, hashes.slice(0, MOST_COMMITS), names)
  const [commits, { facts, traces, notes }] = await Promise.all([diffs, knowing])
  const ownerOf = ownersOf(commits, facts, traces, (path) => names.has(path))
  const owners = files.flatMap(({ path, lines }) => {
    const fresh = lines.filter((line) => !isCommitted(line))
    const ownerOfFresh = uncommittedOwners(path, fresh, facts, dex.now())
    return lines.map((line) =>
      isCommitted(line)
        ? ownerOf(line.hash, line.was.path, line.was.line, line.text)
        : ownerOfFresh(line.hash, path, line.was.line, line.text),
    )
  })
  const left = hashes.length - commits.length
  const cut = left === 0 ? [] : [`${grouped(left)} commits are too many or too large to be looked into.`]
  return { owners, commits: new Map(commits.map((commit) => [commit.hash, commit])), notes: [...notes, ...cut] }
}

/** A commit that brings in a whole tree says nothing of one conversation: only these files of it are looked at. */
async function readDiffs(dex: Dex, root: string, hashes: string[], names: Set<string>): Promise<CommitDiff[]> {
  const { signal } = dex
  const counts = await countTouched(root, hashes, { signal })
  const [large, others] = [true, false].map((is) => hashes.filter((one) => (counts.get(one) ?? 0) > MASS_FILES === is))
  const half = Math.ceil(others!.length / 2)
  const read = await Promise.all([
    // git uses one processor for what it is asked for: two answer sooner.
    readCommitDiffs(root, others!.slice(0, half), { signal }),
    readCommitDiffs(root, others!.slice(half), { signal }),
    readCommitDiffs(root, large!, { signal, paths: [...names] }),
  ])
  return read.flatMap(({ commits }) => commits)
}

function isCommitted({ hash }: BlamedLine): boolean {
  return !/^0+$/.test(hash)
}
