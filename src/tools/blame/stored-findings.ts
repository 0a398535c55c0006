import { formatRef } from "../../core/ref.ts"
import type { CommitHead } from "../../git/commit-diffs.ts"
import { hasIncompleteHistory } from "../../git/project.ts"
import type { AttributedFile, AttributedLine, AttributionReason } from "../../learn/blame/attribute-commit.ts"
import { evidenceDeadline } from "../../learn/blame/evidence.ts"
import type { Worker } from "../../learn/blame/facts.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import type { OwnersVersion } from "../../store/knowledge/owners.ts"

export type CommitFinding = { commit: CommitHead; path: string; lines: AttributedLine[] }

/** Stored findings about commits, one per file. A finding is recomputed if something new affects it. */
export type StoredFindings = {
  /** By commit hash. */
  find(pathOf: ReadonlyMap<string, string>): Map<string, AttributedFile>
  /** Never fails: a finding that cannot be stored is recomputed next time. */
  keep(findings: readonly CommitFinding[]): void
}

export function storedFindings(
  { lines }: Pick<Knowledge, "lines">,
  { project, root }: { project: string; root: string },
  by: OwnersVersion,
  workers: readonly Worker[],
): StoredFindings {
  // In a shallow clone, the oldest commits seem to add everything that existed before them.
  const isComplete = !hasIncompleteHistory(root)
  const byName = new Map(workers.map((worker) => [formatRef(worker.ref), worker]))
  return {
    find(pathOf) {
      const found = new Map<string, AttributedFile>()
      const rows = isComplete ? lines.cachedOwners(project, by.version, [...pathOf.keys()]) : []
      for (const row of rows.filter(({ hash, path }) => pathOf.get(hash) === path)) {
        const own = linesFrom(row.found, byName)
        if (own) found.set(row.hash, { path: row.path, lines: own })
      }
      return found
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
        lines.cacheOwners(project, by, rows)
      } catch {
        // The disk is full, or another process is writing. The answer does not depend on it.
      }
    },
  }
}

/** A line's number, its key and, if its author is known, its index in `whats` and the number of the message that wrote it. */
type StoredLine = [line: number, key: number, what?: number, message?: number]
type LineAuthor = [level: "proved" | "likely", reason: AttributionReason, worker: string, wroteIn?: string]

function findingsText(lines: readonly AttributedLine[]): string {
  const whats = new Map<string, number>()
  const kept = lines.map((one): StoredLine => {
    if (one.level === "unknown") return [one.line, one.key]
    const { level, reason, worker, ref } = one
    const what: LineAuthor = [level, reason, formatRef(worker.ref)]
    if (ref) what.push(ref.id)
    const text = JSON.stringify(what)
    if (!whats.has(text)) whats.set(text, whats.size)
    const line: StoredLine = [one.line, one.key, whats.get(text)!]
    if (ref) line.push(ref.number)
    return line
  })
  return `{"whats":[${[...whats.keys()].join(",")}],"lines":${JSON.stringify(kept)}}`
}

/** Undefined if the text names an unknown conversation: the finding must then be recomputed. */
function linesFrom(text: string, workers: ReadonlyMap<string, Worker>): AttributedLine[] | undefined {
  const { whats, lines } = JSON.parse(text) as { whats: LineAuthor[]; lines: StoredLine[] }
  if (whats.some(([, , worker]) => !workers.has(worker))) return undefined
  return lines.map(([line, key, what, message]): AttributedLine => {
    if (what === undefined) return { line, key, level: "unknown" }
    const [level, reason, name, id] = whats[what]!
    const worker = workers.get(name)!
    const wrote = id !== undefined && message !== undefined && { ref: { ...worker.ref, id, number: message } }
    return { line, key, level, reason, worker, ...wrote }
  })
}
