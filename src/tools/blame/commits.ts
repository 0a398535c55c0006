import { isoDate } from "../../core/dates.ts"
import { grouped } from "../../core/format.ts"
import { formatRef } from "../../core/ref.ts"
import { type CommitDiff, readCommitDiffs } from "../../git/commit-diffs.ts"
import { type AttributedCommit, attributeCommit } from "../../learn/blame/attribute-commit.ts"
import type { BlameFacts } from "../../learn/blame/facts.ts"
import { type LineOwner, ownersOf, UNKNOWN_OWNER } from "../../learn/blame/owners.ts"
import type { AgentTrace } from "../../learn/blame/recorded.ts"
import { many } from "../../render/words.ts"
import type { Dex } from "../context.ts"
import type { LineKnowledge } from "./line-knowledge.ts"
import { importedNotes, memoryNote } from "./memory-note.ts"
import { countsByAgent, countsOf, ownerFacts } from "./owner-facts.ts"
import type { BlameTarget } from "./target.ts"

type CommitsTarget = Extract<BlameTarget, { kind: "commits" }>

export async function blameCommits(dex: Dex, target: CommitsTarget, knowledge: LineKnowledge) {
  const { commits, notes } = await commitsWithOwners(dex, target, knowledge)
  const allOwners = commits.flatMap(({ owners }) => owners)
  const commitRows = commits.map(({ commit, maker, owners }) => {
    const others = new Set(owners.flatMap(({ worker }) => (worker && worker !== maker.worker ? [worker] : [])))
    return {
      commit: commit.hash,
      subject: commit.subject,
      date: isoDate(commit.at),
      ...ownerFacts(maker),
      ...countsOf(owners.map(({ level }) => level)),
      also: [...others].map(({ ref }) => formatRef(ref)),
    }
  })
  return {
    kind: "commits" as const,
    lines: [],
    commits: commitRows,
    agents: countsByAgent(allOwners),
    ...countsOf(allOwners.map(({ level }) => level)),
    notes,
  }
}

/** Finds out who made each commit, and who wrote each line that it added. */
export async function commitsWithOwners(dex: Dex, { root, hashes, isCut }: CommitsTarget, knowledge: LineKnowledge) {
  const { commits } = await readCommitDiffs(root, hashes, { signal: dex.signal })
  const unreadCount = hashes.length - commits.length
  const facts = await knowledge.factsFor(commits)
  const attributedCommits = commits.map((commit) => {
    const attribution = attributeCommit(commit, facts)
    const owners = lineOwners(commit, attribution, facts, knowledge.traces)
    return { commit, owners, maker: commitOwner(attribution, owners) }
  })
  return {
    commits: attributedCommits,
    facts,
    notes: [
      ...(knowledge.isTeam ? [memoryNote(attributedCommits.flatMap(({ owners }) => owners))] : []),
      ...(await importedNotes(
        dex,
        attributedCommits.flatMap(({ owners, maker }) => [maker, ...owners]),
      )),
      ...knowledge.notes,
      ...(isCut ? [`Only the newest ${grouped(hashes.length)} commits of the range were read.`] : []),
      ...(unreadCount > 0 ? [`Too large to read: ${many(unreadCount, "commit")}.`] : []),
    ],
  }
}

function lineOwners(
  commit: CommitDiff,
  attribution: AttributedCommit,
  facts: BlameFacts,
  traces: readonly AgentTrace[],
): LineOwner[] {
  const ownerOf = ownersOf([commit], () => attribution.files, facts, traces)
  return commit.files.flatMap(({ path, added }) =>
    added.map(({ line, text }) => ownerOf(commit.hash, path, line, text)),
  )
}

/** The conversation that the repository records, or else the one that made the commit, or else the agent that is recorded. */
function commitOwner({ attributed }: AttributedCommit, owners: readonly LineOwner[]): LineOwner {
  const recordedOwner = owners.find(({ recorded }) => recorded !== undefined)
  if (recordedOwner?.reason === "recorded") return recordedOwner
  if (!attributed) return recordedOwner ?? UNKNOWN_OWNER
  return {
    level: attributed.level,
    reason: attributed.ran ? "ran_commit" : "files_and_time",
    worker: attributed.worker,
  }
}
