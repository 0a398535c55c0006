import { isAbsolute, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { hasIncompleteHistory } from "./project.ts"
import { runGit } from "./run.ts"

/**
 * Identifies a repository on every machine. A repository can claim any remote and can contain any public commit, so no single sign
 * is enough: see `relationOf`.
 */
export type RepositoryIdentity = {
  /** The network addresses from which it is fetched, without user names and passwords, `origin` first. */
  remotes: string[]
  /** Folders on this machine that it names as remotes. */
  localRemotes: string[]
  /** The commit with which the checked-out branch began, always following the first parent. Absent if that is not known. */
  rootCommit?: string
}

const LIMITS = { timeoutMs: 5_000, maxBytes: 32 << 20, readsOnly: true }
const MAX_REMOTES = 20
const MAX_REMOTE_LENGTH = 300

/** Returns an empty identity if the folder is not a repository or git does not answer in time. Never throws. */
export async function repositoryIdentity(folder: string): Promise<RepositoryIdentity> {
  return { ...(await repositoryRemotes(folder)), rootCommit: await firstCommit(folder, LIMITS.timeoutMs) }
}

export async function repositoryRemotes(folder: string): Promise<Omit<RepositoryIdentity, "rootCommit">> {
  const config = await outputOf(folder, ["config", "--null", "--get-regexp", String.raw`^remote\..*\.url$`])
  const addresses = (config ?? "").split("\0").flatMap((entry) => {
    const [key = "", address = ""] = entry.split(/\n(.*)/s)
    return address === "" ? [] : { isOrigin: key === "remote.origin.url", address }
  })
  const sorted = addresses.sort((a, b) => Number(b.isOrigin) - Number(a.isOrigin)).slice(0, MAX_REMOTES)
  const remotes = sorted.flatMap(({ address }) => networkRemote(address) ?? [])
  const localRemotes = sorted.flatMap(({ address }) => localFolder(folder, address) ?? [])
  return { remotes: [...new Set(remotes)], localRemotes: [...new Set(localRemotes)] }
}

/** The commit with which the checked-out branch began. A shallow clone has none: its oldest commit is wherever it was cut. */
export async function firstCommit(folder: string, timeoutMs: number): Promise<string | undefined> {
  if (hasIncompleteHistory(folder)) return undefined
  const roots = await outputOf(folder, ["rev-list", "--first-parent", "--max-parents=0", "HEAD"], undefined, timeoutMs)
  return roots?.trim().split("\n")[0] || undefined
}

/** A commit as a conversation recorded it. `at` is the time of the message, in milliseconds. */
export type RecordedCommit = { hash: string; subject: string; at?: number | undefined }

/**
 * Returns those of these commits that the repository has: by name and subject, because an abbreviated name may be another
 * commit's, or by subject and time, because a rewritten history has other names. Never throws.
 */
export async function commitsIn<T extends RecordedCommit>(folder: string, commits: readonly T[]): Promise<T[]> {
  const named = await presentByName(folder, commits)
  const others = commits.filter((commit) => !named.has(commit) && commit.at !== undefined)
  const dated = await presentByTime(folder, others)
  return commits.filter((commit) => named.has(commit) || dated.has(commit))
}

async function presentByName<T extends RecordedCommit>(folder: string, commits: readonly T[]): Promise<Set<T>> {
  const wanted = commits.filter(({ hash }) => /^[0-9a-f]{7,64}$/.test(hash))
  if (wanted.length === 0) return new Set()
  const names = wanted.map(({ hash }) => hash)
  const checked = await outputOf(folder, ["cat-file", "--batch-check=%(objecttype) %(objectname)"], names)
  // git answers each line of the input with one line of output.
  const lines = (checked ?? "").split("\n")
  const found = wanted.flatMap((commit, i) => {
    const [type, hash = ""] = lines[i]?.split(" ") ?? []
    return type === "commit" ? { commit, hash } : []
  })
  if (found.length === 0) return new Set()
  const log = ["log", "--no-walk=unsorted", "--stdin", "--format=%H%x00%s"]
  const subjects = await outputOf(folder, log, [...new Set(found.map(({ hash }) => hash))])
  const byHash = new Map((subjects ?? "").split("\n").map((line) => line.split("\0", 2) as [string, string]))
  return new Set(found.flatMap(({ commit, hash }) => (byHash.get(hash) === commit.subject ? commit : [])))
}

/** The longest time between the message that makes a commit and the commit: agents ask for permission, and hooks run. */
const MAX_DELAY_MS = 600_000
const DAY_MS = 86_400_000
/** A shorter subject, such as "fix tests", could be any commit's. */
const MIN_SUBJECT_LENGTH = 12

async function presentByTime<T extends RecordedCommit>(folder: string, commits: readonly T[]): Promise<Set<T>> {
  const dated = commits.filter(({ subject, at }) => subject.length >= MIN_SUBJECT_LENGTH && at !== undefined)
  if (dated.length === 0) return new Set()
  const times = dated.map(({ at }) => at!)
  const day = (time: number) => new Date(time).toISOString()
  const since = `--since=${day(times.reduce((a, b) => Math.min(a, b)) - DAY_MS)}`
  const log = await outputOf(folder, ["log", "--all", "--format=%at%x00%ct%x00%s", since])
  const timesBySubject = new Map<string, number[]>()
  for (const line of (log ?? "").split("\n")) {
    const [authored, committed, subject] = line.split("\0", 3)
    if (subject === undefined) continue
    timesBySubject.set(subject, [...(timesBySubject.get(subject) ?? []), Number(authored), Number(committed)])
  }
  return new Set(
    dated.filter(({ subject, at }) =>
      timesBySubject.get(subject)?.some((seconds) => Math.abs(seconds * 1_000 - at!) <= MAX_DELAY_MS),
    ),
  )
}

/** Whether the repository has this commit. */
export async function hasCommit(folder: string, hash: string): Promise<boolean> {
  return (await outputOf(folder, ["cat-file", "-e", `${hash}^{commit}`])) !== undefined
}

/** The commit that is checked out. Undefined in a repository without commits. */
export async function checkedOutCommit(folder: string): Promise<string | undefined> {
  return (await outputOf(folder, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]))?.trim() || undefined
}

/** Returns the texts of these files in the commit that is checked out. Files that it does not have are left out. */
export async function textsIn(folder: string, paths: readonly string[]): Promise<Map<string, string>> {
  const names = paths.filter((path) => !path.includes("\n"))
  const output =
    names.length === 0
      ? undefined
      : await bytesOf(
          folder,
          ["cat-file", "--batch"],
          names.map((path) => `HEAD:${path}`),
        )
  const texts = new Map<string, string>()
  let at = 0
  for (const path of output === undefined ? [] : names) {
    const end = output!.indexOf(10, at)
    const [, size] = /^[0-9a-f]+ blob (\d+)$/.exec(output!.toString("latin1", at, end)) ?? []
    at = end + 1
    if (size === undefined) continue
    texts.set(path, output!.toString("utf8", at, at + Number(size)))
    at += Number(size) + 1
  }
  return texts
}

async function outputOf(
  folder: string,
  args: string[],
  input?: readonly string[],
  timeoutMs?: number,
): Promise<string | undefined> {
  return (await bytesOf(folder, args, input, timeoutMs))?.toString("utf8")
}

async function bytesOf(
  folder: string,
  args: string[],
  input?: readonly string[],
  timeoutMs = LIMITS.timeoutMs,
): Promise<Buffer | undefined> {
  const pieces: Buffer[] = []
  try {
    const { code, stopped } = await runGit(args, {
      ...LIMITS,
      timeoutMs,
      folder,
      ...(input && { input: `${input.join("\n")}\n` }),
      onOutput: (bytes) => void pieces.push(bytes),
    })
    return code === 0 && stopped === undefined ? Buffer.concat(pieces) : undefined
  } catch {
    return undefined // git is not installed
  }
}

/**
 * Normalises a remote to host/owner/name, for any protocol, without a user name or password. Returns undefined if it is not an
 * address on a network.
 */
export function networkRemote(remote: string): string | undefined {
  if (remote.length > MAX_REMOTE_LENGTH || /[\x00-\x20\x7f-\x9f]/.test(remote)) return undefined
  const url = /^[a-z+]+:\/\/(?:[^@/]*@)?([^/:]+)(?::\d+)?\/(.+)$/i.exec(remote)
  const scp = /^(?:[^@/]+@)?([^:/\\]{2,}):(?!\/\/)(.+)$/.exec(remote)
  const [, host, path] = url ?? scp ?? []
  if (host === undefined || path === undefined || /^file:/i.test(remote)) return undefined
  return `${host.toLowerCase()}/${path.replace(/^\/+|\/+$/g, "").replace(/\.git$/, "")}`
}

/** The remote of the repository to which a pull request or merge request belongs. */
export function repositoryOfPullRequest(url: string): string {
  return networkRemote(url.replace(/\/(?:-\/)?(?:pull|merge_requests|pull-requests)\/.*$/, "")) ?? ""
}

/** The remotes of a project in the history: those that git named, and the one that an agent recorded. */
export function knownRemotes({ remotes = [], git_remote }: { remotes?: string[]; git_remote?: string }): string[] {
  const recorded = git_remote === undefined ? undefined : networkRemote(git_remote)
  return [...new Set([...remotes, ...(recorded === undefined ? [] : [recorded])])]
}

function localFolder(folder: string, remote: string): string | undefined {
  if (networkRemote(remote) !== undefined) return undefined
  try {
    const path = /^file:/i.test(remote) ? fileURLToPath(remote) : remote
    return (isAbsolute(path) ? path : resolve(folder, path)).replace(/(?<=.)[\\/]+$/, "").replace(/[\\/]\.git$/, "")
  } catch {
    return undefined // not a valid file address
  }
}

export type Repository = { rootCommit?: string | undefined; remotes: readonly string[]; isPrivate?: boolean }

/** How much two repositories have in common besides their root commit. */
export type SharedWork = {
  /** One of them has the commits that the other's conversations made. */
  madeCommits?: boolean
  /** One of them has the commit that is checked out in the other. */
  head?: boolean
}

/**
 * `same`: one project. `related`: what a person or an agent asks for may use both, but nothing appears unasked (a fork, a project
 * that began from the same template, a clone that cannot prove what it is).
 */
export type Relation = "same" | "related" | undefined

export function relationOf(a: Repository, b: Repository, shared: SharedWork = {}): Relation {
  const hasSameRoot = a.rootCommit !== undefined && a.rootCommit === b.rootCommit
  const hasSameRemote = a.remotes.some((remote) => b.remotes.includes(remote))
  if (hasSameRemote) return hasSameRoot || shared.madeCommits || shared.head ? "same" : "related"
  const hasEvidence = hasSameRoot || shared.madeCommits === true
  if (!hasEvidence) return undefined
  if (a.remotes.length > 0 && b.remotes.length > 0) return "related"
  // Anyone may have the root commit of a public repository, so it alone does not open a private project.
  const isPrivate = a.isPrivate === true || b.isPrivate === true
  return isPrivate && !shared.madeCommits ? "related" : "same"
}
