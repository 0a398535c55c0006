import { runGit } from "./run.ts"

const TIMEOUT_MS = 30_000
const MAX_OUTPUT_BYTES = 64 << 20

/**
 * Lists the files of a folder in a repository: the tracked files, even if they were deleted, and the untracked files that are not
 * ignored. Paths are relative to the folder, with forward slashes. Returns undefined if the folder is not in a repository, or if
 * git is missing or does not answer; the caller then walks the folder.
 */
export async function listGitFiles(folder: string, signal?: AbortSignal): Promise<string[] | undefined> {
  const chunks: Buffer[] = []
  try {
    const end = await runGit(["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
      ...{ folder, timeoutMs: TIMEOUT_MS, maxBytes: MAX_OUTPUT_BYTES, signal, readsOnly: true },
      onOutput: (bytes) => chunks.push(bytes),
    })
    if (end.code !== 0 || end.stopped !== undefined) return undefined
  } catch {
    signal?.throwIfAborted()
    return undefined // no git on this machine
  }
  const paths = Buffer.concat(chunks).toString("utf8").split("\0")
  return [...new Set(paths.filter((path) => path !== ""))].sort()
}
