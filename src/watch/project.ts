import { existsSync, realpathSync } from "node:fs"
import { basename, dirname, join, posix } from "node:path"
import { runGit } from "../git/run.ts"
import { type AreaWatch, watchArea } from "./area.ts"
import type { WatchProblem } from "./folders.ts"
import type { ProjectChange } from "./listeners.ts"

/** The most levels of folders to watch. No project has source files deeper than this. */
const PROJECT_DEPTH = 40
/** The most changed files to list. More at once are a checkout or a build, and reading everything is then cheaper. */
const MAX_FILES = 1_000

export type Project = {
  areas: AreaWatch[]
  /** The changes since the last call. */
  take(): ProjectChange
  /** Call this if the taken changes could not be used. The next call of `take` returns everything. */
  missed(): void
  /** Reads again what git ignores. If the files are not being watched, reports that any of them may have changed. */
  recheck(): Promise<void>
  close(): void
}

/** Watches a project's source files and its git history. `dexDir` is dex's folder. */
export async function openProject(
  project: string,
  dexDir: string,
  on: { touched(): void; problem(problem: WatchProblem): void },
): Promise<Project> {
  const [root, dexFolder] = [resolveLinks(project), resolveLinks(dexDir)]
  let files: Set<string> | undefined = new Set()
  let git = false
  let skipped = await skippedFolders(root)
  const missed = () => {
    files = undefined
    git = true
  }
  const changed = (names: string[] | undefined) => {
    if (names === undefined || (files && files.size + names.length > MAX_FILES)) files = undefined
    else for (const name of names) files?.add(name)
    on.touched()
  }
  const ignoreFilter = createIgnoreFilter((names) => ignoredFiles(root, names), changed)
  const tree = watchArea(
    { folder: project, depth: PROJECT_DEPTH, skips: (path) => path === dexFolder || skipped(path), awaits: false },
    {
      changed: (path) => (path === undefined ? changed(undefined) : ignoreFilter.take(path)),
      problem: on.problem,
    },
  )
  // Every commit, checkout, merge and reset adds a line to this file.
  const log = watchArea(
    { folder: join(project, ".git", "logs"), depth: 0, files: /^HEAD$/, skips: () => false },
    {
      changed: () => {
        git = true
        on.touched()
      },
      problem: () => {}, // already reported for the project's files
    },
  )
  const areas = [tree, log]
  return {
    areas,
    missed,
    take: () => {
      const change = { project, files: files && [...files], git }
      files = new Set()
      git = false
      return change
    },
    recheck: async () => {
      skipped = await skippedFolders(root)
      ignoreFilter.forget()
      if (tree.state().how === "watching") return tree.restart()
      missed()
      on.touched()
    },
    close: () => {
      ignoreFilter.close()
      for (const area of areas) area.close()
    },
  }
}

/** The path with links resolved, as in reported changes, or the path itself. */
export function resolveLinks(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path // not there yet
  }
}

type IgnoreFilter = {
  /** A changed file, relative to the project. */
  take(name: string): void
  /** Forgets the answers, because the ignore rules may have changed. */
  forget(): void
  close(): void
}

/** The most names to check at once. More are a checkout or a build, in which it is unknown what matters. */
const MAX_AT_ONCE = 10_000
/** The most answers to remember. Forgetting costs one more question to git. */
const MAX_REMEMBERED = 20_000

/**
 * Passes on files that git does not ignore. Asks git once for all names that arrive together, and remembers the answer, so that a
 * log that a program writes all the time costs nothing. `ask` returns the ignored names, or undefined if git cannot say; then all
 * of them pass. `pass` gets undefined if there were too many.
 */
function createIgnoreFilter(
  ask: (names: string[]) => Promise<ReadonlySet<string> | undefined>,
  pass: (names: string[] | undefined) => void,
): IgnoreFilter {
  let remembered = new Map<string, boolean>()
  let waiting = new Set<string>()
  let asking = false
  let closed = false
  const forget = () => {
    remembered = new Map() // a new map, so that a pending answer is not remembered either
  }
  const askAll = async () => {
    if (asking || closed || waiting.size === 0) return
    const names = [...waiting]
    waiting = new Set()
    asking = true
    const memory = remembered
    const ignored = await ask(names)
    asking = false
    if (closed) return
    if (memory.size + names.length > MAX_REMEMBERED) memory.clear()
    if (ignored) for (const name of names) memory.set(name, ignored.has(name))
    const passed = names.filter((name) => !ignored?.has(name))
    if (passed.length > 0) pass(passed)
    void askAll()
  }
  return {
    forget,
    take: (name) => {
      if (posix.basename(name) === ".gitignore") forget()
      const isIgnored = remembered.get(name)
      if (isIgnored === true) return
      if (isIgnored === false) return pass([name])
      if (waiting.size >= MAX_AT_ONCE) {
        waiting.clear()
        return pass(undefined)
      }
      if (waiting.size === 0) setImmediate(() => void askAll()) // together with others that arrive at the same moment
      waiting.add(name)
    },
    close: () => {
      closed = true
    },
  }
}

/** Folders that programs generate in any project. Nobody works in them, and they contain more folders than the project itself. */
const GENERATED_FOLDERS = new Set([
  ".git",
  ".hg",
  ".svn",
  "node_modules",
  "bower_components",
  ".venv",
  "venv",
  "__pycache__",
  ".tox",
  ".mypy_cache",
  ".pytest_cache",
  ".ruff_cache",
  ".cache",
  ".next",
  ".nuxt",
  ".svelte-kit",
  ".turbo",
  ".parcel-cache",
  ".gradle",
  ".terraform",
  "DerivedData",
])
/** Common build folders, for projects without git. */
const BUILD_FOLDERS = new Set(["dist", "build", "out", "target", "coverage"])
const GIT_TIMEOUT_MS = 5_000
const MAX_BYTES = 16 << 20

function isGeneratedFolder(path: string): boolean {
  return GENERATED_FOLDERS.has(basename(path))
}

/**
 * Returns a function that is true for folders in which nobody works: those that git ignores, or common build folders if there is
 * no git.
 */
export async function skippedFolders(project: string): Promise<(path: string) => boolean> {
  const args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"]
  const listed = await askGit(project, args)
  if (listed?.code !== 0) return (path) => isGeneratedFolder(path) || BUILD_FOLDERS.has(basename(path))
  const folders = listed.paths.filter((path) => path.endsWith("/"))
  const ignored = new Set(folders.map((path) => join(project, path.slice(0, -1))))
  return (path) => isGeneratedFolder(path) || ignored.has(path)
}

/** The files that git ignores, relative to the project. Tracked files are never ignored. Undefined if git cannot say. */
export async function ignoredFiles(project: string, names: string[]): Promise<Set<string> | undefined> {
  if (!existsSync(join(project, ".git"))) return new Set()
  // Without the leading dot, git would interpret a name that begins with a colon as pathspec magic.
  const input = names.map((name) => `./${name}\0`).join("")
  const checked = await askGit(project, ["check-ignore", "--stdin", "-z"], input)
  if (checked?.code !== 0 && checked?.code !== 1) return undefined
  return new Set(checked.paths.map((path) => path.slice(2)))
}

/** Runs git. Undefined if there is no git, or if it takes too long. */
async function askGit(project: string, args: string[], input?: string) {
  const chunks: Buffer[] = []
  try {
    const { code } = await runGit(args, {
      folder: project,
      timeoutMs: GIT_TIMEOUT_MS,
      mostBytes: MAX_BYTES,
      readsOnly: true,
      ceiling: dirname(project),
      onOutput: (bytes) => void chunks.push(bytes),
      input,
    })
    return { code, paths: Buffer.concat(chunks).toString().split("\0").filter(Boolean) }
  } catch {
    return undefined // there is no git
  }
}
