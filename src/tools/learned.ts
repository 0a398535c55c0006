import { optedInProjects } from "../config/projects.ts"
import { isSamePath } from "../core/path-key.ts"
import { isKnowledgeOutdated, needsLearning } from "../learn/outdated.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import { projectsHiddenFrom } from "../search/scope.ts"
import type { HistoryReader } from "../store/history/store.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"
import { tryLock } from "../store/sqlite/lock.ts"
import type { Dex, ExtraFacts } from "./context.ts"

export type OpenedKnowledge = {
  knowledge: Knowledge
  /** Sentences about facts that are not known yet. */
  notes: string[]
  /** True if the project is private and is not the current one. */
  isHidden(project: string | undefined): boolean
  /** The private projects, except the current one. */
  hidden: string[]
}

/**
 * Updates the facts from the history and from the sources that `extra` names, and returns them. If another process is updating
 * them, returns them as they are, with a note.
 */
export async function updatedKnowledge(dex: Dex, extra: ExtraFacts = {}): Promise<OpenedKnowledge> {
  const facts = await openKnowledge(dex)
  const { project, ...withoutProject } = extra
  const notes = await (dex.learnInBackground ?? learnNow.bind(undefined, dex))(
    facts.isHidden(project) ? withoutProject : extra,
  )
  return { ...facts, notes }
}

/**
 * Updates the facts only if that is quick. Otherwise returns them as they are: this is for reports, which do not wait until
 * everything is learned.
 */
export async function updateKnowledgeIfQuick(dex: Dex): Promise<OpenedKnowledge> {
  return (await hasMuchToLearn(dex))
    ? { ...(await openKnowledge(dex)), notes: [DECISIONS_MAY_BE_MISSING] }
    : updatedKnowledge(dex)
}

async function openKnowledge(dex: Dex): Promise<Omit<OpenedKnowledge, "notes">> {
  return { knowledge: await dex.knowledge(), ...(await otherPrivateProjects(dex)) }
}

export async function otherPrivateProjects(dex: Dex): Promise<Pick<OpenedKnowledge, "isHidden" | "hidden">> {
  const { platform } = dex.machine
  const hidden = projectsHiddenFrom(await (await dex.store()).projects(), dex.project, platform)
  const isHidden = (project: string | undefined) =>
    project !== undefined && hidden.some((path) => isSamePath(path, project, platform))
  return { isHidden, hidden }
}

/**
 * Updates the facts and waits until that is done, unless another process is updating them. Returns notes about what is not
 * known yet.
 */
export async function learnNow(dex: Dex, extra: ExtraFacts = {}): Promise<string[]> {
  const notes = await whileNobodyLearns(dex, async () => {
    const { complete } = await learnAll(dex)
    return [...(complete ? [] : [LEARNING_UNFINISHED]), ...(await readProjectFacts(dex, extra))]
  })
  if (notes === undefined) return [ANOTHER_IS_LEARNING]
  // After this process last looked for changes, another one may have found the lock taken and left new conversations unlearned.
  while (!dex.signal?.aborted && (await isKnowledgeOutdated(await dex.store(), await dex.knowledge())))
    if ((await whileNobodyLearns(dex, () => learnAll(dex))) === undefined) break
  return notes
}

/** Updates the index and the facts, which depend on the conversations' projects. */
export async function updateDerivedData(dex: Dex, store: HistoryReader): Promise<void> {
  await (await dex.indexToWrite())?.follow(store)
  if (dex.hasKnowledge()) await learnEvenIfBusy(dex)
}

/** Learns even if another process is already learning, for callers such as forgetting that need learning to be finished. */
export async function learnEvenIfBusy(dex: Dex): Promise<void> {
  if ((await whileNobodyLearns(dex, () => learnAll(dex))) === undefined) await learnAll(dex)
}

export const ANOTHER_IS_LEARNING =
  "Another dex process is updating the facts right now, so this answer may be incomplete. Try again in a moment."
const DECISIONS_MAY_BE_MISSING =
  "Decisions may be missing: dex has not learned from all conversations yet. Run `dex decisions` to do that."
export const LEARNING_UNFINISHED = "dex has not learned from all conversations yet. The next command will continue."

/** Runs `work`, which adds to the facts. If another process is adding to them, does nothing and returns undefined. */
export async function whileNobodyLearns<T>(
  { home }: Pick<Dex, "home">,
  work: () => Promise<T>,
): Promise<T | undefined> {
  const lock = tryLock(`${home.dir}/knowledge.lock`)
  if (!lock) return undefined
  try {
    return await work()
  } finally {
    lock.release()
  }
}

async function learnAll(dex: Dex): Promise<{ complete: boolean }> {
  return (await hasMuchToLearn(dex)) ? dex.learnInSubprocess() : learnInProcess(dex)
}

/** Learning from this many conversations or fewer takes less time than starting a process, so it happens in this one. */
const FEW_CONVERSATIONS = 16

async function hasMuchToLearn(dex: Dex): Promise<boolean> {
  const { rebuild, more } = await (await dex.store()).changes(
    (await dex.knowledge()).conversations.learnedToken(),
    FEW_CONVERSATIONS,
  )
  return rebuild || more
}

/** Learns in this process, and deletes forgotten text from the facts. */
export async function learnInProcess(dex: Dex): Promise<{ complete: boolean }> {
  const store = await dex.store()
  const knowledge = await dex.knowledge()
  knowledge.projects.setRedactionVersion(REDACTION_VERSION)
  knowledge.projects.dropOtherProjects(optedInProjects(dex.home).map(dex.projectOf))
  const { complete } = (await needsLearning(store, knowledge))
    ? await learnMore(dex, store, knowledge)
    : { complete: true }
  if (knowledge.projects.isPurgeDue()) knowledge.projects.purgeKnowledge(dex.home.knowledge)
  return { complete }
}

async function learnMore(dex: Dex, store: HistoryReader, knowledge: Knowledge): Promise<{ complete: boolean }> {
  const { learn } = await import("../learn/learn.ts")
  const onProgress = await progressOf(dex, store)
  return learn(store, knowledge, { signal: dex.signal, onProgress })
}

async function readProjectFacts(dex: Dex, { project, commits }: ExtraFacts): Promise<string[]> {
  if (project === undefined && commits === undefined) return []
  const facts = await import("./project-facts.ts")
  const knowledge = await dex.knowledge()
  return [
    ...(project === undefined ? [] : await facts.readProject(dex, knowledge, project)),
    ...(commits === undefined ? [] : await facts.learnFromGit(dex, knowledge, commits)),
  ]
}

/** Reports progress only on the first run, when everything is new: later runs are short. */
async function progressOf(dex: Dex, store: HistoryReader): Promise<(learned: number) => void> {
  if (!dex.onProgress) return () => {}
  const { conversations } = await store.stats()
  return (done) => {
    const total = Math.max(done, conversations)
    dex.onProgress!({ phase: "learning", done, total, bytes: done, bytesTotal: total })
  }
}
