import { formatRef } from "../../core/ref.ts"
import type { CommitHead } from "../../git/commit-diffs.ts"
import { hasIncompleteHistory } from "../../git/project.ts"
import type { AttributedFile, AttributedLine, AttributionReason } from "../../learn/blame/attribute-commit.ts"
import { evidenceDeadline } from "../../learn/blame/evidence.ts"
import type { Worker } from "../../learn/blame/facts.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import type { OwnersVersion } from "../../store/knowledge/owners.ts"

export type CommitFinding = { commit: CommitHead; path: string; lines: AttributedLine[] }

/** Stored findings about commits, one per file. Outdated findings are not returned, so the caller computes them again. */
export type StoredFindings = {
  /** Returns the stored findings by commit hash. `pathOf` maps each hash to the file of interest. */
  find(pathOf: ReadonlyMap<string, string>): Map<string, AttributedFile>
  /** Never fails: a finding that cannot be stored is recomputed next time. */
  keep(findings: readonly CommitFinding[]): void
}

export function storedFindings(
  { lines }: Pick<Knowledge, "lines">,
  { project, root }: { project: string; root: string },
  madeBy: OwnersVersion,
  workers: readonly Worker[],
): StoredFindings {
  // In a shallow clone, the oldest commits seem to add everything that existed before them, so its findings are not stored.
  const isComplete = !hasIncompleteHistory(root)
  const byName = new Map(workers.map((worker) => [formatRef(worker.ref), worker]))
  return {
    find(pathOf) {
      const files = new Map<string, AttributedFile>()
      const rows = isComplete ? lines.cachedOwners(project, madeBy.version, [...pathOf.keys()]) : []
      for (const row of rows.filter(({ hash, path }) => pathOf.get(hash) === path)) {
        const attributed = linesFrom(row.found, byName)
        if (attributed) files.set(row.hash, { path: row.path, lines: attributed })
      }
      return files
    },
    keep(findings) {
      if (!isComplete || findings.length === 0) return
      const rows = findings.map(({ commit, path, lines }) => ({
        hash: commit.hash,
        path,
        until: evidenceDeadline(commit),
        found: findingsText(lines),
      }))
      try {
        lines.cacheOwners(project, madeBy, rows)
      } catch {
        // The disk is full, or another process is writing. The answer does not need the stored findings.
      }
    },
  }
}

/**
 * A line's number and key. If its author is known, then also the author's index in `whats`, and the number of the message that
 * wrote the line.
 */
type StoredLine = [line: number, key: number, author?: number, message?: number]
type LineAuthor = [level: "proved" | "likely", reason: AttributionReason, worker: string, wroteIn?: string]

function findingsText(lines: readonly AttributedLine[]): string {
  const authors = new Map<string, number>()
  const storedLines = lines.map((line): StoredLine => {
    if (line.level === "unknown") return [line.line, line.key]
    const { level, reason, worker, ref } = line
    const author: LineAuthor = [level, reason, formatRef(worker.ref)]
    if (ref) author.push(ref.id)
    const text = JSON.stringify(author)
    if (!authors.has(text)) authors.set(text, authors.size)
    const stored: StoredLine = [line.line, line.key, authors.get(text)!]
    if (ref) stored.push(ref.number)
    return stored
  })
  return `{"whats":[${[...authors.keys()].join(",")}],"lines":${JSON.stringify(storedLines)}}`
}

/** Parses a stored finding. Returns undefined if it names an unknown conversation; the caller then recomputes the finding. */
function linesFrom(text: string, workers: ReadonlyMap<string, Worker>): AttributedLine[] | undefined {
  const { whats: authors, lines } = JSON.parse(text) as { whats: LineAuthor[]; lines: StoredLine[] }
  if (authors.some(([, , worker]) => !workers.has(worker))) return undefined
  return lines.map(([line, key, authorIndex, message]): AttributedLine => {
    if (authorIndex === undefined) return { line, key, level: "unknown" }
    const [level, reason, name, id] = authors[authorIndex]!
    const worker = workers.get(name)!
    const refField = id !== undefined && message !== undefined && { ref: { ...worker.ref, id, number: message } }
    return { line, key, level, reason, worker, ...refField }
  })
}
