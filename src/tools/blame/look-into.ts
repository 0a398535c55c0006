import { type AttributedFile, attributeCommit } from "../../blame/attribute-commit.ts"
import type { BlameFacts } from "../../blame/facts.ts"
import {
  type CommitDiff,
  type CommitHead,
  countTouched,
  readCommitDiffs,
  readCommitHeads,
} from "../../git/commit-diffs.ts"
import type { Dex } from "../context.ts"
import type { CommitFinding } from "./kept.ts"
import type { KnownOfLines } from "./known.ts"

/** More commits than this are not looked into; their lines are unknown, and a note says so. */
const MOST_COMMITS = 5_000
const MASS_FILES = 100

/** The files of each commit that are asked about. */
type AskedPaths = ReadonlyMap<string, ReadonlySet<string>>

export type LookedInto = {
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
