import type { Effect } from "../core/conversation.ts"
import { spelledBelow } from "../core/path-key.ts"
import { formatRef } from "../core/ref.ts"
import type { ConversationRow, StoredMessage } from "../store/history/store.ts"
import type { Dex } from "../tools/context.ts"

/** What was done in a project, told from the records alone. */
export type ProjectFacts = {
  project: string
  conversations: { id: string; title: string; source: string; messages: number }[]
  other_conversations: number
  commits: { ref: string; hash: string; subject: string }[]
  files: { path: string; added: number; removed: number }[]
  files_total: number
  failed_commands: { ref: string; command: string; error?: string; times: number }[]
  failed_commands_total: number
}

const MOST_FILES = 20
const MOST_FAILED = 10
const ERROR_CHARS = 200

/** Only what was said within the range counts, also of a conversation that began before it. Most active first. */
export async function projectFacts(
  dex: Dex,
  range: { from: number; to: number },
  project?: string,
): Promise<ProjectFacts[]> {
  if (!dex.hasHistory()) return []
  const store = await dex.store()
  const { rows } = await store.list({
    ...range,
    ...(project !== undefined && { project }),
    kinds: ["person", "subagent", "automation"],
    inside: dex.project,
    limit: 1_000_000,
    offset: 0,
  })
  const found = new Map<string, { row: ConversationRow; messages: StoredMessage[] }[]>()
  for (const row of rows) {
    const within = ({ at = row.ended_at ?? 0 }: StoredMessage) => at >= range.from && at <= range.to
    const messages = (await store.messages(row.ref)).filter(
      (message) => !message.superseded && !message.copied && within(message),
    )
    const name = row.project ?? ""
    if (messages.length > 0) found.set(name, [...(found.get(name) ?? []), { row, messages }])
  }
  return [...found]
    .map(([name, conversations]) => factsOf(name, conversations))
    .sort((a, b) => b.conversations.length - a.conversations.length || (a.project < b.project ? -1 : 1))
}

function factsOf(project: string, conversations: { row: ConversationRow; messages: StoredMessage[] }[]): ProjectFacts {
  const persons = conversations.filter(({ row }) => row.kind === "person")
  const effects = conversations
    .flatMap(({ row, messages }) =>
      messages.flatMap(({ number, at, effects }) =>
        effects.map((effect) => ({ effect, at: at ?? row.ended_at ?? 0, ref: formatRef({ ...row.ref, number }) })),
      ),
    )
    .sort((a, b) => a.at - b.at)
  const files = changedFiles(project, effects)
  const failed = stillFailing(effects)
  const commits = new Map(
    effects.flatMap(({ effect, ref }) =>
      effect.type === "commit" ? [[effect.hash, { ref, hash: effect.hash, subject: effect.subject }] as const] : [],
    ),
  )
  return {
    project,
    conversations: persons.map(({ row, messages }) => ({
      id: formatRef(row.ref),
      title: row.title?.text ?? "(no title)",
      source: row.ref.source,
      messages: messages.length,
    })),
    other_conversations: conversations.length - persons.length,
    commits: [...commits.values()],
    files: files.slice(0, MOST_FILES),
    files_total: files.length,
    failed_commands: failed.slice(0, MOST_FAILED),
    failed_commands_total: failed.length,
  }
}

type Done = { effect: Effect; at: number; ref: string }

function changedFiles(project: string, done: Done[]): ProjectFacts["files"] {
  const files = new Map<string, { path: string; added: number; removed: number }>()
  for (const { effect } of done) {
    if (effect.type !== "file" || effect.action !== "edited") continue
    const spelled = spelledBelow(project, effect.path)
    const path = project !== "" && spelled.startsWith(`${project}/`) ? spelled.slice(project.length + 1) : effect.path
    const file = files.get(path) ?? { path, added: 0, removed: 0 }
    file.added += effect.added ?? 0
    file.removed += effect.removed ?? 0
    files.set(path, file)
  }
  return [...files.values()].sort((a, b) => b.added + b.removed - a.added - a.removed)
}

/** Commands that failed and did not succeed afterwards, the last first. */
function stillFailing(done: Done[]): ProjectFacts["failed_commands"] {
  const failing = new Map<string, ProjectFacts["failed_commands"][number]>()
  for (const { effect, ref } of done) {
    if (effect.type !== "command") continue
    const command = effect.command.replace(/\s+/g, " ").trim()
    const before = failing.get(command)
    if (effect.failed !== undefined) failing.delete(command)
    if (effect.failed)
      failing.set(command, {
        ref,
        command,
        times: (before?.times ?? 0) + 1,
        ...(effect.error !== undefined && { error: effect.error.slice(0, ERROR_CHARS) }),
      })
  }
  return [...failing.values()].reverse()
}
