import { join } from "node:path"
import { DexError } from "../core/error.ts"
import { lookAt } from "../core/look-at.ts"
import { decodeGitName } from "./commit-diffs.ts"
import { type GitRunResult, runGit } from "./run.ts"

export type BlamedLine = {
  line: number
  text: string
  /** The commit that added the line; all zeros if the line is not committed. */
  hash: string
  /** The number that the line had in that commit, and the file that it was in. */
  was: { line: number; path: string }
}

export type BlameOptions = {
  /** The hash of a commit. A name could be mistaken for an option. */
  rev?: string | undefined
  from?: number | undefined
  to?: number | undefined
  /** Follows lines that were moved within the file (git's -M). */
  moves?: boolean | undefined
  /** Follows lines that came from other files of the same commit (git's -C). */
  copies?: boolean | undefined
  signal?: AbortSignal | undefined
}

const LIMITS = { timeoutMs: 60_000, maxBytes: 256 << 20 }
/** The file in which projects list commits that only moved or formatted code. */
const IGNORE_REVS_FILE = ".git-blame-ignore-revs"

/**
 * Returns the commit that added each line of a file, according to git. `path` is relative to `folder`, which is the
 * repository's root.
 */
export async function blameLines(folder: string, path: string, options: BlameOptions): Promise<BlamedLine[]> {
  const { rev, from, to, moves, copies, signal } = options
  const args = [
    ...["-c", "core.quotePath=false", "blame", "--porcelain", "--encoding=UTF-8", "--no-progress"],
    // Without these options, git could run a program that the repository's settings name.
    ...["--no-textconv", "--no-ext-diff"],
    ...(moves ? ["-M"] : []),
    ...(copies ? ["-C"] : []),
    ...(from === undefined ? [] : ["-L", `${from},${to ?? from}`]),
  ]
  // Only uncommitted content goes through the filters of the working tree.
  const settings = rev === undefined ? await withoutFilters(folder, signal) : {}
  const revisionAndPath = [...(rev === undefined ? [] : [rev]), "--", path]
  const ignoreFile = lookAt(join(folder, IGNORE_REVS_FILE))
  const hasIgnoreFile = ignoreFile !== undefined && ignoreFile !== "unknown" && ignoreFile.isFile()
  const firstResult = await outputOf(
    folder,
    [...args, ...(hasIgnoreFile ? ["--ignore-revs-file", IGNORE_REVS_FILE] : []), ...revisionAndPath],
    signal,
    settings,
  )
  // If git cannot read the list of ignored commits, try without the list.
  const result =
    firstResult.end.code !== 0 && hasIgnoreFile
      ? await outputOf(folder, [...args, ...revisionAndPath], signal, settings)
      : firstResult
  if (result.end.code !== 0) throw blameError(path, result.end)
  return linesIn(result.text)
}

/** Returns settings that disable the repository's filters, which git would run on a file that it reads. */
async function withoutFilters(folder: string, signal: AbortSignal | undefined): Promise<Record<string, string>> {
  const { text, end } = await outputOf(
    folder,
    ["config", "--null", "--name-only", "--get-regexp", "^filter\\."],
    signal,
  )
  if (end.stopped !== undefined)
    throw new DexError("git_failed", `git could not list the filters of ${folder}. Try \`git config --list\` there.`)
  const names = text.split("\0").flatMap((key) => /^filter\.(.*)\.[^.]+$/s.exec(key)?.[1] ?? [])
  return Object.fromEntries(
    [...new Set(names)].flatMap((name) => [
      ...["clean", "smudge", "process"].map((kind) => [`filter.${name}.${kind}`, ""]),
      [`filter.${name}.required`, "false"],
    ]),
  )
}

async function outputOf(
  folder: string,
  args: string[],
  signal: AbortSignal | undefined,
  settings: Record<string, string> = {},
) {
  const chunks: Buffer[] = []
  const end = await runGit(args, {
    ...LIMITS,
    folder,
    signal,
    settings,
    readsOnly: true,
    onOutput: (chunk) => void chunks.push(chunk),
  })
  return { end, text: Buffer.concat(chunks).toString("utf8") }
}

/**
 * Parses the output of `git blame --porcelain`. Each line has a header, then facts about its commit if the commit has not
 * occurred before, then the line itself after a tab.
 */
function linesIn(text: string): BlamedLine[] {
  const paths = new Map<string, string>()
  const lines: BlamedLine[] = []
  let head: { hash: string; was: number; line: number } | undefined
  for (const outputLine of text.split("\n")) {
    if (!head) {
      const match = /^([0-9a-f]{40,64}) (\d+) (\d+)/.exec(outputLine)
      if (match) head = { hash: match[1]!, was: Number(match[2]), line: Number(match[3]) }
    } else if (outputLine.startsWith("\t")) {
      const { hash, was, line } = head
      lines.push({ line, text: outputLine.slice(1), hash, was: { line: was, path: paths.get(hash) ?? "" } })
      head = undefined
    } else if (outputLine.startsWith("filename ")) paths.set(head.hash, decodeGitName(outputLine.slice(9)))
  }
  return lines
}

function blameError(path: string, { stopped, errors, code }: GitRunResult): DexError {
  const reason =
    stopped === "time"
      ? "it took too long"
      : errors
          .split("\n")
          .at(-1)
          ?.replace(/^fatal: /, "") || `git ended with ${code}`
  return new DexError(
    "git_failed",
    `git could not tell where the lines of ${path} come from: ${reason}. Try \`git blame\` on that file.`,
  )
}
