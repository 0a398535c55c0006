import { runGit } from "./run.ts"

const TIMEOUT_MS = 30_000
const MAX_OUTPUT_BYTES = 64 << 20

/**
 * The files of a repository's folder that git knows, there or not, or would take, relative to the folder with forward
 * slashes. Undefined when the folder is in no repository, or git is missing or does not answer: the caller walks the folder then.
 */
export async function listGitFiles(folder: string, signal?: AbortSignal): Promise<string[] | undefined> {
  const chunks: Buffer[] = []
  try {
    const end = await runGit(["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
      ...{ folder, timeoutMs: TIMEOUT_MS, mostBytes: MAX_OUTPUT_BYTES, signal, readsOnly: true },
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
