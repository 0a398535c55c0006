import { runGit } from "./run.ts"

/** The text of a file in a commit. */
type FileVersion = { text: string; at: number; name: string }

const LIMITS = { timeoutMs: 20_000, readsOnly: true }
const MAX_LOG_BYTES = 16 << 20
const MAX_TEXT_BYTES = 64 << 20
const MAX_VERSIONS = 400

/**
 * The different texts that a file had in any commit, on any branch, newest first. Empty if git
 * fails. `path` is relative to the folder.
 */
export async function versionsOfFile(folder: string, path: string, signal?: AbortSignal): Promise<FileVersion[]> {
  const log = await outputOf(
    folder,
    [
      "--literal-pathspecs",
      "log",
      "--all",
      "--full-history",
      "--format=commit %H %at",
      ...["--raw", "--no-abbrev", "--no-renames", "--no-notes", "--no-show-signature", "--no-mailmap", "-m"],
      ...["--end-of-options", "--", path],
    ],
    { maxBytes: MAX_LOG_BYTES, signal },
  )
  const versions = new Map<string, { at: number; name: string }>()
  let commit: { at: number; name: string } | undefined
  for (const line of log?.toString("utf8").split("\n") ?? []) {
    const [, name, seconds] = /^commit ([0-9a-f]{40,64}) (\d+)/.exec(line) ?? []
    if (name !== undefined) commit = { name, at: Number(seconds) * 1_000 }
    const [, blob] = /^:\d+ 100\d+ [0-9a-f]+ ([0-9a-f]{40,64}) [AM]/.exec(line) ?? []
    if (!commit || blob === undefined) continue
    const known = versions.get(blob)
    if (!known || commit.at < known.at) versions.set(blob, commit)
  }
  const newest = [...versions].sort(([, a], [, b]) => b.at - a.at).slice(0, MAX_VERSIONS)
  const texts = await textsOf(
    folder,
    newest.map(([blob]) => blob),
    signal,
  )
  return newest.flatMap(([blob, commit]) => {
    const text = texts.get(blob)
    return text === undefined ? [] : [{ ...commit, text }]
  })
}

/** The texts of blobs. Those that are not text are left out. */
async function textsOf(
  folder: string,
  blobs: readonly string[],
  signal: AbortSignal | undefined,
): Promise<Map<string, string>> {
  const output =
    blobs.length === 0
      ? undefined
      : await outputOf(folder, ["cat-file", "--batch"], {
          maxBytes: MAX_TEXT_BYTES,
          signal,
          input: `${blobs.join("\n")}\n`,
        })
  const texts = new Map<string, string>()
  const decoder = new TextDecoder("utf8", { fatal: true, ignoreBOM: true })
  let at = 0
  while (output && at < output.length) {
    const end = output.indexOf(10, at)
    const [, blob, size] = /^([0-9a-f]+) blob (\d+)$/.exec(output.toString("latin1", at, end)) ?? []
    if (blob === undefined) break
    at = end + 1
    try {
      texts.set(blob, decoder.decode(output.subarray(at, at + Number(size))))
    } catch {
      // not text
    }
    at += Number(size) + 1
  }
  return texts
}

async function outputOf(
  folder: string,
  args: string[],
  options: { maxBytes: number; signal: AbortSignal | undefined; input?: string },
): Promise<Buffer | undefined> {
  const pieces: Buffer[] = []
  try {
    const { code, stopped } = await runGit(args, {
      ...LIMITS,
      ...options,
      folder,
      onOutput: (bytes) => void pieces.push(bytes),
    })
    return code === 0 && stopped === undefined ? Buffer.concat(pieces) : undefined
  } catch {
    return undefined // git is not installed
  }
}
