import { existsSync, realpathSync } from "node:fs"
import { basename, dirname, join, posix } from "node:path"
import { runGit } from "../git/run.ts"
import { type AreaWatch, watchArea } from "./area.ts"
import type { WatchProblem } from "./folders.ts"
import type { ProjectChange } from "./listeners.ts"

/** The maximum number of levels of folders to watch. No project has source files in deeper folders. */
const PROJECT_DEPTH = 40
/**
 * The maximum number of changed files to list. If more change at once, it is a checkout or a build, and reading everything is
 * then cheaper.
 */
const MAX_FILES = 1_000

export type Project = {
  areas: AreaWatch[]
  /** Returns the changes since the last call. */
  take(): ProjectChange
  /**
   * Call this if the changes that `take` returned could not be processed. The next call of `take` then reports that everything
   * may have changed.
   */
  missed(): void
  /** Asks git again which folders it ignores. If the files are not being watched, reports that any of them may have changed. */
  recheck(): Promise<void>
  close(): void
}

/** Watches a project's source files and its git history. `dexDir` is dex's own folder, which is not watched. */
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
  const headLog = watchArea(
    { folder: join(project, ".git", "logs"), depth: 0, files: /^HEAD$/, skips: () => false },
    {
      changed: () => {
        git = true
        on.touched()
      },
      problem: () => {}, // already reported for the project's files
    },
  )
  const areas = [tree, headLog]
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

/**
 * Returns the path with links resolved, like the paths that `AreaSpec.skips` receives, or the path itself if it does not exist.
 */
export function resolveLinks(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path // the path does not exist yet
  }
}

type IgnoreFilter = {
  /** Call this for each changed file. The name is relative to the project. */
  take(name: string): void
  /** Forgets git's answers, because the ignore rules may have changed. */
  forget(): void
  close(): void
}

/**
 * The maximum number of names to check at once. If there are more, a checkout or a build changed them, and dex does not ask git
 * which of them matter.
 */
const MAX_PENDING = 10_000
/** The maximum number of git's answers to remember. Beyond this number, dex forgets them and asks git again. */
const MAX_REMEMBERED = 20_000

/**
 * Passes on the names of files that git does not ignore. Asks git once for all names that arrive together, and remembers its
 * answers, so that a log file that a program writes continuously costs nothing. `ask` returns the ignored names, or undefined
 * if git cannot tell; then all names are passed on. `pass` is called with undefined if there were too many names.
 */
function createIgnoreFilter(
  ask: (names: string[]) => Promise<ReadonlySet<string> | undefined>,
  pass: (names: string[] | undefined) => void,
): IgnoreFilter {
  let answers = new Map<string, boolean>()
  let pendingNames = new Set<string>()
  let isAsking = false
  let closed = false
  const forget = () => {
    answers = new Map() // use a new map, so that a pending answer is not remembered either
  }
  const askAll = async () => {
    if (isAsking || closed || pendingNames.size === 0) return
    const names = [...pendingNames]
    pendingNames = new Set()
    isAsking = true
    const answersAtStart = answers
    const ignored = await ask(names)
    isAsking = false
    if (closed) return
    if (answersAtStart.size + names.length > MAX_REMEMBERED) answersAtStart.clear()
    if (ignored) for (const name of names) answersAtStart.set(name, ignored.has(name))
    const passedNames = names.filter((name) => !ignored?.has(name))
    if (passedNames.length > 0) pass(passedNames)
    void askAll()
  }
  return {
    forget,
    take: (name) => {
      if (posix.basename(name) === ".gitignore") forget()
      const isIgnored = answers.get(name)
      if (isIgnored === true) return
      if (isIgnored === false) return pass([name])
      if (pendingNames.size >= MAX_PENDING) {
        pendingNames.clear()
        return pass(undefined)
      }
      if (pendingNames.size === 0) setImmediate(() => void askAll()) // wait for other names that arrive at the same moment
      pendingNames.add(name)
    },
    close: () => {
      closed = true
    },
  }
}

/**
 * Folders that programs generate in projects of all kinds. Nobody works in them, and they contain more folders than the project
 * itself.
 */
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
 * Returns a function that returns true for folders in which nobody works: generated folders and those that git ignores, or common
 * build folders if git cannot tell.
 */
export async function skippedFolders(project: string): Promise<(path: string) => boolean> {
  const args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"]
  const gitOutput = await askGit(project, args)
  if (gitOutput?.code !== 0) return (path) => isGeneratedFolder(path) || BUILD_FOLDERS.has(basename(path))
  const folders = gitOutput.paths.filter((path) => path.endsWith("/"))
  const ignored = new Set(folders.map((path) => join(project, path.slice(0, -1))))
  return (path) => isGeneratedFolder(path) || ignored.has(path)
}

/**
 * Returns which of these files git ignores, relative to the project. Tracked files are never ignored. Returns undefined if git
 * cannot tell.
 */
export async function ignoredFiles(project: string, names: string[]): Promise<Set<string> | undefined> {
  if (!existsSync(join(project, ".git"))) return new Set()
  // Without the leading dot, git would interpret a name that begins with a colon as pathspec magic.
  const input = names.map((name) => `./${name}\0`).join("")
  const gitOutput = await askGit(project, ["check-ignore", "--stdin", "-z"], input)
  if (gitOutput?.code !== 0 && gitOutput?.code !== 1) return undefined
  return new Set(gitOutput.paths.map((path) => path.slice(2)))
}

/** Runs git. Returns undefined if there is no git. */
async function askGit(project: string, args: string[], input?: string) {
  const chunks: Buffer[] = []
  try {
    const { code } = await runGit(args, {
      folder: project,
      timeoutMs: GIT_TIMEOUT_MS,
      maxBytes: MAX_BYTES,
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
