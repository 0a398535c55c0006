import { realpathSync } from "node:fs"
import { join } from "node:path"
import { type AreaWatch, watchArea } from "./area.ts"
import type { WatchProblem } from "./folders.ts"
import { ignoredFiles, skippedFolders } from "./ignored.ts"
import type { ProjectChange } from "./listeners.ts"
import { createSieve } from "./sieve.ts"

/** Deeper is no project's source. */
const PROJECT_DEPTH = 40
/** More than this at once is a checkout or a build, and cheaper to look at as a whole. */
const MOST_FILES = 1_000

export type Project = {
  areas: AreaWatch[]
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
  const changed = (names: string[] | undefined) => {
    if (names === undefined || (files && files.size + names.length > MOST_FILES)) files = undefined
    else for (const name of names) files?.add(name)
    on.touched()
  }
  const sieve = createSieve((names) => ignoredFiles(root, names), changed)
  const tree = watchArea(
    { folder: project, depth: PROJECT_DEPTH, skips: (path) => path === mine || skipped(path), awaits: false },
    {
      changed: (path) => (path === undefined ? changed(undefined) : sieve.take(path)),
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
      sieve.forget()
      if (tree.state().how === "watching") return tree.renew()
      missed()
      on.touched()
    },
    close: () => {
      sieve.close()
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
