import { isoDate } from "../../core/dates.ts"
import { grouped } from "../../core/format.ts"
import { formatRef } from "../../core/ref.ts"
import { type CommitDiff, readCommitDiffs } from "../../git/commit-diffs.ts"
import { type AttributedCommit, attributeCommit } from "../../learn/blame/attribute-commit.ts"
import type { BlameFacts } from "../../learn/blame/facts.ts"
import { type LineOwner, ownersOf, UNKNOWN_OWNER } from "../../learn/blame/owners.ts"
import type { AgentTrace } from "../../learn/blame/recorded.ts"
import type { Dex } from "../context.ts"
import type { LineKnowledge } from "./line-knowledge.ts"
import { memoryNote } from "./memory-note.ts"
import { countsByAgent, countsOf, ownerFacts } from "./owner-facts.ts"
import type { BlameTarget } from "./target.ts"

type CommitsTarget = Extract<BlameTarget, { kind: "commits" }>

export async function blamedCommits(dex: Dex, target: CommitsTarget, known: LineKnowledge) {
  const { commits, notes } = await commitsWithOwners(dex, target, known)
  const all = commits.flatMap(({ owners }) => owners)
  const listed = commits.map(({ commit, own, owners }) => {
    const others = new Set(owners.flatMap(({ worker }) => (worker && worker !== own.worker ? [worker] : [])))
    return {
      commit: commit.hash,
      subject: commit.subject,
      date: isoDate(commit.at),
      ...ownerFacts(own),
      ...countsOf(owners.map(({ level }) => level)),
      also: [...others].map(({ ref }) => formatRef(ref)),
    }
  })
  return {
    kind: "commits" as const,
    lines: [],
    commits: listed,
    agents: countsByAgent(all),
    ...countsOf(all.map(({ level }) => level)),
    notes,
  }
}

/** Each commit with its owner and the owner of each line that it added. */
export async function commitsWithOwners(dex: Dex, { root, hashes, isCut }: CommitsTarget, known: LineKnowledge) {
  const { commits } = await readCommitDiffs(root, hashes, { signal: dex.signal })
  const left = hashes.length - commits.length
  const facts = await known.factsFor(commits)
  const owned = commits.map((commit) => {
    const found = attributeCommit(commit, facts)
    const owners = lineOwners(commit, found, facts, known.traces)
    return { commit, owners, own: commitOwner(found, owners) }
  })
  return {
    commits: owned,
    facts,
    notes: [
      ...(known.isTeam ? [memoryNote(owned.flatMap(({ owners }) => owners))] : []),
      ...known.notes,
      ...(isCut ? [`Only the newest ${grouped(hashes.length)} commits of the range were read.`] : []),
      ...(left > 0 ? [`${grouped(left)} commits were too large to read.`] : []),
    ],
  }
}

function lineOwners(
  commit: CommitDiff,
  found: AttributedCommit,
  facts: BlameFacts,
  traces: readonly AgentTrace[],
): LineOwner[] {
  const ownerOf = ownersOf([commit], () => found.files, facts, traces)
  return commit.files.flatMap(({ path, added }) =>
    added.map(({ line, text }) => ownerOf(commit.hash, path, line, text)),
  )
}

/** The conversation that made the commit; otherwise the agent that the repository names. */
function commitOwner({ attributed }: AttributedCommit, owners: readonly LineOwner[]): LineOwner {
  const named = owners.find(({ recorded }) => recorded !== undefined)
  if (named?.reason === "recorded") return named
  if (!attributed) return named ?? UNKNOWN_OWNER
  return {
    level: attributed.level,
    reason: attributed.ran ? "ran_commit" : "files_and_time",
    worker: attributed.worker,
  }
}
