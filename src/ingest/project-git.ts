import { parseCommitMarks } from "../git/commit-marks.ts"
import { COMMIT_LIMITS, type Commit, type CommitLimits, describeNewestOnly, readCommits } from "../git/commits.ts"
import { redactName, redactText } from "../redact/redact.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import type { CommitWrite } from "../store/knowledge/git.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"

export type GitReport = {
  /** The number of new commits. */
  added: number
  /** True if the history was rewritten or another branch is checked out, so that everything was read again. */
  read_anew: boolean
  left_out: string[]
}

export type GitSyncOptions = {
  /** The folder in which git runs: by default the project's own. */
  folder?: string
  now: number
  signal?: AbortSignal | undefined
  limits?: Partial<CommitLimits>
}

/** Updates the knowledge about a project's git history. Throws a DexError if git cannot read it; earlier data remains. */
export async function syncProjectGit(db: Knowledge, project: string, options: GitSyncOptions): Promise<GitReport> {
  db.projects.setRedactionVersion(REDACTION_VERSION)
  const known = db.git.gitProject(project)
  const result = await readCommits(options.folder ?? project, {
    ...options,
    known: known?.head,
    knownShallow: known?.shallow,
  })
  if (result.head === undefined) {
    if (known) db.git.forgetProjectGit(project)
    return { added: 0, read_anew: known !== undefined, left_out: [] }
  }
  if (result.head === known?.head && !result.replaces) return { added: 0, read_anew: false, left_out: known.left_out }
  const maxCommits = options.limits?.commits ?? COMMIT_LIMITS.commits
  const { added } = db.git.saveCommits({
    project,
    head: result.head,
    shallow: result.shallow ?? "",
    read_at: options.now,
    commits: commitsToStore(result.commits),
    replaces: result.replaces,
    left_out: result.left_out,
    max_commits: maxCommits,
    when_more: describeNewestOnly(maxCommits),
  })
  return {
    added,
    read_anew: result.replaces && known !== undefined,
    left_out: db.git.gitProject(project)?.left_out ?? [],
  }
}

const MAX_SUBJECT_LENGTH = 300
const MAX_BODY_LENGTH = 4_000

/**
 * The commits to store, redacted, because commit messages and file names can contain passwords. They are cut after the redaction,
 * because half a secret is not recognised.
 */
function commitsToStore(commits: Commit[]): CommitWrite[] {
  const redactedNames = new Map<string, string>()
  const redactedName = (path: string): string => {
    const known = redactedNames.get(path)
    if (known !== undefined) return known
    const name = redactName(path)
    redactedNames.set(path, name)
    return name
  }
  return commits.map(({ subject, body, files, ...commit }) => {
    const message = {
      subject: redactText(subject).slice(0, MAX_SUBJECT_LENGTH),
      body: redactText(body).slice(0, MAX_BODY_LENGTH),
    }
    const redactedFiles = files.map((file) =>
      file.status === "renamed"
        ? { ...file, path: redactedName(file.path), from: redactedName(file.from) }
        : { ...file, path: redactedName(file.path) },
    )
    return { ...commit, ...message, files: redactedFiles, ...parseCommitMarks(message.subject, message.body) }
  })
}
