import { formatRef } from "../../core/ref.ts"
import type { CommitHead } from "../../git/commit-diffs.ts"
import { isCutOff } from "../../git/project.ts"
import type { AttributedFile, AttributedLine } from "../../learn/blame/attribute-commit.ts"
import { lastMomentFor } from "../../learn/blame/evidence.ts"
import type { Worker } from "../../learn/blame/facts.ts"
import { keptText, linesKeptIn } from "../../learn/blame/kept-lines.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import type { FoundBy } from "../../store/knowledge/owners.ts"

export type CommitFinding = { commit: CommitHead; path: string; lines: AttributedLine[] }

/** What was found about commits, each with the one file that was asked about. It is found again where something new has a say in it. */
export type Kept = {
  /** By hash. */
  find(pathOf: ReadonlyMap<string, string>): Map<string, AttributedFile>
  /** Never fails: what is not kept is found again. */
  keep(findings: readonly CommitFinding[]): void
}

export function keptFindings(
  { lines }: Pick<Knowledge, "lines">,
  { project, root }: { project: string; root: string },
  by: FoundBy,
  workers: readonly Worker[],
): Kept {
  // Of a history that is cut off, the oldest commits seem to add everything that was there before them.
  const isWhole = !isCutOff(root)
  const byName = new Map(workers.map((worker) => [formatRef(worker.ref), worker]))
  return {
    find(pathOf) {
      const found = new Map<string, AttributedFile>()
      const rows = isWhole ? lines.keptOwners(project, by.version, [...pathOf.keys()]) : []
      for (const row of rows.filter(({ hash, path }) => pathOf.get(hash) === path)) {
        const own = linesKeptIn(row.found, byName)
        if (own) found.set(row.hash, { path: row.path, lines: own })
      }
      return found
    },
    keep(findings) {
      if (!isWhole || findings.length === 0) return
      const rows = findings.map(({ commit, path, lines }) => ({
        hash: commit.hash,
        path,
        until: lastMomentFor(commit),
        found: keptText(lines),
      }))
      try {
        lines.keepOwners(project, by, rows)
      } catch {
        // No room, or somebody else writes for long: the answer is as good.
      }
    },
  }
}
