import { withFolderSpelling } from "../core/path-key.ts"

/** Matches the path prefix of a worktree inside its project. Its files count as the project's. */
const WORKTREE = /^\.(?:claude\/)?worktrees?\/[^/]+\//

/**
 * The folders to which the paths in a conversation are relative: those of its project, and its own. Another clone's file is the
 * project's file, too.
 */
export function pathRootsOf(row: {
  project?: string | undefined
  folders?: readonly string[]
  cwds?: readonly string[]
}): string[] {
  if (row.project === undefined) return []
  const folders = [row.project, ...(row.folders ?? [])].sort((a, b) => b.length - a.length)
  return [...folders, ...(row.cwds ?? [])]
}

/** The folder of its project in which a conversation took place: one clone of several, for example. */
export function placeOf(row: {
  project?: string
  folders?: readonly string[]
  cwds: readonly string[]
}): string | undefined {
  const [cwd] = row.cwds
  const folders = [row.project ?? [], row.folders ?? []].flat().sort((a, b) => b.length - a.length)
  return folders.find((folder) => cwd !== undefined && (cwd === folder || pathBelow(folder, cwd) !== undefined)) ?? cwd
}

/** The path relative to the first of these folders that contains it. */
export function pathBelowAny(folders: readonly string[], path: string): string | undefined {
  for (const folder of folders) {
    const below = pathBelow(folder, path)
    if (below !== undefined) return below
  }
  return undefined
}

/** The path relative to the project, with forward slashes. Undefined if it is outside the project. */
export function pathBelow(project: string, path: string, platform = process.platform): string | undefined {
  const base = project.replaceAll("\\", "/").replace(/\/$/, "")
  const withSlashes = withFolderSpelling(base, path.replaceAll("\\", "/"), platform)
  const isAbsolute = withSlashes.startsWith("/") || withSlashes.startsWith("~") || /^[A-Za-z]:/.test(withSlashes)
  if (isAbsolute && !withSlashes.startsWith(`${base}/`)) return undefined
  const relativePath = isAbsolute ? withSlashes.slice(base.length + 1) : withSlashes.replace(/^(?:\.\/)+/, "")
  return relativePath === "" || relativePath.startsWith("../") ? undefined : relativePath.replace(WORKTREE, "")
}

export function fileNameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1)
}

export function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")))
}

/** Returns `token` for src/token.ts, token_test.go, test_token.py and token.spec.ts. */
export function stemOf(path: string): string {
  const [stem = ""] = fileNameOf(path).toLowerCase().split(".")
  return stem.replace(/^test_|[_-](?:test|spec)$/, "")
}

export function isTest(path: string): boolean {
  return /(?:^|\/)(?:tests?|__tests__|spec)\/|[._-](?:test|spec)\.\w+$|(?:^|\/)test_\w+\.py$/i.test(path)
}

/** True if a path is the test of this file, by its name. */
export function isTestOf(path: string, file: string): boolean {
  return isTest(path) && stemOf(path) === stemOf(file)
}

/** Whether a path is safe to show. A long path, or one with spaces, may be a text that somebody wrote. */
export function isPlainPath(path: string): boolean {
  return path.length <= 160 && /^[\w@.+/()[\]-]+$/.test(path)
}
