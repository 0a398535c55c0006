import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
import { type BlamedLine, blameLines } from "../../git/blame-lines.ts"
import {
  type CommitDiff,
  type CommitHead,
  countTouched,
  readCommitDiffs,
  readCommitHeads,
} from "../../git/commit-diffs.ts"
import { commitNamed } from "../../git/revisions.ts"
import { type AttributedFile, attributeCommit } from "../../learn/blame/attribute-commit.ts"
import type { BlameFacts } from "../../learn/blame/facts.ts"
import { type LineOwner, ownersOf, uncommitted, uncommittedOwners } from "../../learn/blame/owners.ts"
import type { Dex } from "../context.ts"
import type { BlameInput } from "./blame.ts"
import { fromWhere } from "./from-where.ts"
import type { CommitFinding } from "./kept.ts"
import type { KnownOfLines } from "./known.ts"
import type { BlameTarget } from "./target.ts"
import { countsByAgent, countsOf, toldOwner } from "./told-owner.ts"

type FileTarget = Extract<BlameTarget, { kind: "file" }>

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
): Promise<{ owners: LineOwner[]; commits: Map<string, CommitHead>; facts: BlameFacts; notes: string[] }> {
  const asked = pathsByCommit(files)
  const known = await knowing
  const fresh = files.map(({ path, lines }) =>
    uncommitted(
      path,
      lines.filter((line) => !isCommitted(line)),
      dex.now(),
    ),
  )
  const { commits, foundIn, facts } = await lookInto(
    dex,
    root,
    asked,
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
  const left = asked.size - commits.length
  const cut = left === 0 ? [] : [`${grouped(left)} commits are too many or too large to be looked into.`]
  const memories = known.isTeam ? [fromWhere(owners)] : []
  return {
    owners,
    commits: new Map(commits.map((commit) => [commit.hash, commit])),
    facts,
    notes: [...memories, ...known.notes, ...cut],
  }
}

/** The commits that lines came with, each with the files in which they were then. */
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

/** More commits than this are not looked into; their lines are unknown, and a note says so. */
const MOST_COMMITS = 5_000
const MASS_FILES = 100

/** The files of each commit that are asked about. */
type AskedPaths = ReadonlyMap<string, ReadonlySet<string>>

type LookedInto = {
  facts: BlameFacts
  commits: CommitHead[]
  foundIn(commit: CommitHead): readonly AttributedFile[]
}

/** What is found about these commits, and what is known of them and of what is not committed yet: kept from last time where nothing new has a say in it, else by reading what they changed. */
export async function lookInto(
  dex: Dex,
  root: string,
  asked: AskedPaths,
  { factsFor, kept }: Pick<KnownOfLines, "factsFor" | "kept">,
  fresh: readonly CommitDiff[],
): Promise<LookedInto> {
  const { signal } = dex
  const hashes = [...asked.keys()].slice(0, MOST_COMMITS)
  // What is found about a commit that is asked about for one file does not depend on what else is asked.
  const single = new Map(
    hashes.flatMap((hash) => (asked.get(hash)!.size === 1 ? [[hash, [...asked.get(hash)!][0]!]] : [])),
  )
  const known: Map<string, readonly AttributedFile[]> = new Map(
    [...(kept?.find(single) ?? [])].map(([hash, file]) => [hash, [file]]),
  )
  const [heads, diffs] = await Promise.all([
    readCommitHeads(root, [...known.keys()], { signal }),
    readDiffs(
      root,
      asked,
      hashes.filter((hash) => !known.has(hash)),
      signal,
    ),
  ])
  const facts = await factsFor([...diffs, ...fresh])
  const findings: CommitFinding[] = []
  for (const commit of diffs) {
    const paths = asked.get(commit.hash)!
    const { files } = attributeCommit(commit, facts, (path) => paths.has(path))
    known.set(commit.hash, files)
    const path = single.get(commit.hash)
    if (path !== undefined) findings.push({ commit, path, lines: files.find((one) => one.path === path)?.lines ?? [] })
  }
  kept?.keep(findings)
  return { facts, commits: [...heads, ...diffs], foundIn: ({ hash }) => known.get(hash) ?? [] }
}

/** A commit that brings in a whole tree says nothing of one conversation: only the files that are asked about are looked at. */
async function readDiffs(
  root: string,
  asked: AskedPaths,
  hashes: string[],
  signal: AbortSignal | undefined,
): Promise<CommitDiff[]> {
  const counts = await countTouched(root, hashes, { signal })
  const [large, others] = [true, false].map((is) => hashes.filter((one) => (counts.get(one) ?? 0) > MASS_FILES === is))
  const half = Math.ceil(others!.length / 2)
  const paths = [...new Set(large!.flatMap((hash) => [...asked.get(hash)!]))]
  const [mass, ...read] = await Promise.all([
    readCommitDiffs(root, large!, { signal, paths }),
    // git uses one processor for what it is asked for: two answer sooner.
    readCommitDiffs(root, others!.slice(0, half), { signal }),
    readCommitDiffs(root, others!.slice(half), { signal }),
  ])
  const ofMass = mass.commits.map((commit) => ({
    ...commit,
    files: commit.files.filter(({ path }) => asked.get(commit.hash)!.has(path)),
  }))
  return [...ofMass, ...read.flatMap(({ commits }) => commits)]
}
