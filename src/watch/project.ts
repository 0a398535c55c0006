import { realpathSync } from "node:fs"
import { join } from "node:path"
import { type Watched, watchArea } from "./area.ts"
import type { WatchProblem } from "./folders.ts"
import { skippedFolders } from "./ignored.ts"
import type { ProjectChange } from "./listeners.ts"

/** Deeper is no project's source. */
const PROJECT_DEPTH = 40
/** More than this at once is a checkout or a build, and cheaper to look at as a whole. */
const MOST_FILES = 1_000

export type Project = {
  areas: Watched[]
  /** What changed since it was last taken. */
  take(): ProjectChange
  /** What was taken could not be used: the next time it is everything. */
  missed(): void
  /** What git ignores may be other than it was; and where nothing is watched, anything may have changed. */
  lookAgain(): Promise<void>
  close(): void
}

/** Watches a project's files, but for those that nobody works on, and its git history. `own`: dex's folder. */
export async function openProject(
  project: string,
  own: string,
  on: { touched(): void; problem(problem: WatchProblem): void },
): Promise<Project> {
  const [root, mine] = [realOr(project), realOr(own)]
  let files: Set<string> | undefined = new Set()
  let git = false
  let skipped = await skippedFolders(root)
  const missed = () => {
    files = undefined
    git = true
  }
  const tree = watchArea(
    { folder: project, depth: PROJECT_DEPTH, skips: (path) => path === mine || skipped(path), awaits: false },
    {
      changed: (path) => {
        if (path === undefined || (files && files.size >= MOST_FILES)) files = undefined
        else files?.add(path)
        on.touched()
      },
      problem: on.problem,
    },
  )
  // Every commit, checkout, merge and reset adds a line there.
  const log = watchArea(
    { folder: join(project, ".git", "logs"), depth: 0, files: /^HEAD$/, skips: () => false },
    {
      changed: () => {
        git = true
        on.touched()
      },
      problem: () => {}, // told of for the project's files already
    },
  )
  const areas = [tree, log]
  return {
    areas,
    missed,
    take: () => {
      const change = { project, ...(files && { files: [...files] }), git }
      files = new Set()
      git = false
      return change
    },
    lookAgain: async () => {
      skipped = await skippedFolders(root)
      if (tree.state().how === "watching") return tree.renew()
      missed()
      on.touched()
    },
    close: () => {
      for (const area of areas) area.close()
    },
  }
}

/** Without links, as changes are told. */
export function realOr(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path // not there yet
  }
}
