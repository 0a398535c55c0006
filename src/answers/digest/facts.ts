import { formatRef } from "../../core/ref.ts"
import { knownRemotes, repositoryOfPullRequest } from "../../git/identity.ts"
import { pathBelow } from "../../learn/paths.ts"
import { GONE, type HistoryWriter, type ProjectIdentity, type StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import type { ListedDecision } from "../../tools/decisions/decisions.ts"
import { describeDecision } from "../../tools/decisions/run.ts"
import { updateKnowledgeIfQuick } from "../../tools/learned.ts"
import { findOpenChecks, isOnlyCompiling, type OpenCheck } from "../left-open.ts"
import { type PeriodConversation, type TopicCommit, type WorkTopic, workTopics } from "./topics.ts"

/** Facts about the work in a repository during a period, taken from stored conversations without a model. */
export type ProjectFacts = {
  /** The folder in which most of it happened. */
  project: string
  repository?: string
  folders?: string[]
  topics: WorkTopic[]
  conversations: { id: string; title: string; source: string; messages: number; topic?: number }[]
  other_conversations: number
  decisions: (ListedDecision & { topic?: number })[]
  decisions_total: number
  commits: TopicCommit[]
  files: { path: string; added: number; removed: number }[]
  files_total: number
  plan_files: number
  failed_commands: OpenCheck[]
  failed_commands_total: number
}

const MAX_DECISIONS = 20
const MAX_FILES = 20
const MAX_FAILED = 10
/** Matches the files in which agents keep their plans. Plans are not the project's files. */
const PLAN_FILE = /(?:^|[\\/])\.(?:claude|cursor)[\\/]plans[\\/]/

type PeriodFacts = { projects: ProjectFacts[]; notes: string[] }

/**
 * The facts by repository, the one with the most conversations first. Counts only messages in the range, even if their
 * conversation began earlier.
 */
export async function projectFacts(
  dex: Dex,
  range: { from: number; to: number },
  { project, all }: { project?: string; all?: boolean } = {},
): Promise<PeriodFacts> {
  if (!dex.hasHistory()) return { projects: [], notes: [] }
  const store = await dex.store()
  const { rows } = await store.list({
    ...range,
    project,
    kinds: ["person", "subagent", "automation"],
    inside: dex.project,
    limit: 1_000_000,
    offset: 0,
  })
  const conversations: PeriodConversation[] = []
  for (const row of rows) {
    const isInRange = ({ at = row.ended_at ?? 0 }: StoredMessage) => at >= range.from && at <= range.to
    const messages = (await store.messages(row.ref)).filter(
      (message) => !message.superseded && !message.copied && isInRange(message),
    )
    if (messages.length > 0) conversations.push({ row, messages })
  }
  const { decisions, notes } = await decisionsInRange(dex, range, project)
  const folders = new Set([
    ...conversations.map(({ row }) => row.project ?? ""),
    ...decisions.map((one) => one.project),
  ])
  const { remotes, clones } = await findRepositories(await dex.storeToWrite(), [...folders])
  const keyOf = (folder: string) => remotes.get(folder) ?? clones.get(folder) ?? folder
  const decisionsByName = Map.groupBy(decisions, (one) => keyOf(one.project))
  const conversationsByName = Map.groupBy(conversations, ({ row }) => keyOf(row.project ?? ""))
  const projects = [...new Set([...folders].map(keyOf))]
    .map((name) => factsOf(conversationsByName.get(name) ?? [], decisionsByName.get(name) ?? [], remotes))
    .map((facts) => (all ? facts : limitLists(facts)))
    .sort(
      (a, b) =>
        b.commits.length - a.commits.length ||
        b.conversations.length - a.conversations.length ||
        (a.project < b.project ? -1 : 1),
    )
  return { projects, notes }
}

function limitLists(facts: ProjectFacts): ProjectFacts {
  return {
    ...facts,
    decisions: facts.decisions.slice(0, MAX_DECISIONS),
    files: facts.files.slice(0, MAX_FILES),
    failed_commands: facts.failed_commands.slice(0, MAX_FAILED),
  }
}

function factsOf(
  conversations: PeriodConversation[],
  decisions: ListedDecision[],
  remotes: Map<string, string>,
): ProjectFacts {
  const folders = foldersOf(conversations, decisions)
  const project = folders[0]!
  const personConversations = conversations.filter(({ row }) => row.kind === "person")
  const { topics, commits, topicOf } = workTopics(conversations)
  const { files, planCount } = changedFiles(conversations)
  const failed = findOpenChecks(
    folders,
    conversations.map(({ row, messages }) => ({
      messages,
      refOf: (number) => formatRef({ ...row.ref, number }),
      ended_at: row.ended_at ?? 0,
    })),
  ).filter(({ command }) => !isOnlyCompiling(command))
  const topicOfDecision = ({ ref }: ListedDecision) =>
    commits.find(({ hash }) => ref === `git:${hash}`)?.topic ?? topicOf(ref.replace(/#\d+$/, ""))
  return {
    project,
    repository: remotes.get(project),
    folders: folders.length > 1 ? folders : undefined,
    topics,
    conversations: personConversations.map(({ row, messages }) => ({
      id: formatRef(row.ref),
      title: row.title?.text ?? "(no title)",
      source: row.ref.source,
      messages: messages.length,
      topic: topicOf(formatRef(row.ref)),
    })),
    other_conversations: conversations.length - personConversations.length,
    decisions: decisions.map((decision) => ({ ...decision, topic: topicOfDecision(decision) })),
    decisions_total: decisions.length,
    commits,
    files,
    files_total: files.length,
    plan_files: planCount,
    failed_commands: failed,
    failed_commands_total: failed.length,
  }
}

/** The folders of the projects, the one with the most conversations first. */
function foldersOf(conversations: PeriodConversation[], decisions: ListedDecision[]): string[] {
  const counts = Map.groupBy(
    [...conversations.map(({ row }) => row.project ?? ""), ...decisions.map(({ project }) => project)],
    (folder) => folder,
  )
  return [...counts].sort(([a, one], [b, other]) => other.length - one.length || (a < b ? -1 : 1)).map(([path]) => path)
}

function changedFiles(conversations: PeriodConversation[]): { files: ProjectFacts["files"]; planCount: number } {
  const files = new Map<string, { path: string; added: number; removed: number }>()
  const plans = new Set<string>()
  for (const { row, messages } of conversations)
    for (const effect of messages.flatMap(({ effects }) => effects)) {
      if (effect.type !== "file" || effect.action !== "edited") continue
      if (PLAN_FILE.test(effect.path)) {
        plans.add(effect.path)
        continue
      }
      const path = (row.project ? pathBelow(row.project, effect.path) : undefined) ?? effect.path
      const file = files.get(path) ?? { path, added: 0, removed: 0 }
      file.added += effect.added ?? 0
      file.removed += effect.removed ?? 0
      files.set(path, file)
    }
  const mostChanged = [...files.values()].sort((a, b) => b.added + b.removed - a.added - a.removed)
  return { files: mostChanged, planCount: plans.size }
}

const NO_LIMIT = 1_000_000

/** The period's decisions, newest first. The notes say if dex has not learned from some conversations yet. */
async function decisionsInRange(
  dex: Dex,
  range: { from: number; to: number },
  project?: string,
): Promise<{ decisions: ListedDecision[]; notes: string[] }> {
  const { knowledge, hidden, notes } = await updateKnowledgeIfQuick(dex)
  const inRange = knowledge.decisions.knownDecisions({
    ...range,
    project,
    except: hidden,
    with_commits: true,
    limit: NO_LIMIT,
  })
  return { decisions: inRange.decisions.map(describeDecision), notes }
}

/** By folder. Folders that are missing here belong to nothing else. */
type Repositories = {
  /** `github.com/ann/api` */
  remotes: Map<string, string>
  /** Another folder of the same repository, whose remote is not known either. */
  clones: Map<string, string>
}

/**
 * The repositories of projects: by their remote; or by the repository of all pull requests that their conversations made; or, if
 * the folder is gone, by the repository whose conversations edited the same files. What the user split stays apart, and what is
 * private is not compared.
 */
async function findRepositories(
  store: Pick<HistoryWriter, "projectIdentities" | "projectPullRequests" | "projectFiles">,
  folders: readonly string[],
): Promise<Repositories> {
  const identities = (await store.projectIdentities()).filter((identity) => !identity.apart)
  const remotes = new Map<string, string>()
  const clones = new Map<string, string>()
  for (const identity of identities) {
    const [remote] = knownRemotes(identity)
    const requested = new Set((await store.projectPullRequests(identity.path)).map(repositoryOfPullRequest))
    const name = remote ?? (requested.size === 1 ? [...requested][0] : undefined)
    if (name) remotes.set(identity.path, name)
  }
  const isUnknown = (identity: ProjectIdentity) =>
    identity.stamp === GONE && !identity.private && !remotes.has(identity.path)
  if (!identities.some((identity) => folders.includes(identity.path) && isUnknown(identity))) return { remotes, clones }
  const foundRemotes = new Set(remotes.values())
  const filesByName = new Map<string, Set<string>>()
  const add = (name: string, files: Set<string>) =>
    filesByName.set(name, new Set([...(filesByName.get(name) ?? []), ...files]))
  const unknown: [folder: string, files: Set<string>][] = []
  for (const identity of identities.filter((one) => !one.private)) {
    const files = deepFiles(identity.path, await store.projectFiles(identity.path))
    const name = remotes.get(identity.path)
    if (isUnknown(identity)) unknown.push([identity.path, files])
    else if (name !== undefined) add(name, files)
  }
  for (const [folder, files] of unknown.sort(([, a], [, b]) => b.size - a.size)) {
    const shares = [...filesByName].map(([name, others]) => ({ name, share: shareOf(files, others) }))
    const best = shares.sort((a, b) => b.share - a.share)[0]
    const name = best && best.share >= MIN_SHARE ? best.name : folder
    if (name !== folder) (foundRemotes.has(name) ? remotes : clones).set(folder, name)
    add(name, files)
  }
  return { remotes, clones }
}

const MIN_SHARED_FILES = 3
/** The share of files that two clones have in common. Conversations in two clones seldom edit all the same files. */
const MIN_SHARE = 0.4

/** How many of the files are the same, as a share of the smaller set. Zero if they are too few to mean anything. */
function shareOf(files: ReadonlySet<string>, others: ReadonlySet<string>): number {
  const shared = [...files].filter((file) => others.has(file)).length
  return shared < MIN_SHARED_FILES ? 0 : shared / Math.min(files.size, others.size)
}

/** Only files at least two folders down: any two projects have a `src/index.ts`. */
function deepFiles(folder: string, files: string[]): Set<string> {
  return new Set(files.map((file) => pathBelow(folder, file) ?? "").filter((file) => file.split("/").length > 2))
}
