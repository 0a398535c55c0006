import { formatRef } from "../../core/ref.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"

export type PeriodConversation = { row: ConversationRow; messages: StoredMessage[] }
/** A piece of work: what was done on one branch, or in one conversation if it was done on the main branch. */
export type WorkTopic = {
  title: string
  /** The conversation with the most messages in it. */
  ref: string
  branch?: string
  /** The addresses of pull requests. */
  pull_requests: string[]
  conversations: number
}
export type TopicCommit = { ref: string; hash: string; subject: string; topic: number }

const MERGE = /^Merge (?:branch|pull request|remote-tracking|tag|commit)\b/
const MAIN_BRANCH = /^(?:main|master|trunk|dev|develop|development|HEAD)$/

/**
 * Sorts the work of a period by topic, those with pull requests and the most commits first. A subagent's work belongs to its
 * parent. Merges are left out. A commit with the same subject as an earlier one of its topic is that one, amended or moved.
 */
export function workTopics(conversations: readonly PeriodConversation[]): {
  topics: WorkTopic[]
  commits: TopicCommit[]
  /** The topic of a conversation. Undefined if it has none in the period. */
  topicOf: (ref: string) => number | undefined
} {
  const families = familiesOf(conversations)
  const drafts = new Map<string, Draft>()
  const keyOfConversation = new Map<string, string>()
  for (const [id, members] of families) {
    const made = members.flatMap(madeIn).sort((a, b) => a.at - b.at)
    const key = mainKeyOf(id, members, made)
    for (const { row } of members) keyOfConversation.set(formatRef(row.ref), key)
    draftAt(drafts, key).members.push(...members)
    for (const one of made)
      if ("url" in one) draftAt(drafts, key).urls.add(one.url)
      else draftAt(drafts, one.branch === undefined ? key : branchKey(one.branch)).commits.set(one.subject, one)
  }
  const sorted = [...drafts].sort(([, a], [, b]) => weightOf(b) - weightOf(a) || (sizeOf(a) < sizeOf(b) ? 1 : -1))
  const places = new Map(sorted.map(([key], i) => [key, i]))
  return {
    topics: sorted.map(([key, draft]) => describe(key, draft, families)),
    commits: sorted
      .flatMap(([, { commits }], topic) => [...commits.values()].map((commit) => ({ ...commit, topic })))
      .sort((a, b) => a.at - b.at)
      .map(({ ref, hash, subject, topic }) => ({ ref, hash, subject, topic })),
    topicOf: (ref) => places.get(keyOfConversation.get(ref) ?? ""),
  }
}

type Draft = { members: PeriodConversation[]; commits: Map<string, MadeCommit>; urls: Set<string> }
type MadeCommit = { at: number; ref: string; hash: string; subject: string; branch?: string }

function draftAt(drafts: Map<string, Draft>, key: string): Draft {
  const draft = drafts.get(key) ?? { members: [], commits: new Map(), urls: new Set<string>() }
  drafts.set(key, draft)
  return draft
}

/** The conversations with their subagents, by the ref of the first one of the family in this period. */
function familiesOf(conversations: readonly PeriodConversation[]): Map<string, PeriodConversation[]> {
  const rows = new Map(conversations.map(({ row }) => [formatRef(row.ref), row]))
  const rootOf = (row: ConversationRow, depth = 0): string => {
    const parent = row.parent && rows.get(formatRef({ ...row.ref, id: row.parent.id }))
    return parent === undefined || depth > 20 ? formatRef(row.ref) : rootOf(parent, depth + 1)
  }
  return Map.groupBy(conversations, ({ row }) => rootOf(row))
}

function madeIn({ row, messages }: PeriodConversation): (MadeCommit | { at: number; url: string })[] {
  return messages.flatMap(({ number, at = row.ended_at ?? 0, effects }) =>
    effects.flatMap((effect) => {
      if (effect.type === "pull_request") return { at, url: effect.url }
      if (effect.type !== "commit" || MERGE.test(effect.subject)) return []
      const { hash, subject, branch } = effect
      return { at, ref: formatRef({ ...row.ref, number }), hash, subject, branch: topicBranch(branch) }
    }),
  )
}

/** The branch on which most commits were made; otherwise the one on which it began; otherwise the conversation itself. */
function mainKeyOf(id: string, [first]: PeriodConversation[], made: ReturnType<typeof madeIn>): string {
  const branches = made.flatMap((one) => ("branch" in one && one.branch !== undefined ? one.branch : []))
  const counts = Map.groupBy(branches, (branch) => branch)
  const [most] = [...counts].sort(([, a], [, b]) => b.length - a.length)
  const branch = most?.[0] ?? topicBranch(first?.row.git_branch)
  return branch === undefined ? id : branchKey(branch)
}

const branchKey = (branch: string) => `branch ${branch}`

function topicBranch(branch: string | undefined): string | undefined {
  return branch === undefined || MAIN_BRANCH.test(branch) ? undefined : branch
}

/** A pull request weighs as much as a few commits: it is what others see of the work. */
const weightOf = ({ urls, commits }: Draft) => 5 * urls.size + commits.size
const sizeOf = ({ members }: Draft) => members.reduce((sum, { messages }) => sum + messages.length, 0)

function describe(key: string, draft: Draft, families: Map<string, PeriodConversation[]>): WorkTopic {
  const { members, commits, urls } = draft
  const people = members.filter(({ row }) => row.kind === "person")
  const [largest] = [...(people.length > 0 ? people : members)].sort((a, b) => b.messages.length - a.messages.length)
  const [commit] = commits.values()
  return {
    title: titleOf(members, commit),
    ref: largest ? formatRef(largest.row.ref) : commit!.ref,
    branch: families.has(key) ? undefined : key.slice(branchKey("").length),
    pull_requests: [...urls],
    conversations: people.length,
  }
}

const GIVEN_TITLES: readonly (string | undefined)[] = ["person", "agent", "summary", "plan"]

/** A title that somebody gave, or the heading of the plan; otherwise the first commit; otherwise how the conversation began. */
function titleOf(members: readonly PeriodConversation[], commit: MadeCommit | undefined): string {
  const titles = members.flatMap(({ row }) => (row.kind === "person" && row.title ? row.title : []))
  const given = titles.find(({ from }) => GIVEN_TITLES.includes(from))
  return given?.text ?? commit?.subject ?? (titles[0] ?? members[0]?.row.title)?.text ?? "(no title)"
}
