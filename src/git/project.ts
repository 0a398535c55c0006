import { realpathSync } from "node:fs"
import { dirname, isAbsolute, join, resolve, sep } from "node:path"
import { lookAt } from "../core/look-at.ts"
import { foldsPaths, isSamePath } from "../core/path-key.ts"
import { readStart } from "../core/read-file.ts"

/** Where a working directory is. */
export type Place = {
  /** The folder of its repository, with worktrees folded into it, or the directory itself. */
  project: string
  /** The folder of the worktree, if that is not below the project. */
  worktree?: string
}

/**
 * Finds the place of a working directory. A folder that is gone or cannot be read is used as written; worktrees are still
 * recognised by their path. Never throws.
 */
export function createPlaceFinder(platform = process.platform): (cwd: string) => Place {
  const cache = new Map<string, Place>()
  return (cwd) => {
    const place = cache.get(cwd) ?? find(cwd, platform)
    cache.set(cwd, place)
    return place
  }
}

/** Finds the project of a working directory by its path alone: in another clone, it may be a place of a known project. */
export function createProjectFinder(platform = process.platform): (cwd: string) => string {
  const placeOf = createPlaceFinder(platform)
  return (cwd) => placeOf(cwd).project
}

/**
 * Returns the disk's own spelling if several spellings lead to one folder. A path through a link stays as written; a short
 * Windows name (PROGRA~1) is expanded.
 */
export function diskSpelling(path: string, platform: NodeJS.Platform, realPath = realpathSync.native): string {
  if (!foldsPaths(platform)) return path
  try {
    const realSpelling = realPath(path)
    const isShort = platform === "win32" && /~\d/.test(path)
    return isShort || isSamePath(realSpelling, path, platform) ? realSpelling : path
  } catch {
    return path // gone or not readable
  }
}

function find(cwd: string, platform: NodeJS.Platform): Place {
  const spelled = (path: string) => diskSpelling(path, platform)
  if (!isAbsolute(cwd)) return { project: cwd }
  const checkout = checkoutFrom(cwd)
  if (!checkout) return { project: spelled(withoutWorktree(cwd)) }
  if (checkout.isFolder) return { project: spelled(checkout.root) }
  const project = spelled(mainWorktree(checkout.root, checkout.git))
  const worktree = spelled(checkout.root)
  return worktree === project || worktree.startsWith(project + sep) ? { project } : { project, worktree }
}

/**
 * Finds the nearest folder, from this one upwards, that contains a `.git`. Stops at the first unreadable folder: it may be the
 * root, and the folders above it may belong to another project.
 */
function checkoutFrom(cwd: string): { root: string; git: string; isFolder: boolean } | undefined {
  for (let root = resolve(cwd); ; root = dirname(root)) {
    const git = join(root, ".git")
    const stats = lookAt(git)
    if (stats === "unknown") return undefined
    if (stats) return { root, git, isFolder: stats.isDirectory() }
    if (dirname(root) === root) return undefined
  }
}

/**
 * Returns the root of the main repository if the folder is a worktree, and otherwise the folder itself. In worktrees and in
 * submodules, `.git` is a file that points into another repository.
 */
function mainWorktree(folder: string, gitFile: string): string {
  const worktreeGit = gitFolder(folder, gitFile)
  return (worktreeGit && /^(.*)[\\/]\.git[\\/]worktrees[\\/][^\\/]+$/.exec(worktreeGit)?.[1]) ?? folder
}

/**
 * Removes the worktree from a path. Agents create worktrees below the project, in folders that they delete when the work is done.
 */
function withoutWorktree(path: string): string {
  return /^(.+?)[\\/]\.(?:claude[\\/]worktrees|worktrees|git[\\/]worktrees)[\\/][^\\/]+/.exec(path)?.[1] ?? path
}

/** The checkout that contains a folder: its root (of the worktree, not of the main repository) and its branch. */
export function checkoutAt(cwd: string): { root: string; branch?: string } | undefined {
  const checkout = checkoutFrom(cwd)
  if (!checkout) return undefined
  const { root, git, isFolder } = checkout
  const branch = branchIn(isFolder ? git : gitFolder(root, git))
  return { root, branch }
}

/** The folder in which git stores the files of a repository; in a worktree, the worktree's own. */
export function gitFolderOf(cwd: string): string | undefined {
  const checkout = checkoutFrom(cwd)
  return checkout && (checkout.isFolder ? checkout.git : gitFolder(checkout.root, checkout.git))
}

/** Whether the history of a checkout is incomplete because of a shallow clone or grafts. */
export function hasIncompleteHistory(root: string): boolean {
  const gitDir = gitFolderOf(root)
  if (gitDir === undefined) return false
  const common = resolve(gitDir, readGitFile(join(gitDir, "commondir"))?.trim() ?? ".")
  return ["shallow", "info/grafts"].some((name) => lookAt(join(common, name)) !== undefined)
}

function gitFolder(folder: string, gitFile: string): string | undefined {
  const target = readGitFile(gitFile)
    ?.match(/^gitdir:\s*(.+)$/m)?.[1]
    ?.trim()
  return target === undefined ? undefined : resolve(folder, target)
}

function branchIn(gitFolder: string | undefined): string | undefined {
  return (
    gitFolder &&
    readGitFile(join(gitFolder, "HEAD"))
      ?.match(/^ref: refs\/heads\/(.+)$/m)?.[1]
      ?.trim()
  )
}

/** Reads the beginning of one of git's small files. */
export function readGitFile(path: string): string | undefined {
  try {
    return readStart(path, 4096).toString("utf8")
  } catch {
    return undefined // missing, a pipe, or not readable
  }
}

/**
 * Describes the state of a checkout's git folder, or returns undefined if there is none. As long as it is the same, so is the
 * repository's identity.
 */
export function gitStampOf(root: string): string | undefined {
  const gitDir = gitFolderOf(root)
  if (gitDir === undefined) return undefined
  const common = resolve(gitDir, readGitFile(join(gitDir, "commondir"))?.trim() ?? ".")
  const folder = lookAt(common)
  if (folder === undefined || folder === "unknown") return undefined
  const config = lookAt(join(common, "config"))
  const configTime = config === undefined || config === "unknown" ? 0 : Math.round(config.mtimeMs)
  // Until the first commit there is no log. A shallow clone can become complete.
  const present = ["logs/HEAD", "shallow"].map((name) => (lookAt(join(common, name)) === undefined ? 0 : 1))
  return [folder.ino, Math.round(folder.birthtimeMs), configTime, ...present].join(" ")
}
