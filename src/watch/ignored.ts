import { basename, dirname, join } from "node:path"
import { runGit } from "../git/run.ts"

/** Made by programs, in any project: nobody works in them, and they hold more folders than the project itself. */
const MADE = new Set([
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
/** The usual places for what is built, where no git says what is ignored. */
const BUILT = new Set(["dist", "build", "out", "target", "coverage"])
const GIT_MS = 5_000
const MOST_BYTES = 16 << 20

export function isMadeFolder(path: string): boolean {
  return MADE.has(basename(path))
}

/** Which folders of a project nobody works in: what git ignores, or the usual ones where there is no git. */
export async function skippedFolders(project: string): Promise<(path: string) => boolean> {
  const ignored = await ignoredByGit(project)
  if (ignored === undefined) return (path) => isMadeFolder(path) || BUILT.has(basename(path))
  return (path) => isMadeFolder(path) || ignored.has(path)
}

/** Undefined where git cannot say. */
async function ignoredByGit(project: string): Promise<Set<string> | undefined> {
  const chunks: Buffer[] = []
  const args = ["-C", project, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"]
  try {
    const { code } = await runGit(args, {
      timeoutMs: GIT_MS,
      mostBytes: MOST_BYTES,
      readsOnly: true,
      ceiling: dirname(project),
      onOutput: (bytes) => void chunks.push(bytes),
    })
    if (code !== 0) return undefined
  } catch {
    return undefined // there is no git
  }
  const folders = Buffer.concat(chunks)
    .toString()
    .split("\0")
    .filter((path) => path.endsWith("/"))
  return new Set(folders.map((path) => join(project, path.slice(0, -1))))
}
