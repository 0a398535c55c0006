import { realpathSync } from "node:fs"
import { dirname, isAbsolute, join, resolve } from "node:path"
import { lookAt } from "../core/look-at.ts"
import { foldsPaths, isSamePath } from "../core/path-key.ts"
import { readStart } from "../core/read-file.ts"

/**
 * Finds the project of a working directory: its git root, with worktrees folded into their repository, or the directory itself. A
 * folder that is gone or cannot be read is used as written; worktrees are still recognised by their path. Never throws.
 */
export function createProjectFinder(platform = process.platform): (cwd: string) => string {
  const cache = new Map<string, string>()
  return (cwd) => {
    const project = cache.get(cwd) ?? diskSpelling(find(cwd), platform)
    cache.set(cwd, project)
    return project
  }
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

function find(cwd: string): string {
  if (!isAbsolute(cwd)) return cwd
  const checkout = checkoutFrom(cwd)
  if (!checkout) return withoutWorktree(cwd)
  return checkout.isFolder ? checkout.root : mainWorktree(checkout.root, checkout.git)
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

/** In a worktree, `.git` is a file that points into the main repository; in a submodule, it points into the parent. */
function mainWorktree(folder: string, gitFile: string): string {
  const worktreeGit = gitFolder(folder, gitFile)
  // If the file is unreadable, the folder itself is the best guess.
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
