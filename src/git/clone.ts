import { mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { DexError } from "../core/error.ts"
import { runGit } from "./run.ts"

export type CopyOptions = {
  /** True to fetch the newest commit. Otherwise, an existing copy is used as it is. */
  update?: boolean | undefined
  timeoutMs?: number | undefined
  signal?: AbortSignal | undefined
}

/** Copies a repository into `folder` at its newest commit and returns the commit's short hash. */
export async function copyRepository(url: string, folder: string, options: CopyOptions = {}): Promise<string> {
  await (options.update ? updateRepository : cloneRepository)(url, folder, options)
  return (await git([`--git-dir=${join(folder, ".git")}`, "rev-parse", "--short=12", "HEAD"], options)).trim()
}

/** Makes a shallow clone in `folder`, unless it already contains one. Links become plain files, and hooks never run. */
async function cloneRepository(url: string, folder: string, options: CopyOptions): Promise<void> {
  if (await isFolder(join(folder, ".git"))) return
  await mkdir(dirname(folder), { recursive: true, mode: 0o700 })
  await removeAbandonedCopies(dirname(folder))
  const partial = await mkdtemp(`${folder}${PARTIAL_SUFFIX}`)
  try {
    await git(["clone", ...SHALLOW, "--single-branch", "--template=", "--", url, partial], options)
    await rm(folder, { recursive: true, force: true })
    await rename(partial, folder)
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
}

const PARTIAL_SUFFIX = ".partial-"
/** The age, in milliseconds, from which an unfinished copy counts as abandoned: far longer than any copy may take. */
const ABANDONED_MS = 24 * 3_600_000

/** Removes unfinished copies that killed processes left behind. */
async function removeAbandonedCopies(folder: string): Promise<void> {
  for (const name of (await readdir(folder)).filter((entry) => entry.includes(PARTIAL_SUFFIX))) {
    const path = join(folder, name)
    const stats = await stat(path).catch(() => undefined)
    if (stats && Math.abs(Date.now() - stats.mtimeMs) > ABANDONED_MS) await rm(path, { recursive: true, force: true })
  }
}

/** Fetches the newest commit, or clones the repository if there is no copy. If fetching fails, the copy stays as it was. */
async function updateRepository(url: string, folder: string, options: CopyOptions): Promise<void> {
  if (!(await isFolder(join(folder, ".git")))) return cloneRepository(url, folder, options)
  // A git process that was killed leaves lock files. Deleting them is safe because only one sync runs at a time.
  for (const lock of ["index.lock", "shallow.lock"]) await rm(join(folder, ".git", lock), { force: true })
  const repositoryArgs = [`--git-dir=${join(folder, ".git")}`, `--work-tree=${folder}`]
  await git([...repositoryArgs, "fetch", ...SHALLOW, "--force", "--", url, "HEAD"], options)
  await git([...repositoryArgs, "reset", "--hard", "--quiet", "FETCH_HEAD"], options)
  await git([...repositoryArgs, "clean", "-ffdxq"], options)
}

const SHALLOW = ["--depth=1", "--no-tags", "--no-recurse-submodules"]
const MAX_BYTES = 10_000

async function git(args: string[], { timeoutMs = 120_000, signal }: CopyOptions): Promise<string> {
  let out = ""
  const { code, stopped, errors } = await runGit(args, {
    timeoutMs,
    maxBytes: Number.POSITIVE_INFINITY,
    signal,
    onOutput: (bytes) => {
      out = (out + bytes.toString("utf8")).slice(0, MAX_BYTES)
    },
  })
  if (code === 0 && !stopped) return out
  const reason =
    stopped === "time"
      ? `it took longer than ${Math.round(timeoutMs / 1000)} s`
      : stopped === "cancelled"
        ? "it was cancelled"
        : errors.split("\n").slice(-3).join(" ") || `it ended with ${code}`
  throw new DexError(
    "git_failed",
    `git could not read the repository: ${reason}. Try \`git ls-remote\` with its address.`,
  )
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  )
