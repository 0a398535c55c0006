import { existsSync } from "node:fs"
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

function isMadeFolder(path: string): boolean {
  return MADE.has(basename(path))
}

/** Which folders of a project nobody works in: what git ignores, or the usual ones where there is no git. */
export async function skippedFolders(project: string): Promise<(path: string) => boolean> {
  const args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"]
  const listed = await askGit(project, args)
  if (listed?.code !== 0) return (path) => isMadeFolder(path) || BUILT.has(basename(path))
  const folders = listed.paths.filter((path) => path.endsWith("/"))
  const ignored = new Set(folders.map((path) => join(project, path.slice(0, -1))))
  return (path) => isMadeFolder(path) || ignored.has(path)
}

/** Which of these files git ignores, from the project's folder on. What it tracks it does not. Undefined where it cannot say. */
export async function ignoredFiles(project: string, names: string[]): Promise<Set<string> | undefined> {
  if (!existsSync(join(project, ".git"))) return new Set()
  // Without the dot, a name that begins with a colon would be an instruction.
  const input = names.map((name) => `./${name}\0`).join("")
  const checked = await askGit(project, ["check-ignore", "--stdin", "-z"], input)
  if (checked?.code !== 0 && checked?.code !== 1) return undefined
  return new Set(checked.paths.map((path) => path.slice(2)))
}

/** Undefined where there is no git, or it takes too long. */
async function askGit(project: string, args: string[], input?: string) {
  const chunks: Buffer[] = []
  try {
    const { code } = await runGit(args, {
      folder: project,
      timeoutMs: GIT_MS,
      mostBytes: MOST_BYTES,
      readsOnly: true,
      ceiling: dirname(project),
      onOutput: (bytes) => void chunks.push(bytes),
      ...(input !== undefined && { input }),
    })
    return { code, paths: Buffer.concat(chunks).toString().split("\0").filter(Boolean) }
  } catch {
    return undefined // there is no git
  }
}
