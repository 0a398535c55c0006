import { execFile } from "node:child_process"
import { basename, join } from "node:path"

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
function ignoredByGit(project: string): Promise<Set<string> | undefined> {
  const args = ["-c", "core.fsmonitor=false", "ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory"]
  const options = { cwd: project, timeout: GIT_MS, maxBuffer: 16 << 20, encoding: "utf8" as const }
  return new Promise((resolve) => {
    execFile("git", args, options, (error, stdout) => {
      if (error) return resolve(undefined)
      const folders = stdout.split("\0").filter((path) => path.endsWith("/"))
      resolve(new Set(folders.map((path) => join(project, path.slice(0, -1)))))
    })
  })
}
