import type { Effect } from "../../core/conversation.ts"
import { formatRef } from "../../core/ref.ts"
import type { Infer } from "../../core/schema.ts"
import { pathBelow } from "../../learn/paths.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import type { decisionShape } from "../../tools/decisions/decisions.ts"
import { listedDecision } from "../../tools/decisions/run.ts"
import { knowledgeUpdatedIfQuick } from "../../tools/learned.ts"
import { findOpenChecks, type OpenCheck } from "../left-open.ts"

/** Facts about the work in a project during a period, taken only from the records. */
export type ProjectFacts = {
  project: string
  conversations: { id: string; title: string; source: string; messages: number }[]
  other_conversations: number
  decisions: ListedDecision[]
  decisions_total: number
  commits: { ref: string; hash: string; subject: string }[]
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
 * The facts by project, the most active first. Counts only messages in the range, including those of conversations that began
 * earlier.
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
  const byProject = new Map<string, { row: ConversationRow; messages: StoredMessage[] }[]>()
  for (const row of rows) {
    const isInRange = ({ at = row.ended_at ?? 0 }: StoredMessage) => at >= range.from && at <= range.to
    const messages = (await store.messages(row.ref)).filter(
      (message) => !message.superseded && !message.copied && isInRange(message),
    )
    const name = row.project ?? ""
    if (messages.length > 0) byProject.set(name, [...(byProject.get(name) ?? []), { row, messages }])
  }
  const { decisions, notes } = await decisionsInRange(dex, range, project)
  const projects = [...new Set([...byProject.keys(), ...decisions.keys()])]
    .map((name) => factsOf(name, byProject.get(name) ?? [], decisions.get(name) ?? []))
    .map((facts) => (all ? facts : limitLists(facts)))
    .sort((a, b) => b.conversations.length - a.conversations.length || (a.project < b.project ? -1 : 1))
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
  project: string,
  conversations: { row: ConversationRow; messages: StoredMessage[] }[],
  decisions: ListedDecision[],
): ProjectFacts {
  const personConversations = conversations.filter(({ row }) => row.kind === "person")
  const effects = conversations
    .flatMap(({ row, messages }) =>
      messages.flatMap(({ number, at, effects }) =>
        effects.map((effect) => ({ effect, at: at ?? row.ended_at ?? 0, ref: formatRef({ ...row.ref, number }) })),
      ),
    )
    .sort((a, b) => a.at - b.at)
  const { files, plans } = changedFiles(project, effects)
  const failed = findOpenChecks(
    project,
    conversations.map(({ row, messages }) => ({
      messages,
      refOf: (number) => formatRef({ ...row.ref, number }),
      ended_at: row.ended_at ?? 0,
    })),
  )
  const commits = new Map(
    effects.flatMap(({ effect, ref }) =>
      effect.type === "commit" ? [[effect.hash, { ref, hash: effect.hash, subject: effect.subject }] as const] : [],
    ),
  )
  return {
    project,
    conversations: personConversations.map(({ row, messages }) => ({
      id: formatRef(row.ref),
      title: row.title?.text ?? "(no title)",
      source: row.ref.source,
      messages: messages.length,
    })),
    other_conversations: conversations.length - personConversations.length,
    decisions,
    decisions_total: decisions.length,
    commits: [...commits.values()],
    files,
    files_total: files.length,
    plan_files: plans,
    failed_commands: failed,
    failed_commands_total: failed.length,
  }
}

type PlacedEffect = { effect: Effect; at: number; ref: string }

function changedFiles(project: string, effects: PlacedEffect[]): { files: ProjectFacts["files"]; plans: number } {
  const files = new Map<string, { path: string; added: number; removed: number }>()
  const plans = new Set<string>()
  for (const { effect } of effects) {
    if (effect.type !== "file" || effect.action !== "edited") continue
    if (PLAN_FILE.test(effect.path)) {
      plans.add(effect.path)
      continue
    }
    const path = (project === "" ? undefined : pathBelow(project, effect.path)) ?? effect.path
    const file = files.get(path) ?? { path, added: 0, removed: 0 }
    file.added += effect.added ?? 0
    file.removed += effect.removed ?? 0
    files.set(path, file)
  }
  const mostChanged = [...files.values()].sort((a, b) => b.added + b.removed - a.added - a.removed)
  return { files: mostChanged, plans: plans.size }
}

type ListedDecision = Infer<typeof decisionShape>

const NO_LIMIT = 1_000_000

/** The period's decisions by project, newest first. The notes say if dex has not learned from some conversations yet. */
async function decisionsInRange(
  dex: Dex,
  range: { from: number; to: number },
  project?: string,
): Promise<{ decisions: Map<string, ListedDecision[]>; notes: string[] }> {
  const { knowledge, hidden, notes } = await knowledgeUpdatedIfQuick(dex)
  const inRange = knowledge.decisions.knownDecisions({
    ...range,
    project,
    except: hidden,
    with_commits: true,
    limit: NO_LIMIT,
  })
  const decisions = new Map<string, ListedDecision[]>()
  for (const decision of inRange.decisions.map(listedDecision))
    decisions.set(decision.project, [...(decisions.get(decision.project) ?? []), decision])
  return { decisions, notes }
}
