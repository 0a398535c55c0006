import { DexError } from "../../core/error.ts"
import { blameLines } from "../../git/blame-lines.ts"
import type { CommitDiff, CommitHead } from "../../git/commit-diffs.ts"
import type { BlameFacts } from "../../learn/blame/facts.ts"
import type { LineOwner } from "../../learn/blame/owners.ts"
import type { Dex } from "../context.ts"
import { commitsWithOwners } from "./commits.ts"
import { ownersOfLines, revisionOf } from "./file.ts"
import { lineKnowledge } from "./line-knowledge.ts"
import { blameTarget } from "./target.ts"
import type { TeamHub } from "./team-facts.ts"

/** The owners of the requested lines, and the commits that added them, newest first. */
export type OwnersOfTarget = {
  owners: LineOwner[]
  commits: CommitHead[]
  /** The same commits with their changes, if the target names commits. */
  diffs: CommitDiff[]
  /** Who made the commits, if the target names commits. Includes commits that only removed lines. */
  makers: LineOwner[]
  facts: BlameFacts
  notes: string[]
}

export async function ownersOfTarget(
  dex: Dex,
  input: { target: string; rev?: string },
  hub?: TeamHub,
): Promise<OwnersOfTarget> {
  const target = await blameTarget(dex, input.target, input.rev)
  if (target.kind === "folder")
    throw new DexError("usage", `${input.target} is a folder. Name a file, a line (src/a.ts:42), or a commit.`)
  const knowledge = await lineKnowledge(dex, target, hub)
  if (target.kind === "file") {
    const { root, path, from, to } = target
    const rev = input.rev === undefined ? undefined : await revisionOf(dex, root, input.rev)
    const lines = await blameLines(root, path, { rev, from, to, signal: dex.signal })
    const { owners, commits, facts, notes } = await ownersOfLines(dex, root, [{ path, lines }], knowledge)
    const newestFirst = [...commits.values()].sort((a, b) => b.at - a.at)
    return { owners, commits: newestFirst, diffs: [], makers: [], facts, notes }
  }
  const { commits, facts, notes } = await commitsWithOwners(dex, target, knowledge)
  return {
    owners: commits.flatMap(({ owners }) => owners),
    commits: commits.map(({ commit }) => commit),
    diffs: commits.map(({ commit }) => commit),
    makers: commits.map(({ maker }) => maker),
    facts,
    notes,
  }
}
