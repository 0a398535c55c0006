import { savePlaces, savePlaceWithoutProject } from "../config/places.ts"
import { lookAt } from "../core/look-at.ts"
import { isSamePath } from "../core/path-key.ts"
import {
  checkedOutCommit,
  commitsIn,
  firstCommit,
  hasCommit,
  knownRemotes,
  type Relation,
  relationOf,
  repositoryIdentity,
  repositoryOfPullRequest,
  repositoryRemotes,
  type SharedWork,
  textsIn,
} from "../git/identity.ts"
import { checkoutAt, gitStampOf } from "../git/project.ts"
import { GONE, type HistoryWriter, type ProjectCommit, type ProjectIdentity } from "../store/history/store.ts"
import { moveChoices, sharedProjects } from "./move-choices.ts"
import type { SyncDeps } from "./sync-types.ts"
import { countLinesIn, MIN_FILES, writtenLines } from "./written-lines.ts"

// Finds out which folders are the same repository, and joins their projects.

type Deps = Pick<SyncDeps, "home"> & { store: HistoryWriter }

/** A folder that was found to be a place of a project, and why. */
export type JoinedFolder = { folder: string; project: string; why: string }

/** A project as the history knows it, and the state of its folder today. */
type Candidate = {
  path: string
  remotes: string[]
  rootCommit?: string
  localRemotes: string[]
  isPrivate: boolean
  conversations: number
  /** Other folders of the project. */
  folders: string[]
  /** The first of the project's folders that is a repository on this machine. */
  repository?: string
  /** The state of that folder, or why there is none. */
  stamp: string
}

/**
 * Joins the projects of a history that are one repository. Asks git only about folders whose git folder has changed since the last
 * time, and compares only those with the others. Returns the folders that were joined.
 */
export async function identifyProjects({ store, home }: Deps): Promise<JoinedFolder[]> {
  const identities = await store.projectIdentities()
  const candidates = new Map(identities.map((identity) => [identity.path, candidateOf(identity)]))
  const changed = identities.filter(({ path, stamp }) => stamp !== candidates.get(path)!.stamp)
  for (const { path } of changed) await askGit(store, candidates.get(path)!)
  for (const { path, apart } of identities) if (apart) candidates.delete(path)
  const joined: JoinedFolder[] = []
  if (changed.length > 0) {
    const commits = commitsByProject(await store.projectCommits())
    const evidence = createEvidence(store, commits)
    const shared = new Set(sharedProjects(home))
    const join = async (candidate: Candidate): Promise<Candidate | undefined> => {
      // Consent to share one project never includes conversations that were in another. `dex project join` includes them.
      const others = [...candidates.values()].filter(
        (other) => other !== candidate && shared.has(other.path) === shared.has(candidate.path),
      )
      const match = await findSame(candidate, others, commits, evidence)
      if (!match) return undefined
      const [into, from] = mainFirst(match.project, candidate)
      await store.joinProject(from.path, into.path, match.why)
      await moveChoices(home, from.path, into.path)
      joined.push({ folder: from.path, project: into.path, why: match.why })
      candidates.delete(from.path)
      absorb(into, from)
      commits.set(into.path, [...(commits.get(into.path) ?? []), ...(commits.get(from.path) ?? [])])
      return into
    }
    for (const { path } of changed)
      for (let current = candidates.get(path); current !== undefined; ) current = await join(current)
  }
  for (const { path, repository } of candidates.values()) {
    if (repository === undefined || repository === path || lookAt(path) !== undefined) continue
    await store.renameProject(path, repository)
    await moveChoices(home, path, repository)
  }
  await publishPlaces({ store, home })
  return joined
}

/** In a repository with a million commits, git needs several seconds to find the first one. That happens only once. */
const MAX_MS = 60_000

/** Asks git about a project's folder, and stores the answer. */
async function askGit(store: HistoryWriter, candidate: Candidate): Promise<void> {
  const { path, repository, stamp } = candidate
  const facts = repository === undefined ? undefined : await repositoryRemotes(repository)
  if (repository !== undefined) candidate.rootCommit ??= await firstCommit(repository, MAX_MS)
  await store.saveProjectIdentity(path, {
    remotes: facts?.remotes,
    root_commit: candidate.rootCommit,
    git_remote: facts?.remotes[0],
    stamp,
  })
  candidate.remotes = [...new Set([...(facts?.remotes ?? []), ...candidate.remotes])]
  candidate.localRemotes = facts?.localRemotes ?? []
}

function absorb(into: Candidate, from: Candidate): void {
  into.remotes = [...new Set([...into.remotes, ...from.remotes])]
  into.rootCommit ??= from.rootCommit
  into.conversations += from.conversations
  into.isPrivate ||= from.isPrivate
  into.folders.push(from.path, ...from.folders)
  if (into.repository === undefined && from.repository !== undefined) {
    into.repository = from.repository
    into.stamp = from.stamp
  }
}

/** Writes the file from which hooks and commands learn to which project a folder belongs. */
export async function publishPlaces({ store, home }: Deps): Promise<void> {
  const identities = await store.projectIdentities()
  savePlaces(
    home,
    Object.fromEntries(
      identities.flatMap(({ path, folders = [] }) =>
        folders.length === 0 ? [] : [[path, folders.map((folder) => folder.path)]],
      ),
    ),
  )
}

/**
 * Finds the project of a folder in which dex was started for the first time, such as a fresh clone, and remembers the answer.
 * `identifyProjects` then joins all other projects that are the same repository. Returns undefined if the folder is a project of
 * its own.
 */
export async function identifyFolder({ store, home }: Deps, place: string): Promise<string | undefined> {
  const identities = await store.projectIdentities()
  const candidate = candidateOf({ path: place, private: false })
  const isKnown = identities.some(({ path }) => isSamePath(path, place))
  const match = isKnown || candidate.repository === undefined ? undefined : await matchOf(store, candidate, identities)
  if (!match) {
    savePlaceWithoutProject(home, place, candidate.stamp)
    return undefined
  }
  await store.joinProject(place, match.project.path, match.why)
  await publishPlaces({ store, home })
  return match.project.path
}

async function matchOf(
  store: HistoryWriter,
  candidate: Candidate,
  identities: readonly ProjectIdentity[],
): Promise<Match | undefined> {
  const { remotes, localRemotes, rootCommit } = await repositoryIdentity(candidate.path)
  const others = identities.filter(({ apart }) => !apart).map(candidateOf)
  const commits = commitsByProject(await store.projectCommits())
  const mostFirst = others.sort((a, b) => b.conversations - a.conversations)
  return findSame(
    { ...candidate, remotes, localRemotes, rootCommit },
    mostFirst,
    commits,
    createEvidence(store, commits),
  )
}

function candidateOf(identity: ProjectIdentity): Candidate {
  const { path, root_commit, folders: others = [], conversations = 0 } = identity
  const folders = others.map((folder) => folder.path)
  const repository = [path, ...folders].find((folder) => checkoutAt(folder)?.root === folder)
  return {
    path,
    remotes: knownRemotes(identity),
    localRemotes: [],
    rootCommit: root_commit,
    isPrivate: identity.private,
    conversations,
    folders,
    repository,
    stamp: (repository && gitStampOf(repository)) ?? stateWithoutGit(path),
  }
}

function stateWithoutGit(path: string): string {
  const stats = lookAt(path)
  return stats === undefined ? GONE : stats === "unknown" ? "unknown" : "no git"
}

/** The project that stays when two become one: one that still exists, with the most conversations, or the shorter path. */
function mainFirst(a: Candidate, b: Candidate): [Candidate, Candidate] {
  const rank = ({ repository, folders, conversations }: Candidate) =>
    (folders.length > 0 ? 4e9 : 0) + (repository === undefined ? 0 : 2e9) + conversations
  const difference = rank(a) - rank(b) || b.path.length - a.path.length
  return difference >= 0 ? [a, b] : [b, a]
}

type Match = { project: Candidate; why: string }

async function findSame(
  candidate: Candidate,
  others: readonly Candidate[],
  commits: ReadonlyMap<string, ProjectCommit[]>,
  evidence: readonly Evidence[],
): Promise<Match | undefined> {
  for (const other of others) {
    if (clonedFromEachOther(candidate, other) && sharesRoot(candidate, other))
      return { project: other, why: "one was cloned from the other on this machine" }
  }
  for (const other of others) {
    const shared = await sharedWork(candidate, other, commits)
    if (relationOf(candidate, other, shared) === ("same" satisfies Relation))
      return { project: other, why: reasonFor(candidate, other, shared) }
  }
  return findByWork(candidate, others, evidence)
}

function clonedFromEachOther(a: Candidate, b: Candidate): boolean {
  const names = (from: Candidate, to: Candidate) =>
    from.localRemotes.some((remote) => [to.path, ...to.folders].some((folder) => isSamePath(folder, remote)))
  return names(a, b) || names(b, a)
}

function sharesRoot(a: Candidate, b: Candidate): boolean {
  return a.rootCommit !== undefined && a.rootCommit === b.rootCommit
}

function reasonFor(a: Candidate, b: Candidate, shared: SharedWork): string {
  const remote = a.remotes.find((address) => b.remotes.includes(address))
  const sign = sharesRoot(a, b)
    ? `the same first commit ${a.rootCommit!.slice(0, 12)}`
    : shared.madeCommits
      ? "the commits that its conversations made"
      : "the commit that is checked out"
  return remote === undefined ? `both have ${sign}` : `both have the remote ${remote} and ${sign}`
}

/** Compares commits only if the answer depends on them, because that starts git. */
async function sharedWork(
  a: Candidate,
  b: Candidate,
  commits: ReadonlyMap<string, ProjectCommit[]>,
): Promise<SharedWork> {
  const hasSameRemote = a.remotes.some((remote) => b.remotes.includes(remote))
  const isPrivateCopy = (a.isPrivate || b.isPrivate) && sharesRoot(a, b)
  if (hasSameRemote ? sharesRoot(a, b) : !isPrivateCopy) return {}
  const madeCommits =
    (await countPresent(a, commits.get(b.path))) > 0 || (await countPresent(b, commits.get(a.path))) > 0
  return { madeCommits, head: !madeCommits && hasSameRemote && (await sharesHead(a, b)) }
}

async function sharesHead(a: Candidate, b: Candidate): Promise<boolean> {
  if (a.repository === undefined || b.repository === undefined) return false
  const [headOfA, headOfB] = [await checkedOutCommit(a.repository), await checkedOutCommit(b.repository)]
  const isIn = async (folder: string, head: string | undefined) => head !== undefined && hasCommit(folder, head)
  return (await isIn(b.repository, headOfA)) || (await isIn(a.repository, headOfB))
}

/** At most this many commits of a project are looked up in a repository, newest first. */
const MAX_COMMITS = 2_000

/** How many of these commits the repository has. */
async function countPresent({ repository }: Candidate, commits: readonly ProjectCommit[] = []): Promise<number> {
  if (repository === undefined || commits.length === 0) return 0
  return (await commitsIn(repository, commits.slice(0, MAX_COMMITS))).length
}

/**
 * Matches a folder that is gone, and of which only its conversations are left, with the repository that has what they made: their
 * commits, or else the lines that they wrote. Conversations in a parent folder can work in several repositories, so most of it
 * must be in this one.
 */
async function findByWork(
  candidate: Candidate,
  others: readonly Candidate[],
  evidence: readonly Evidence[],
): Promise<Match | undefined> {
  if (isLeftOver(candidate)) return repositoryWithMost(candidate, others, evidence)
  if (candidate.repository === undefined) return undefined
  for (const other of others.filter(isLeftOver)) {
    const repositories = [candidate, ...others.filter(({ path }) => path !== other.path)]
    const match = await repositoryWithMost(other, repositories, evidence)
    if (match?.project === candidate) return { project: other, why: match.why }
  }
  return undefined
}

/** A gone folder of which git was never asked. Others are recognised by their root commit and remotes. */
function isLeftOver({ stamp, rootCommit }: Candidate): boolean {
  return stamp === GONE && rootCommit === undefined
}

/** Counts how much of a gone folder's work is in a repository, and says so. */
type Evidence = { why: string; count(leftOver: Candidate, repository: Candidate): Promise<number> }

/** The kinds of evidence, the strongest first. Each pair of a folder and a repository is compared only once. */
function createEvidence(store: HistoryWriter, commits: ReadonlyMap<string, ProjectCommit[]>): Evidence[] {
  const linesOf = new Map<string, Promise<Map<string, Set<string>>>>()
  const isForRemote = async (path: string, { remotes }: Candidate) =>
    remotes.length > 0 &&
    (await store.projectPullRequests(path)).some((url) => remotes.includes(repositoryOfPullRequest(url)))
  return [
    {
      why: "the repository has the commits that its conversations made",
      count: countOnce(({ path }, repository) => countPresent(repository, commits.get(path))),
    },
    {
      why: "the repository has the lines that its conversations wrote",
      count: countOnce(async ({ path, isPrivate }, project) => {
        const { repository } = project
        // Unrelated projects can contain the same code, so it opens no private one.
        if (repository === undefined || isPrivate || project.isPrivate) return 0
        // Reading all messages of a project takes long, and most repositories have none of its files.
        if ((await textsIn(repository, await store.projectFiles(path))).size < MIN_FILES) return 0
        if (!linesOf.has(path)) linesOf.set(path, writtenLines(store, path))
        const lines = await linesOf.get(path)!
        return countLinesIn(lines, await textsIn(repository, [...lines.keys()]), await isForRemote(path, project))
      }),
    },
  ]
}

function countOnce(count: Evidence["count"]): Evidence["count"] {
  const counts = new Map<string, Promise<number>>()
  return (leftOver, project) => {
    const key = JSON.stringify([leftOver.path, project.repository])
    const known = counts.get(key) ?? count(leftOver, project)
    counts.set(key, known)
    return known
  }
}

/** If several repositories have some of the work, most of it must be in one of them. */
async function repositoryWithMost(
  leftOver: Candidate,
  repositories: readonly Candidate[],
  evidence: readonly Evidence[],
): Promise<Match | undefined> {
  for (const { why, count: countIn } of evidence) {
    const found: { project: Candidate; count: number }[] = []
    for (const project of repositories) {
      const count = await countIn(leftOver, project)
      if (count > 0) found.push({ project, count })
    }
    const [best] = found.sort((a, b) => b.count - a.count)
    const total = found.reduce((sum, { count }) => sum + count, 0)
    if (best !== undefined) return best.count * 2 > total ? { project: best.project, why } : undefined
  }
  return undefined
}

function commitsByProject(commits: readonly ProjectCommit[]): Map<string, ProjectCommit[]> {
  return Map.groupBy(commits, ({ project }) => project)
}
