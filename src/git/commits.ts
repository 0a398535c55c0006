import { isUtf8 } from "node:buffer"
import { lstat } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { DexError } from "../core/error.ts"
import { type GitRunResult, runGit } from "./run.ts"

/** Paths are relative to the project's folder; bytes that are not UTF-8 are written as `\xff`. */
export type TouchedFile =
  | { status: "added" | "modified" | "deleted"; path: string }
  | { status: "renamed"; path: string; from: string }

export type Commit = {
  hash: string
  /** The author date, in milliseconds. */
  at: number
  /** The commit date, by which git orders commits. A rebase changes it. */
  committed_at: number
  subject: string
  body: string
  files: TouchedFile[]
  /** The number of files that the commit touched; `files` may contain only the first of them. */
  file_count: number
}

export type ReadCommitsResult = {
  /** Absent if there is no repository, or if it has no commits. */
  head?: string
  /** Identifies where a shallow history ends; empty if the history is complete. */
  shallow?: string
  /** Newest first, without merges. */
  commits: Commit[]
  /** True if these commits replace the stored ones, which are from another history or too old to connect to these. */
  replaces: boolean
  /** Descriptions of what was left out, as sentences for a person. */
  left_out: string[]
}

export type CommitLimits = { commits: number; days: number; timeoutMs: number; bytes: number }
export const COMMIT_LIMITS: CommitLimits = { commits: 2_000, days: 365, timeoutMs: 10_000, bytes: 64 << 20 }

export type CommitOptions = {
  now: number
  /** The head at the last read. Only later commits are read. */
  known?: string | undefined
  /** Where the shallow history ended at the last read. If that has changed, everything is read again. */
  knownShallow?: string | undefined
  limits?: Partial<CommitLimits>
  signal?: AbortSignal | undefined
}

/**
 * Reads the commits of the project's current branch, within the limits. Runs no program of the repository and changes nothing in
 * it.
 */
export async function readCommits(project: string, options: CommitOptions): Promise<ReadCommitsResult> {
  const limits = { ...COMMIT_LIMITS, ...options.limits }
  const deadline = Date.now() + limits.timeoutMs
  const git = gitIn(project, deadline, options.signal)
  const noCommits = { commits: [], replaces: true, left_out: [] }
  if (!(await exists(join(project, ".git")))) return noCommits
  const args = ["--show-prefix", "--is-shallow-repository", "--verify", "--quiet", "HEAD^{commit}"]
  const revParse = await git(["rev-parse", ...args])
  if (revParse.stopped) throw readError(project, revParse)
  const [prefix, isShallow, head] = revParse.output.split("\n")
  // The project has no repository of its own, but a folder above it does.
  if (prefix !== "" && revParse.errors === "") return noCommits
  if (!isHash(head)) {
    if (revParse.errors !== "") throw readError(project, revParse)
    return noCommits
  }
  const shallow = isShallow === "true" ? await shallowMark(project, git) : ""
  const hasSameShallowEnd = shallow === (options.knownShallow ?? "")
  if (head === options.known && hasSameShallowEnd) return { head, shallow, commits: [], replaces: false, left_out: [] }
  const isContinuation =
    hasSameShallowEnd &&
    isHash(options.known) &&
    (await git(["merge-base", "--is-ancestor", options.known, head])).code === 0
  const log = await readLog(project, {
    head,
    after: isContinuation ? options.known : undefined,
    isShallow: shallow !== "",
    limits,
    deadline,
    options,
  })
  // If the log was cut, there is a gap between these commits and the stored ones.
  return {
    head,
    shallow,
    commits: log.commits,
    replaces: !isContinuation || log.isCut,
    left_out: [...log.left_out, ...describeOlder(log, isContinuation)],
  }
}

/** Identifies where a shallow history ends, by the state of git's file `shallow`. Fetching older commits changes that file. */
async function shallowMark(project: string, git: ReturnType<typeof gitIn>): Promise<string> {
  const { output } = await git(["rev-parse", "--git-path", "shallow"])
  const file = await lstat(resolve(project, output.trimEnd())).catch(() => undefined)
  return file ? `${file.size} ${Math.trunc(file.mtimeMs)}` : "shallow"
}

export const describeNewestOnly = (commits: number): string => `Only the newest ${commits} commits are known.`

type Log = { commits: Commit[]; left_out: string[]; isCut: boolean; hasOlder: boolean }
type LogRequest = {
  head: string
  after: string | undefined
  isShallow: boolean
  limits: CommitLimits
  deadline: number
  options: CommitOptions
}

async function readLog(project: string, request: LogRequest): Promise<Log> {
  const { isShallow, limits } = request
  let parser = commitParser(isShallow)
  let end = await runLog(project, request, "-M", parser.take)
  const left_out: string[] = []
  if (end.code !== 0 && !end.stopped) {
    // A partial clone lacks the contents by which git recognises renames, but unchanged renamed files can be recognised by their
    // hashes.
    parser = commitParser(isShallow)
    end = await runLog(project, request, "-M100%", parser.take)
    left_out.push(
      "This repository is a partial clone, so dex follows a renamed file only if its content did not change.",
    )
  }
  if (end.stopped === "cancelled" || (end.code !== 0 && !end.stopped)) throw readError(project, end)
  const commits = parser.commits(end.stopped === undefined)
  const limitNote = describeLimit(end.stopped, commits.length, limits)
  if (limitNote !== undefined) left_out.push(limitNote)
  const hasOlder = limitNote === undefined && parser.lastHasParent()
  return { commits: commits.slice(0, limits.commits), left_out, isCut: limitNote !== undefined, hasOlder }
}

function runLog(
  project: string,
  { head, after, limits, deadline, options }: LogRequest,
  renames: string,
  onOutput: (bytes: Buffer) => void,
): Promise<GitRunResult> {
  const oldest = Math.floor(options.now / 1000) - limits.days * 86_400
  return runGit(
    [
      ...["--literal-pathspecs", "log", "-z", "--no-merges", "--name-status", renames, "-l400"],
      ...["--no-ext-diff", "--no-textconv", "--no-show-signature", "--no-relative", "--no-color", "--no-notes"],
      ...["--no-mailmap", "-O/dev/null", "--encoding=UTF-8", `--format=${FORMAT}`],
      ...[`--max-count=${limits.commits + 1}`, `--max-age=${oldest}`],
      ...[head, ...(after === undefined ? [] : [`^${after}`]), "--"],
    ],
    { ...runOptions(project, deadline, options.signal), maxBytes: limits.bytes, onOutput },
  )
}

function describeLimit(stopped: GitRunResult["stopped"], commits: number, limits: CommitLimits): string | undefined {
  if (stopped === undefined) return commits > limits.commits ? describeNewestOnly(limits.commits) : undefined
  const after = stopped === "time" ? `${limits.timeoutMs / 1000} s` : `${limits.bytes >> 20} MB`
  return `dex stopped reading commits after ${after}, so it knows only the newest ${commits}.`
}

function describeOlder({ isCut, hasOlder, commits }: Log, isContinuation: boolean): string[] {
  return !isContinuation && !isCut && (hasOlder || commits.length === 0)
    ? ["Commits older than a year are not read."]
    : []
}

const FORMAT = "%H%x00%P%x00%at%x00%ct%x00%s%x00%b%x00"
const FIELD_COUNT = 6
const MAX_SUBJECT_LENGTH = 2_000
const MAX_BODY_LENGTH = 20_000
/** The number of bytes of a field that are read. The beginning of a message of several megabytes is enough. */
const MAX_TOKEN_LENGTH = 1 << 20
/** The maximum number of files that are read for each commit. A commit that moves a complete tree names each of its files. */
const MAX_FILES = 5_000

/**
 * Parses git's output incrementally. Every field and every name ends with a NUL, which none of them can contain, and the status
 * says how many names follow, so no name or message can be mistaken for something else.
 */
function commitParser(isShallow: boolean) {
  const finished: Commit[] = []
  let remainder: Buffer = Buffer.alloc(0)
  let headFields: string[] = []
  let current: Commit | undefined
  let pendingFile: { status: string; from?: string } | undefined
  let lastParents = ""

  const finish = () => {
    if (current) finished.push(current)
    current = undefined
  }
  const takeField = (token: Buffer) => {
    headFields.push(token.toString("utf8"))
    // git adds a NUL of its own after the formatted text, so one more token follows the fields.
    if (headFields.length <= FIELD_COUNT) return
    const [hash, parents, at, committedAt, subject, body] = headFields as [
      string,
      string,
      string,
      string,
      string,
      string,
    ]
    lastParents = parents
    current = {
      hash,
      at: Number(at) * 1000,
      committed_at: Number(committedAt) * 1000,
      subject: subject.slice(0, MAX_SUBJECT_LENGTH),
      body: body.trim().slice(0, MAX_BODY_LENGTH),
      files: [],
      file_count: 0,
    }
    headFields = []
  }
  const takeFile = (file: TouchedFile) => {
    pendingFile = undefined
    // In a shallow copy, the oldest commit appears to have added everything.
    if (!current || (isShallow && lastParents === "")) return
    current.file_count++
    if (current.files.length < MAX_FILES) current.files.push(file)
  }
  const takeToken = (token: Buffer) => {
    if (pendingFile) {
      const path = pathOfBytes(token)
      if (!/^[RC]/.test(pendingFile.status)) takeFile({ status: STATUS[pendingFile.status] ?? "modified", path })
      else if (pendingFile.from === undefined) pendingFile.from = path
      else if (pendingFile.status.startsWith("C")) takeFile({ status: "added", path })
      else takeFile({ status: "renamed", path, from: pendingFile.from })
      return
    }
    if (current === undefined || headFields.length > 0) return takeField(token)
    const status = /^\n?([A-Z])\d{0,3}$/.exec(token.subarray(0, 6).toString("latin1"))?.[1]
    if (status !== undefined) pendingFile = { status }
    else {
      finish()
      takeField(token)
    }
  }
  return {
    take(bytes: Buffer): void {
      let from = 0
      for (let end = bytes.indexOf(0); end !== -1; end = bytes.indexOf(0, from)) {
        const token = bytes.subarray(from, end)
        takeToken(remainder.length === 0 ? token : Buffer.concat([remainder, token]))
        remainder = Buffer.alloc(0)
        from = end + 1
      }
      if (from < bytes.length && remainder.length < MAX_TOKEN_LENGTH)
        remainder = Buffer.concat([remainder, bytes.subarray(from)])
    },
    /** Includes the current commit only if git finished. */
    commits(isFinished: boolean): Commit[] {
      if (isFinished) finish()
      return finished
    },
    lastHasParent: () => lastParents !== "" && finished.length > 0,
  }
}

const STATUS: Record<string, "added" | "modified" | "deleted"> = { A: "added", D: "deleted" }

function pathOfBytes(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString("utf8")
  return bytes.toString("latin1").replaceAll(/[\x80-\xff]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16)}`)
}

function gitIn(project: string, deadline: number, signal: AbortSignal | undefined) {
  return async (args: string[]): Promise<GitRunResult & { output: string }> => {
    let output = ""
    const end = await runGit(args, {
      ...runOptions(project, deadline, signal),
      maxBytes: 10_000,
      onOutput: (bytes) => {
        output += bytes.toString("latin1")
      },
    })
    return { ...end, output }
  }
}

function runOptions(project: string, deadline: number, signal: AbortSignal | undefined) {
  return {
    folder: project,
    timeoutMs: Math.max(1, deadline - Date.now()),
    signal,
    readsOnly: true,
    ceiling: dirname(project),
  }
}

function isHash(text: string | undefined): text is string {
  return text !== undefined && /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/.test(text)
}

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )

function readError(project: string, { stopped, errors, code }: GitRunResult): DexError {
  const reason =
    stopped === "time"
      ? "it took too long"
      : stopped === "cancelled"
        ? "it was cancelled"
        : errors.split("\n")[0] || `git ended with ${code}`
  return new DexError("git_failed", `The commits of ${project} could not be read: ${reason}. Try \`git log\` there.`)
}
