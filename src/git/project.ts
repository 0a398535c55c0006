import { readFileSync, statSync } from "node:fs"
import { dirname, isAbsolute, join, resolve } from "node:path"

/**
 * The project that a working directory belongs to: its git root, with worktrees folded into the repository they come
 * from, or the directory itself. Folders that are gone count as they were written; their worktree marks still fold.
 */
export function createProjectFinder(): (cwd: string) => string {
  const known = new Map<string, string>()
  return (cwd) => {
    const found = known.get(cwd) ?? find(cwd)
    known.set(cwd, found)
    return found
  }
}

function find(cwd: string): string {
  if (!isAbsolute(cwd)) return cwd
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const root = rootAt(folder)
    if (root !== undefined) return root
    if (dirname(folder) === folder) break
  }
  return withoutWorktree(cwd)
}

function rootAt(folder: string): string | undefined {
  const git = join(folder, ".git")
  const stat = statSync(git, { throwIfNoEntry: false })
  if (!stat) return undefined
  return stat.isDirectory() ? folder : mainWorktree(folder, git)
}

/** In a worktree `.git` is a file that points into the main repository; in a submodule it points into its parent. */
function mainWorktree(folder: string, gitFile: string): string {
  try {
    const target = /^gitdir:\s*(.+)$/m.exec(readFileSync(gitFile, "utf8").slice(0, 4096))?.[1]?.trim()
    const main = target && /^(.*)[\\/]\.git[\\/]worktrees[\\/][^\\/]+$/.exec(resolve(folder, target))?.[1]
    return main ?? folder
  } catch {
    return folder // unreadable: the folder itself is the best that can be said
  }
}

/** Agents put their worktrees below the project, in folders that are removed when the work is done. */
function withoutWorktree(path: string): string {
  return /^(.+?)[\\/]\.(?:claude[\\/]worktrees|worktrees|git[\\/]worktrees)[\\/][^\\/]+/.exec(path)?.[1] ?? path
}

/** What is checked out where a folder stands: the checkout's own root (of a worktree, not of its repository), and the branch. */
export function checkoutAt(cwd: string): { root: string; branch?: string } | undefined {
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const git = join(folder, ".git")
    const stat = statSync(git, { throwIfNoEntry: false })
    if (stat) {
      const branch = branchIn(stat.isDirectory() ? git : gitFolder(folder, git))
      return { root: folder, ...(branch !== undefined && { branch }) }
    }
    if (dirname(folder) === folder) return undefined
  }
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

function readHead(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").slice(0, 4096)
  } catch {
    return undefined // not there, or not for us to read: then nothing is known of it
  }
}
