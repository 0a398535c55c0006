import { randomUUID } from "node:crypto"
import { type GitRunResult, runGit } from "./run.ts"

// Reads the changes of commits, line by line.

export type DiffFile = {
  /** Relative to the repository's root. */
  path: string
  /** The previous name, if the file was renamed. */
  from?: string
  added: { line: number; text: string }[]
  removed: string[]
}

export type CommitHead = {
  hash: string
  /** The author date in milliseconds, which a rebase keeps. */
  at: number
  author: string
  subject: string
  body: string
  /** The note that git-ai stored in refs/notes/ai; empty if there is none. */
  note: string
}

export type CommitDiff = CommitHead & {
  /** For a merge, the changes relative to its first parent. */
  files: DiffFile[]
}

export type DiffLimits = { timeoutMs: number; bytes: number }
const DIFF_LIMITS: DiffLimits = { timeoutMs: 20_000, bytes: 96 << 20 }

export type DiffOptions = {
  limits?: Partial<DiffLimits>
  signal?: AbortSignal | undefined
  /** Returns only changes to these files. A file that was renamed must be listed under each of its names. */
  paths?: readonly string[]
}

export type ReadDiffsResult = {
  commits: CommitDiff[]
  /** The reason why some commits were not read. */
  stopped?: GitRunResult["stopped"] | "failed"
}

/**
 * Reads the changes of these commits, which may be in any order. Leaves out commits that git did not print completely; `stopped`
 * says why. Changes nothing in the repository.
 */
export async function readCommitDiffs(
  folder: string,
  revisions: readonly string[],
  options: DiffOptions = {},
): Promise<ReadDiffsResult> {
  const { commits, end } = await commitsOf(folder, revisions, options, PATCH_ARGS)
  if (end.stopped === undefined && end.code === 0) return { commits }
  // The last commit may be incomplete.
  return { commits: commits.slice(0, -1), stopped: end.stopped ?? "failed" }
}

/** Reads these commits without their changes, which is much faster. */
export async function readCommitHeads(
  folder: string,
  revisions: readonly string[],
  options: DiffOptions = {},
): Promise<CommitHead[]> {
  return (await commitsOf(folder, revisions, options, ["--no-patch"])).commits
}

const PATCH_ARGS = ["-p", "-U0", "-M", "-l400", "--src-prefix=a/", "--dst-prefix=b/"]

async function commitsOf(folder: string, revisions: readonly string[], options: DiffOptions, logArgs: string[]) {
  const mark = randomUUID()
  const format = `--format=${mark} %H %at%n%an <%ae>%n%s%n%b%n${mark}:%N%n${mark}`
  const { text, end } = await logOf(folder, revisions, options, [...logArgs, "--notes=refs/notes/ai", format])
  return { commits: diffsIn(text, mark), end }
}

/** Counts the files that each of these commits touched. Commits that git cannot read are missing. */
export async function countTouchedFiles(
  folder: string,
  revisions: readonly string[],
  options: DiffOptions = {},
): Promise<Map<string, number>> {
  const { text } = await logOf(folder, revisions, options, ["--raw", "--no-renames", "--no-notes", "--format=%H"])
  const counts = new Map<string, number>()
  let hash = ""
  for (const line of linesOf(text)) {
    if (line.startsWith(":")) counts.set(hash, counts.get(hash)! + 1)
    else if (line !== "") {
      hash = line
      counts.set(hash, 0)
    }
  }
  return counts
}

async function logOf(folder: string, revisions: readonly string[], options: DiffOptions, logArgs: string[]) {
  if (revisions.length === 0) return { text: "", end: { code: 0, errors: "" } as GitRunResult }
  const { timeoutMs, bytes } = { ...DIFF_LIMITS, ...options.limits }
  const chunks: Buffer[] = []
  const end = await runGit(
    [
      ...["--literal-pathspecs", "-c", "core.quotePath=false", "log", "--no-walk=unsorted", "--stdin", "--root"],
      ...["--diff-merges=first-parent", "--no-ext-diff", "--no-textconv", "--no-show-signature", "--no-relative"],
      ...["--no-color", "--no-mailmap", "-O/dev/null", "--encoding=UTF-8", ...logArgs],
      ...(options.paths ? ["--", ...options.paths] : []),
    ],
    {
      ...{ folder, timeoutMs, maxBytes: bytes, signal: options.signal, readsOnly: true },
      input: `${revisions.join("\n")}\n`,
      onOutput: (chunk) => void chunks.push(chunk),
    },
  )
  return { text: Buffer.concat(chunks).toString("utf8"), end }
}

/** `mark` encloses the facts about each commit, so that no message or file can be mistaken for them. */
function diffsIn(text: string, mark: string): CommitDiff[] {
  const pieces = text.split(`${mark} `).slice(1)
  return pieces.map((piece) => {
    const [header = "", note = "", patch = ""] = piece.split(mark)
    const [head = "", author = "", subject = "", ...body] = header.split("\n")
    const [hash = "", at] = head.split(" ")
    const commit = { hash, at: Number(at) * 1000, author, subject, body: body.join("\n").trim() }
    return { ...commit, note: note.slice(1).trim(), files: filesOfDiff(patch) }
  })
}

/** Parses a patch without context lines. Counts the lines of each hunk, because a changed line may look like a header. */
export function filesOfDiff(patch: string): DiffFile[] {
  const files: DiffFile[] = []
  let file: DiffFile | undefined
  let [oldLeft, newLeft, lineNumber] = [0, 0, 0]
  for (const line of linesOf(patch)) {
    if (file && oldLeft + newLeft > 0) {
      if (line.startsWith("+")) {
        file.added.push({ line: lineNumber++, text: line.slice(1) })
        newLeft--
      } else if (line.startsWith("-")) {
        file.removed.push(line.slice(1))
        oldLeft--
      }
      continue
    }
    if (line.startsWith("diff --git ")) {
      file = { path: "", added: [], removed: [] }
      files.push(file)
    } else if (!file) continue
    else if (line.startsWith("rename from ")) file.from = decodeGitName(line.slice(12))
    else if (line.startsWith("rename to ")) file.path = decodeGitName(line.slice(10))
    else if (line.startsWith("--- a/") || line.startsWith('--- "a/'))
      file.path ||= decodeGitName(line.slice(4)).slice(2)
    else if (line.startsWith("+++ b/") || line.startsWith('+++ "b/')) file.path = decodeGitName(line.slice(4)).slice(2)
    else {
      const hunk = /^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line)
      if (!hunk) continue
      oldLeft = Number(hunk[1] ?? 1)
      lineNumber = Number(hunk[2])
      newLeft = Number(hunk[3] ?? 1)
    }
  }
  return files.filter(({ path }) => path !== "")
}

function* linesOf(text: string): Generator<string> {
  let from = 0
  for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", from)) {
    yield text.slice(from, end)
    from = end + 1
  }
  if (from < text.length) yield text.slice(from)
}

const ESCAPED_CHARACTERS: Record<string, string> = { n: "\n", t: "\t", r: "\r", a: "\x07", b: "\b", v: "\v", f: "\f" }

/** Decodes a name as git prints it: quoted if it contains special characters, and followed by a tab if it contains a space. */
export function decodeGitName(written: string): string {
  const name = written.replace(/\t$/, "")
  if (!/^".*"$/.test(name)) return name
  return name
    .slice(1, -1)
    .replaceAll(/\\([0-7]{3}|.)/g, (_, code: string) =>
      /^\d/.test(code) ? String.fromCharCode(Number.parseInt(code, 8)) : (ESCAPED_CHARACTERS[code] ?? code),
    )
}
