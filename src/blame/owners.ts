import type { BlamedLine } from "../git/blame-lines.ts"
import type { CommitDiff } from "../git/commit-diffs.ts"
import { type AttributedLine, attributeCommit } from "./attribute-commit.ts"
import type { BlameFacts, Worker } from "./facts.ts"
import { type AgentTrace, type Recorded, recordedFor, recordedIn } from "./recorded.ts"

/** Whose a line is. `recorded` is what the repository itself says of it, where that names somebody else, or where nobody else is known. */
export type LineOwner = {
  level: "proved" | "likely" | "unknown"
  reason?: "ran_commit" | "wrote_line" | "wrote_near" | "files_and_time" | "recorded"
  worker?: Worker
  /** The message in which it was written. */
  number?: { id: string; number: number }
  recorded?: Recorded
}

export const UNKNOWN_OWNER: LineOwner = { level: "unknown" }

export type OwnerFinder = (hash: string, path: string, line: number, text: string) => LineOwner

/** Whose the lines of these commits are, in the files that are `asked` for. Each is looked at once, when one of its lines is needed. */
export function ownersOf(
  commits: readonly CommitDiff[],
  facts: BlameFacts,
  traces: readonly AgentTrace[],
  isAsked?: (path: string) => boolean,
): OwnerFinder {
  const byHash = new Map(commits.map((commit) => [commit.hash, commit]))
  const known = new Map<string, Found>()
  const find = (commit: CommitDiff): Found => {
    const found = known.get(commit.hash) ?? readCommit(commit, facts, traces, isAsked)
    known.set(commit.hash, found)
    return found
  }
  return (hash, path, line, text) => {
    const commit = byHash.get(hash)
    if (!commit) return UNKNOWN_OWNER
    const { lines, recorded } = find(commit)
    // git blame may cut a change otherwise than git log: then the line itself says which one is meant.
    const own = lines.get(`${path}\n#${line}`) ?? lines.get(`${path}\n=${text.trim()}`)
    return withRecorded(own, recordedFor(recorded, path, line), facts)
  }
}

/** Lines that are not committed yet, as if they were, now. */
export function uncommittedOwners(
  path: string,
  lines: readonly BlamedLine[],
  facts: BlameFacts,
  now: number,
): OwnerFinder {
  const added = lines.map(({ was, text }) => ({ line: was.line, text }))
  const hash = lines[0]?.hash ?? ""
  const commit = { hash, at: now, author: "", subject: "", body: "", note: "", files: [{ path, added, removed: [] }] }
  return ownersOf([commit], facts, [])
}

type Found = { lines: Map<string, AttributedLine>; recorded: Recorded[] }

function readCommit(
  commit: CommitDiff,
  facts: BlameFacts,
  traces: readonly AgentTrace[],
  isAsked: ((path: string) => boolean) | undefined,
): Found {
  const lines = new Map<string, AttributedLine>()
  for (const { path, lines: own } of attributeCommit(commit, facts, isAsked).files)
    for (const line of own) {
      lines.set(`${path}\n#${line.line}`, line)
      lines.set(`${path}\n=${line.text.trim()}`, line)
    }
  return { lines, recorded: recordedIn(commit, traces) }
}

/** What somebody wrote down at the time is stronger than a guess, and weaker than the text itself. */
function withRecorded(line: AttributedLine | undefined, recorded: Recorded | undefined, facts: BlameFacts): LineOwner {
  const own: LineOwner = line === undefined || line.level === "unknown" ? UNKNOWN_OWNER : ownerOf(line)
  if (!recorded || own.level === "proved") return own
  const worker = recorded.session === undefined ? undefined : workerCalled(facts, recorded.session)
  if (worker) return { level: "proved", reason: "recorded", worker, recorded }
  // It names a session that is not known here, or only an agent.
  return recorded.session !== undefined || own.level === "unknown" ? { level: "unknown", recorded } : own
}

function ownerOf(line: Extract<AttributedLine, { level: "proved" | "likely" }>): LineOwner {
  const { level, reason, worker, edit } = line
  const number = edit && reason === "wrote_line" ? { id: edit.ref.id, number: edit.ref.number } : undefined
  return { level, reason, worker, ...(number && { number }) }
}

/** Entire writes a date before the id. */
function workerCalled(facts: BlameFacts, session: string): Worker | undefined {
  return facts.workers.find(({ ref }) => session === ref.id || session.endsWith(`-${ref.id}`))
}
