import { runGit } from "./run.ts"

const LIMITS = { timeoutMs: 20_000, mostBytes: 4 << 20, readsOnly: true }

/** The hash of a commit that is named in any way that git knows; undefined where there is none. */
export async function commitNamed(folder: string, name: string, signal?: AbortSignal): Promise<string | undefined> {
  const said = await hashesIn(
    folder,
    ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`],
    signal,
  )
  return said?.[0]
}

/** The commits of a range (`main..topic`), newest first, without merges; one more than `most` where there are more. */
export function commitsIn(
  folder: string,
  range: string,
  most: number,
  signal?: AbortSignal,
): Promise<string[] | undefined> {
  return hashesIn(
    folder,
    ["rev-list", "--no-merges", `--max-count=${most + 1}`, "--end-of-options", range, "--"],
    signal,
  )
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
