import { runGit } from "./run.ts"

const LIMITS = { timeoutMs: 20_000, maxBytes: 4 << 20, readsOnly: true }
const CHANGES_TIMEOUT_MS = 5_000

/** Returns the hash of a commit that is named in any way that git accepts, or undefined if there is none. */
export async function resolveCommit(folder: string, name: string, signal?: AbortSignal): Promise<string | undefined> {
  const hashes = await hashesIn(
    folder,
    ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`],
    signal,
  )
  return hashes?.[0]
}

/** The commits of a range (`main..topic`), newest first, without merges. Returns `maxCommits + 1` commits if there are more. */
export function commitsInRange(
  folder: string,
  range: string,
  maxCommits: number,
  signal?: AbortSignal,
): Promise<string[] | undefined> {
  return hashesIn(
    folder,
    ["rev-list", "--no-merges", `--max-count=${maxCommits + 1}`, "--end-of-options", range, "--"],
    signal,
  )
}

export type CommitOfFile = { hash: string; at: number; subject: string }

/**
 * The commits that changed a file under any name that it had, newest first. Returns `maxCommits + 1` commits if there are more,
 * and undefined if git fails or takes too long. `path` is relative to the folder.
 */
export async function commitsChanging(
  folder: string,
  path: string,
  {
    maxCommits,
    rev = "HEAD",
    signal,
  }: { maxCommits: number; rev?: string | undefined; signal?: AbortSignal | undefined },
): Promise<CommitOfFile[] | undefined> {
  const chunks: Buffer[] = []
  const end = await runGit(
    [
      ...[
        "--literal-pathspecs",
        "log",
        "--follow",
        `--max-count=${maxCommits + 1}`,
        "--format=%H %at %s",
        "--no-notes",
      ],
      ...["--no-patch", "--no-show-signature", "--no-mailmap", "--encoding=UTF-8", "--end-of-options", rev, "--", path],
    ],
    { ...LIMITS, timeoutMs: CHANGES_TIMEOUT_MS, folder, signal, onOutput: (bytes) => void chunks.push(bytes) },
  )
  if (end.code !== 0) return undefined
  return Buffer.concat(chunks)
    .toString("utf8")
    .split("\n")
    .flatMap((line) => {
      const [, hash, at, subject] = /^([0-9a-f]{40,64}) (\d+) (.*)$/.exec(line) ?? []
      return hash === undefined ? [] : [{ hash, at: Number(at) * 1000, subject: subject! }]
    })
}

async function hashesIn(
  folder: string,
  args: string[],
  signal: AbortSignal | undefined,
): Promise<string[] | undefined> {
  const chunks: Buffer[] = []
  const end = await runGit(args, { ...LIMITS, folder, signal, onOutput: (bytes) => void chunks.push(bytes) })
  if (end.code !== 0) return undefined
  const lines = Buffer.concat(chunks).toString("latin1").split("\n")
  return lines.filter((line) => /^[0-9a-f]{40,64}$/.test(line))
}
