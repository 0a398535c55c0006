import { existsSync, realpathSync, statSync } from "node:fs"
import { basename, dirname, join, relative, resolve } from "node:path"
import { DexError } from "../../core/error.ts"
import { checkoutAt } from "../../git/project.ts"
import { commitsInRange, resolveCommit } from "../../git/revisions.ts"
import type { Dex } from "../context.ts"
import { isCurrentProject } from "../resolve.ts"

/** The target and its repository. `root` is the checkout's folder, `project` the project that it belongs to. */
export type BlameTarget = { root: string; project: string } & (
  | { kind: "file"; path: string; from?: number; to?: number }
  | { kind: "folder"; path: string }
  | { kind: "commits"; hashes: string[]; isCut: boolean }
)

const MAX_COMMITS = 200

/** Resolves the target to a file or folder if one exists, otherwise to a commit or a range of commits. */
export async function blameTarget(dex: Dex, typed: string, rev: string | undefined): Promise<BlameTarget> {
  const namedPlace = parsePlace(dex.cwd, typed, rev !== undefined)
  // An agent may ask only about the project in which its server was started, and does not learn what exists elsewhere.
  const place = namedPlace && (dex.caller === undefined || isInProject(dex, namedPlace.path)) ? namedPlace : undefined
  if (place) {
    const { root, project, path } = repositoryOf(dex, place.path)
    if (rev === undefined && statSync(place.path).isDirectory()) return { kind: "folder", root, project, path }
    const { from, to } = place
    return { kind: "file", root, project, path, from, to: to ?? from }
  }
  const { root, project } = repositoryOf(dex, dex.cwd)
  const hashes = await hashesOf(root, typed, dex.signal)
  if (hashes === undefined)
    throw new DexError(
      "not_found",
      `There is no file or commit called "${typed}" here. Give a file, a commit or a range of commits.`,
    )
  return { kind: "commits", root, project, hashes: hashes.slice(0, MAX_COMMITS), isCut: hashes.length > MAX_COMMITS }
}

/** Parses a path with an optional range of lines. With `mayBeDeleted`, the file need not exist: a revision may contain it. */
function parsePlace(
  cwd: string,
  typed: string,
  mayBeDeleted: boolean,
): { path: string; from?: number; to?: number } | undefined {
  const [, name, from, to] = /^(.+?)(?::(\d{1,9})(?:[-,](\d{1,9}))?)?$/s.exec(typed) ?? []
  const exists = (path: string) => existsSync(resolve(cwd, path))
  if (exists(typed) || name === undefined) return exists(typed) ? { path: resolve(cwd, typed) } : undefined
  if (!exists(name) && !mayBeDeleted) return undefined
  const path = resolve(cwd, name)
  if (from === undefined) return { path }
  const range = { from: Number(from), to: Number(to ?? from) }
  if (range.from < 1 || range.to < range.from)
    throw new DexError(
      "usage",
      `${typed} is not a range of lines: lines start at 1, and the last line must not be before the first.`,
    )
  return { path, ...range }
}

function isInProject(dex: Dex, path: string): boolean {
  try {
    return isCurrentProject(dex, repositoryOf(dex, path).project)
  } catch {
    return false // The path is in no repository.
  }
}

function repositoryOf(dex: Dex, place: string): { root: string; project: string; path: string } {
  const isFolder = existsSync(place) && statSync(place).isDirectory()
  const folder = realFolder(isFolder ? place : dirname(place))
  const root = checkoutAt(folder)?.root
  if (root === undefined)
    throw new DexError("no_repository", `${place} is not in a git repository, so its lines have no history.`)
  const path = relative(root, isFolder ? folder : join(folder, basename(place))).replaceAll("\\", "/")
  return { root, project: dex.projectOf(folder), path }
}

/** The folder with links resolved, or the path as given if the folder no longer exists. */
function realFolder(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}

async function hashesOf(root: string, typed: string, signal: AbortSignal | undefined): Promise<string[] | undefined> {
  if (typed.includes("..")) return commitsInRange(root, typed, MAX_COMMITS, signal)
  const hash = await resolveCommit(root, typed, signal)
  return hash === undefined ? undefined : [hash]
}
