import { realpathSync } from "node:fs"
import { dirname, isAbsolute, join, resolve } from "node:path"
import { lookAt } from "../core/look-at.ts"
import { isFolding, isSamePath } from "../core/path-key.ts"
import { readStart } from "../core/read-file.ts"

/**
 * The project that a working directory belongs to: its git root, with worktrees folded into the repository they come
 * from, or the directory itself. Folders that are gone, or that cannot be looked at, count as they were written; their
 * worktree marks still fold. Never throws.
 */
export function createProjectFinder(platform = process.platform): (cwd: string) => string {
  const known = new Map<string, string>()
  return (cwd) => {
    const found = known.get(cwd) ?? asOnDisk(find(cwd), platform)
    known.set(cwd, found)
    return found
  }
}

/**
 * As the disk spells it, where several spellings lead to one folder. What leads through a link stays as it was written; a
 * short name of Windows (PROGRA~1) is written out.
 */
export function asOnDisk(path: string, platform: NodeJS.Platform, realPath = realpathSync.native): string {
  if (!isFolding(platform)) return path
  try {
    const real = realPath(path)
    const isShort = platform === "win32" && /~\d/.test(path)
    return isShort || isSamePath(real, path, platform) ? real : path
  } catch {
    return path // gone, or not for us to look at
  }
}

function find(cwd: string): string {
  if (!isAbsolute(cwd)) return cwd
  const checkout = checkoutFrom(cwd)
  if (!checkout) return withoutWorktree(cwd)
  return checkout.isFolder ? checkout.root : mainWorktree(checkout.root, checkout.git)
}

/**
 * The nearest folder, from this one upwards, with a `.git` in it. Stops at the first that cannot be looked at: it may be
 * the root itself, and what lies above it may be another project.
 */
function checkoutFrom(cwd: string): { root: string; git: string; isFolder: boolean } | undefined {
  for (let root = resolve(cwd); ; root = dirname(root)) {
    const git = join(root, ".git")
    const found = lookAt(git)
    if (found === "unknown") return undefined
    if (found) return { root, git, isFolder: found.isDirectory() }
    if (dirname(root) === root) return undefined
  }
}

/** In a worktree `.git` is a file that points into the main repository; in a submodule it points into its parent. */
function mainWorktree(folder: string, gitFile: string): string {
  const own = gitFolder(folder, gitFile)
  // Unreadable: the folder itself is the best that can be said.
  return (own && /^(.*)[\\/]\.git[\\/]worktrees[\\/][^\\/]+$/.exec(own)?.[1]) ?? folder
}

/** Agents put their worktrees below the project, in folders that are removed when the work is done. */
function withoutWorktree(path: string): string {
  return /^(.+?)[\\/]\.(?:claude[\\/]worktrees|worktrees|git[\\/]worktrees)[\\/][^\\/]+/.exec(path)?.[1] ?? path
}

/** What is checked out where a folder stands: the checkout's own root (of a worktree, not of its repository), and the branch. */
export function checkoutAt(cwd: string): { root: string; branch?: string } | undefined {
  const checkout = checkoutFrom(cwd)
  if (!checkout) return undefined
  const { root, git, isFolder } = checkout
  const branch = branchIn(isFolder ? git : gitFolder(root, git))
  return { root, branch }
}

/** Where the repository of a folder keeps its own files; in a worktree, what is the worktree's. */
export function gitFolderOf(cwd: string): string | undefined {
  const checkout = checkoutFrom(cwd)
  return checkout && (checkout.isFolder ? checkout.git : gitFolder(checkout.root, checkout.git))
}

/** Whether the history of a checkout is not all there: a shallow clone, or one with grafts. */
export function isCutOff(root: string): boolean {
  const own = gitFolderOf(root)
  if (own === undefined) return false
  const common = resolve(own, readHead(join(own, "commondir"))?.trim() ?? ".")
  return ["shallow", "info/grafts"].some((name) => lookAt(join(common, name)) !== undefined)
}

function gitFolder(folder: string, gitFile: string): string | undefined {
  const target = readHead(gitFile)
    ?.match(/^gitdir:\s*(.+)$/m)?.[1]
    ?.trim()
  return target === undefined ? undefined : resolve(folder, target)
}

function branchIn(gitFolder: string | undefined): string | undefined {
  return (
    gitFolder &&
    readHead(join(gitFolder, "HEAD"))
      ?.match(/^ref: refs\/heads\/(.+)$/m)?.[1]
      ?.trim()
  )
}

/** The beginning of one of git's small files. */
export function readHead(path: string): string | undefined {
  try {
    return readStart(path, 4096).toString("utf8")
  } catch {
    return undefined // not there, a pipe, or not for us to read: then nothing is known of it
  }
}
