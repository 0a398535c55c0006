import { dirname, join } from "node:path"
import type { LineQueries } from "../../../src/learn/blame/facts.ts"
import { learn } from "../../../src/learn/learn.ts"
import type { HistoryReader } from "../../../src/store/history/store.ts"
import { type Knowledge, openKnowledge, readKnowledge } from "../../../src/store/knowledge/knowledge.ts"
import type { LineWorker } from "../../../src/store/knowledge/lines.ts"

// The file that records who wrote which line is derived for a shard in the same way as on a laptop. It is next to the index, and
// contains no text of conversations except the subjects of commits.

/** How long to wait for another process that writes, in milliseconds. */
const BUSY_MS = 5_000

export function linesFile(indexFile: string): string {
  return join(dirname(indexFile), "lines.db")
}

export type ShardLines = {
  /** Reads what changed, until the deadline. Returns true if nothing is left. */
  follow(history: HistoryReader, deadline: number): Promise<boolean>
  close(): void
}

export function openShardLines(indexFile: string): ShardLines {
  const path = linesFile(indexFile)
  const knowledge = openKnowledge(path)
  return {
    follow: async (history, deadline) => {
      const { complete } = await learn(history, knowledge, { only: "lines", deadline })
      // No byte of a forgotten conversation stays in the file.
      if (complete && knowledge.projects.isPurgeDue()) knowledge.projects.purgeKnowledge(path)
      return complete && !knowledge.projects.isPurgeDue()
    },
    close: () => knowledge.close(),
  }
}

/** Undefined if nothing was derived yet. */
export function readShardLines(indexFile: string): Knowledge | undefined {
  return readKnowledge(linesFile(indexFile), BUSY_MS)
}

const NO_LINES: LineQueries = {
  lineWorkers: () => [],
  lineFiles: () => [],
  editsOfFiles: () => [],
  ranCommits: () => [],
}

/**
 * The first access check: limits a shard's lines to those from the conversations in `names` (their names in the feed). Without
 * `names`, nothing is limited.
 */
export function limitLines(knowledge: Knowledge | undefined, names: ReadonlySet<string> | undefined): LineQueries {
  if (!knowledge) return NO_LINES
  const { lines } = knowledge
  if (!names) return lines
  const allowed = new Set<number>()
  const workersByProject = new Map<string, LineWorker[]>()
  const workersIn = (project: string) => {
    const rows = workersByProject.get(project) ?? lines.lineWorkers(project).filter(({ name }) => names.has(name))
    workersByProject.set(project, rows)
    for (const { conversation } of rows) allowed.add(conversation)
    return rows
  }
  const isAllowed = ({ conversation }: { conversation: number }) => allowed.has(conversation)
  return {
    lineWorkers: workersIn,
    // Returns only numbers that stand for paths. The edits of a file are filtered below.
    lineFiles: (project) => {
      workersIn(project)
      return lines.lineFiles(project)
    },
    editsOfFiles: (files) => lines.editsOfFiles(files).filter(isAllowed),
    ranCommits: (project) => {
      workersIn(project)
      return lines.ranCommits(project).filter(isAllowed)
    },
  }
}
