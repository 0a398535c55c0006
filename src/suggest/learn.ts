import { setImmediate } from "node:timers/promises"
import { linesIn } from "../blame/lines-in.ts"
import { besideOf, formatRef, type Ref } from "../core/ref.ts"
import type { Change, ConversationRow, HistoryReader, StoredMessage } from "../store/history/store.ts"
import type { LearnedFacts } from "../store/knowledge/conversations.ts"
import type { WorkedFile } from "../store/knowledge/files.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"
import type { LinesWrite } from "../store/knowledge/lines.ts"
import { LEARNER_VERSION } from "./behind.ts"
import { decisionInNote, decisionsIn, mayDecide } from "./decisions/decisions.ts"
import { supersede } from "./decisions/supersede.ts"
import { fixesIn, type Subagent } from "./fixes/fixes.ts"
import { keptFix } from "./fixes/kept.ts"
import { pathBelow } from "./paths.ts"
import { webAt } from "./stranger-words.ts"
import { testRunsIn } from "./test-runs/runs.ts"

const BATCH = 16
const MOST_SUBAGENTS = 50

export type LearnOptions = {
  /** Nothing else, and no title or branch: for who asks only who wrote what. */
  only?: "lines"
  deadline?: number
  signal?: AbortSignal
  onProgress?: (learned: number) => void
}

/** Brings the facts up to what the history says: reads the conversations that changed since last time, one at a time. */
export async function learn(
  store: HistoryReader,
  knowledge: Knowledge,
  options: LearnOptions = {},
): Promise<{ learned: number; complete: boolean }> {
  let learned = 0
  knowledge.conversations.useLearner(LEARNER_VERSION)
  for (;;) {
    const token = knowledge.conversations.learnedToken()
    const feed = await store.changes(token, BATCH)
    if (feed.rebuild) {
      knowledge.conversations.forgetConversations()
      continue
    }
    const facts: LearnedFacts[] = []
    const isOnlyLines = options.only === "lines"
    for (const change of isOnlyLines ? feed.changes : await withParents(store, knowledge, feed.changes)) {
      facts.push(await (isOnlyLines ? lineFacts(store, change) : factsOf(store, change)))
      await setImmediate() // whoever says that it is enough must be heard
    }
    if (feed.token !== token && !knowledge.conversations.saveLearned(facts, token, feed.token)) continue
    learned += feed.changes.length
    if (feed.changes.length > 0) options.onProgress?.(learned)
    const complete = !feed.more
    if (complete || options.signal?.aborted || (options.deadline !== undefined && Date.now() > options.deadline)) {
      knowledge.decisions.renewReversals(supersede)
      return { learned, complete }
    }
  }
}

/** What a subagent did is part of what its parent knows, until it is forgotten. A parent that is not known yet comes by itself. */
async function withParents(store: HistoryReader, knowledge: Knowledge, changes: Change[]): Promise<Change[]> {
  const all = new Map(changes.map((change) => [change.conversation, change]))
  const add = (name: string, ref: Ref) => {
    if (!all.has(name)) all.set(name, { conversation: name, deleted: false, ref })
  }
  for (const { conversation, ref } of changes) {
    const row = ref && (await store.conversation(ref))
    const parent = row?.parent && besideOf(row.ref, row.parent.id)
    const name = parent && knowledge.conversations.feedNameOf(parent)
    if (name !== undefined) add(name, parent!)
    const gone = knowledge.conversations.goneFrom(conversation, row?.ref)
    for (const { name, ref } of gone ? knowledge.conversations.toldOfBy(gone) : []) add(name, ref)
  }
  return [...all.values()]
}

/** One conversation alone, for those who want to know what was known at a time. */
export async function learnConversation(
  store: HistoryReader,
  knowledge: Knowledge,
  name: string,
  ref: Ref,
): Promise<void> {
  const learned = await factsOf(store, { conversation: name, deleted: false, ref })
  knowledge.conversations.saveFacts(learned)
}

async function factsOf(store: HistoryReader, { conversation: name, ref }: Change): Promise<LearnedFacts> {
  const row = ref && (await store.conversation(ref))
  if (!row || row.kind === "dex") return { name, gone: true, ...(row && { ref: row.ref }) }
  if (row.kind === "document") return documentFacts(store, name, row)
  if (row.ref.source === "dex_note") return noteFacts(store, name, row)
  const messages = (await store.messages(row.ref)).filter((message) => !message.superseded && !message.copied)
  const web_at = webAt(messages)
  const { project } = row
  return {
    name,
    gone: false,
    ref: row.ref,
    row,
    ...(web_at !== undefined && { web_at }),
    worked: row.project === undefined ? [] : workedFiles(messages, row.project),
    fixes: fixesIn(messages, await subagentsOf(store, row)).map((fix) => keptFix(fix, row.project)),
    test_runs: row.project === undefined ? [] : testRunsIn(messages, row.project),
    decisions: decisionsIn(row, messages),
    ...(project !== undefined && { lines: linesOf(row, project, messages) }),
  }
}

function linesOf(row: ConversationRow, project: string, messages: StoredMessage[]): LinesWrite {
  return linesIn(messages, row.parent?.id ?? row.ref.id, belowAny([project, ...row.cwds]), row.started_at)
}

async function lineFacts(store: HistoryReader, { conversation: name, ref }: Change): Promise<LearnedFacts> {
  const found = ref && (await store.conversation(ref))
  if (!found?.project || found.kind === "document" || found.kind === "dex")
    return { name, gone: true, ...(found && { ref: found.ref }) }
  const { title: _, git_branch: __, ...row } = found
  const messages = (await store.messages(row.ref)).filter((message) => !message.superseded && !message.copied)
  const nothing = { worked: [], fixes: [], test_runs: [], decisions: [] }
  return { name, gone: false, ref: row.ref, row, ...nothing, lines: linesOf(row, found.project, messages) }
}

/** Of a document only what it decides. */
async function documentFacts(store: HistoryReader, name: string, row: ConversationRow): Promise<LearnedFacts> {
  const decisions = mayDecide(row.ref.id) ? decisionsIn(row, await store.messages(row.ref)) : []
  return decisions.length === 0
    ? { name, gone: true, ref: row.ref }
    : { name, gone: false, ref: row.ref, row, worked: [], fixes: [], test_runs: [], decisions }
}

/** Of an agent's note nothing, until the person confirms it: so nobody is told of it who did not ask. */
async function noteFacts(store: HistoryReader, name: string, row: ConversationRow): Promise<LearnedFacts> {
  const decisions = decisionInNote(row, await store.messages(row.ref))
  return decisions.length === 0
    ? { name, gone: true, ref: row.ref }
    : { name, gone: false, ref: row.ref, row, worked: [], fixes: [], test_runs: [], decisions }
}

/** Those of the same project: whether another one is private may change at any time, and what was learned stays. */
async function subagentsOf(store: HistoryReader, { ref, kind, project }: ConversationRow): Promise<Subagent[]> {
  if (kind === "subagent") return []
  const { rows } = await store.list({
    conversation: ref,
    kinds: ["subagent"],
    limit: MOST_SUBAGENTS,
    offset: 0,
    ...(project !== undefined && { in_project: project, inside: project }),
  })
  const subagents: Subagent[] = []
  for (const { ref, parent } of rows.filter((row) => row.project === project))
    subagents.push({
      id: formatRef(ref),
      ...(parent?.call_id !== undefined && { call_id: parent.call_id }),
      messages: await store.messages(ref),
    })
  return subagents
}

function workedFiles(messages: StoredMessage[], project: string): WorkedFile[] {
  const files = new Map<string, WorkedFile>()
  for (const { number, at, effects, abandoned } of messages) {
    if (abandoned) continue
    for (const effect of effects) {
      const path = effect.type === "file" ? pathBelow(project, effect.path) : undefined
      if (effect.type !== "file" || path === undefined) continue
      const file = files.get(path) ?? {
        path,
        edits: 0,
        reads: 0,
        mentions: 0,
        added: 0,
        removed: 0,
        first_number: number,
        last_number: number,
      }
      if (effect.action === "edited") file.edits++
      else if (effect.action === "read") file.reads++
      else file.mentions++
      file.added += effect.added ?? 0
      file.removed += effect.removed ?? 0
      file.last_number = number
      if (at !== undefined) file.at = at
      files.set(path, file)
    }
  }
  return [...files.values()]
}

/** A worktree may stand anywhere: its files are the project's. */
function belowAny(folders: string[]): (path: string) => string | undefined {
  return (path) => folders.reduce<string | undefined>((found, folder) => found ?? pathBelow(folder, path), undefined)
}
