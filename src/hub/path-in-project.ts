import { posix } from "node:path"
import { foldPath } from "../core/path-key.ts"

/**
 * A path from the project's folder on, with slashes; undefined where it is elsewhere. `folders` are all places where the
 * project is or was: of this machine, of another one, of Windows, and its worktrees.
 */
export function pathInProject(
  path: string,
  folders: readonly string[],
  { home, platform }: { home: string; platform: NodeJS.Platform },
): string | undefined {
  const plain = spelled(path.replace(/^~(?=$|[\\/])/, () => home))
  if (!isWhole(plain)) return inside(/^[A-Za-z]:/.test(plain) ? ".." : plain)
  // The longest first: a worktree may lie inside the project.
  for (const folder of folders.map(spelled).sort((a, b) => b.length - a.length)) {
    const base = folder.replace(/\/+$/, "")
    if (!isWhole(folder) || base === "" || /^[A-Za-z]:$/.test(base)) continue
    const steps = base.split("/").length
    const names = plain.split("/")
    // Compared name by name: the same one may have another length in another spelling.
    const key = (text: string) => foldPath(text, isWindows(base) ? "win32" : platform)
    if (names.length > steps && key(names.slice(0, steps).join("/")) === key(base))
      return inside(names.slice(steps).join("/"))
  }
  return undefined
}

/** Agents keep worktrees below the project: the files in them are the project's. */
const WORKTREE = /^\.(?:claude\/worktrees|worktrees|git\/worktrees)\/[^/]+\//

function inside(relative: string): string | undefined {
  const short = posix.normalize(relative).replace(/^(?:\.\/)+/, "")
  if (short === "" || short === "." || short === ".." || short.startsWith("../") || short.startsWith("/"))
    return undefined
  return short.replace(WORKTREE, "") || undefined
}

/** With slashes, without `..` in it, and without what Windows may put before a drive. */
function spelled(path: string): string {
  const slashes = /^(?:[A-Za-z]:[\\/]|\\\\)/.test(path) || !path.includes("/") ? path.replaceAll("\\", "/") : path
  const bare = slashes.replace(/^\/\/\?\/(?=[A-Za-z]:)/, "")
  return isWhole(bare) ? posix.normalize(bare) : bare
}

function isWhole(path: string): boolean {
  return path.startsWith("/") || isWindows(path)
}

function isWindows(path: string): boolean {
  return /^[A-Za-z]:\//.test(path)
}
