import type { BlamedLine } from "../../git/blame-lines.ts"
import type { CommitDiff, CommitHead } from "../../git/commit-diffs.ts"
import { type AttributedFile, type AttributedLine, attributeCommit } from "./attribute-commit.ts"
import type { BlameFacts, Worker } from "./facts.ts"
import { lineKey } from "./line-key.ts"
import { type AgentTrace, type RecordedAuthor, recordedAuthorOfLine, recordedAuthors } from "./recorded.ts"

/** The author of a line. `recorded` is the repository's own record of the author, if it is the best evidence. */
export type LineOwner = {
  level: "proved" | "likely" | "unknown"
  reason?: "ran_commit" | "wrote_line" | "wrote_near" | "files_and_time" | "recorded"
  worker?: Worker
  /** The message that wrote the line. */
  number?: { id: string; number: number }
  recorded?: RecordedAuthor
}

export const UNKNOWN_OWNER: LineOwner = { level: "unknown" }

export type OwnerFinder = (hash: string, path: string, line: number, text: string) => LineOwner

/** Finds the authors of these commits' lines. A commit is analysed once, when one of its lines is first needed. */
export function ownersOf<Commit extends CommitHead>(
  commits: readonly Commit[],
  attributedFiles: (commit: Commit) => readonly AttributedFile[],
  facts: BlameFacts,
  traces: readonly AgentTrace[],
): OwnerFinder {
  const byHash = new Map(commits.map((commit) => [commit.hash, commit]))
  const analysed = new Map<string, CommitAuthors>()
  const analyse = (commit: Commit): CommitAuthors => {
    const authors = analysed.get(commit.hash) ?? {
      files: new Map(attributedFiles(commit).map(({ path, lines }) => [path, linesByPlace(lines)])),
      recorded: recordedAuthors(commit, traces),
    }
    analysed.set(commit.hash, authors)
    return authors
  }
  return (hash, path, line, text) => {
    const commit = byHash.get(hash)
    if (!commit) return UNKNOWN_OWNER
    const { files, recorded } = analyse(commit)
    const lines = files.get(path)
    // git blame may split a change differently from git log. In that case the line's text identifies it.
    const attributed = lines?.byNumber.get(line) ?? lines?.byKey.get(lineKey(text))
    return withRecorded(attributed, recordedAuthorOfLine(recorded, path, line), facts)
  }
}

/** Returns lines that are not committed yet, in the form of a commit made now. */
export function uncommittedDiff(path: string, lines: readonly BlamedLine[], now: number): CommitDiff {
  const added = lines.map(({ was, text }) => ({ line: was.line, text }))
  const hash = lines[0]?.hash ?? ""
  return { hash, at: now, author: "", subject: "", body: "", note: "", files: [{ path, added, removed: [] }] }
}

export function uncommittedOwners(commit: CommitDiff, facts: BlameFacts): OwnerFinder {
  return ownersOf([commit], () => attributeCommit(commit, facts).files, facts, [])
}

type CommitAuthors = { files: Map<string, LinesByPlace>; recorded: RecordedAuthor[] }
type LinesByPlace = { byNumber: Map<number, AttributedLine>; byKey: Map<number, AttributedLine> }

function linesByPlace(lines: readonly AttributedLine[]): LinesByPlace {
  return {
    byNumber: new Map(lines.map((line) => [line.line, line])),
    byKey: new Map(lines.map((line) => [line.key, line])),
  }
}

/** A record in the repository is stronger evidence than a likely author, and weaker than a proved one. */
function withRecorded(
  line: AttributedLine | undefined,
  recorded: RecordedAuthor | undefined,
  facts: BlameFacts,
): LineOwner {
  const owner: LineOwner = line === undefined || line.level === "unknown" ? UNKNOWN_OWNER : ownerOf(line)
  if (!recorded || owner.level === "proved") return owner
  const worker = recorded.session === undefined ? undefined : findWorker(facts, recorded.session)
  if (worker) return { level: "proved", reason: "recorded", worker, recorded }
  // The record names an unknown session, or only an agent.
  return recorded.session !== undefined || owner.level === "unknown" ? { level: "unknown", recorded } : owner
}

function ownerOf(line: Extract<AttributedLine, { level: "proved" | "likely" }>): LineOwner {
  const { level, reason, worker, ref } = line
  return { level, reason, worker, number: ref && { id: ref.id, number: ref.number } }
}

/** Finds a conversation by its session. The tool Entire writes a date before the id. */
function findWorker(facts: BlameFacts, session: string): Worker | undefined {
  return facts.workers.find(({ ref }) => session === ref.id || session.endsWith(`-${ref.id}`))
}
