import { formatRef } from "../../core/ref.ts"
import type { CommitHead } from "../../git/commit-diffs.ts"
import { isCutOff } from "../../git/project.ts"
import type { AttributedFile, AttributedLine, Reason } from "../../learn/blame/attribute-commit.ts"
import { lastMomentFor } from "../../learn/blame/evidence.ts"
import type { Worker } from "../../learn/blame/facts.ts"
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

// What was found about the lines that a commit added to a file, as a text to be kept, and back.

/** A line's number, its key and, where somebody is known, what of `whats` it is and the number of the message that wrote it. */
type KeptLine = [line: number, key: number, what?: number, message?: number]
type What = [level: "proved" | "likely", reason: Reason, worker: string, wroteIn?: string]

function keptText(lines: readonly AttributedLine[]): string {
  const whats = new Map<string, number>()
  const kept = lines.map((one): KeptLine => {
    if (one.level === "unknown") return [one.line, one.key]
    const { level, reason, worker, ref } = one
    const what: What = [level, reason, formatRef(worker.ref)]
    if (ref) what.push(ref.id)
    const text = JSON.stringify(what)
    if (!whats.has(text)) whats.set(text, whats.size)
    const line: KeptLine = [one.line, one.key, whats.get(text)!]
    if (ref) line.push(ref.number)
    return line
  })
  return `{"whats":[${[...whats.keys()].join(",")}],"lines":${JSON.stringify(kept)}}`
}

/** Undefined where it names a conversation that is not known: then it must be found anew. */
function linesKeptIn(text: string, workers: ReadonlyMap<string, Worker>): AttributedLine[] | undefined {
  const { whats, lines } = JSON.parse(text) as { whats: What[]; lines: KeptLine[] }
  if (whats.some(([, , worker]) => !workers.has(worker))) return undefined
  return lines.map(([line, key, what, message]): AttributedLine => {
    if (what === undefined) return { line, key, level: "unknown" }
    const [level, reason, name, id] = whats[what]!
    const worker = workers.get(name)!
    const wrote = id !== undefined && message !== undefined && { ref: { ...worker.ref, id, number: message } }
    return { line, key, level, reason, worker, ...wrote }
  })
}
