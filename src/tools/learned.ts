import { optedIn } from "../config/projects.ts"
import { isSamePath } from "../core/path-key.ts"
import { isKnowledgeOutdated, needsLearning } from "../learn/outdated.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import { projectsHiddenFrom } from "../search/scope.ts"
import type { HistoryReader } from "../store/history/store.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"
import { tryLock } from "../store/sqlite/lock.ts"
import type { AlsoRead, Dex } from "./context.ts"

export type OpenedKnowledge = {
  knowledge: Knowledge
  /** Sentences about what is not known yet. */
  notes: string[]
  /** A private project is visible only from inside its folder. */
  isHidden(project: string | undefined): boolean
  /** The private projects, except the current one. */
  hidden: string[]
}

/**
 * The facts, updated from the history and from what `also` names. If another process is updating them, returns them as they are,
 * with a note.
 */
export async function learnedOf(dex: Dex, also: AlsoRead = {}): Promise<OpenedKnowledge> {
  const facts = await openFacts(dex)
  const { project, ...more } = also
  const notes = await (dex.learnBehind ?? learnNow.bind(undefined, dex))(facts.isHidden(project) ? more : also)
  return { ...facts, notes }
}

/**
 * Updates the facts only if little is new. Otherwise returns them as they are: a report does not wait until everything is
 * learned.
 */
export async function learnedIfQuick(dex: Dex): Promise<OpenedKnowledge> {
  return (await hasMuchToLearn(dex)) ? { ...(await openFacts(dex)), notes: [NOT_LEARNED] } : learnedOf(dex)
}

async function openFacts(dex: Dex): Promise<Omit<OpenedKnowledge, "notes">> {
  return { knowledge: await dex.knowledge(), ...(await hiddenProjects(dex)) }
}

export async function hiddenProjects(dex: Dex): Promise<Pick<OpenedKnowledge, "isHidden" | "hidden">> {
  const { platform } = dex.machine
  const hidden = projectsHiddenFrom(await (await dex.store()).projects(), dex.project, platform)
  const isHidden = (project: string | undefined) =>
    project !== undefined && hidden.some((one) => isSamePath(one, project, platform))
  return { isHidden, hidden }
}

/** Updates the facts in this thread, unless another process is doing so. Returns notes about what is not known yet. */
export async function learnNow(dex: Dex, also: AlsoRead = {}): Promise<string[]> {
  const notes = await addAlone(dex, async () => {
    const { complete } = await learnAll(dex)
    return [...(complete ? [] : [UNFINISHED]), ...(await readAlso(dex, also))]
  })
  if (notes === undefined) return [LEFT_TO_ANOTHER]
  // A process that came in the meantime left its work to this one, possibly after this one's last check.
  while (!dex.signal?.aborted && (await isKnowledgeOutdated(await dex.store(), await dex.knowledge())))
    if ((await addAlone(dex, () => learnAll(dex))) === undefined) break
  return notes
}

/**
 * For a caller that must be sure that learning is done, such as forgetting. If another process is learning, its work is done
 * twice.
 */
export async function learnEvenIfBusy(dex: Dex): Promise<void> {
  if ((await addAlone(dex, () => learnAll(dex))) === undefined) await learnAll(dex)
}

export const LEFT_TO_ANOTHER = "Another dex is learning right now: this is what is known so far. Ask again in a moment."
const NOT_LEARNED =
  "Decisions may be missing: dex has not learned from all conversations yet. `dex decisions` does that."
export const UNFINISHED = "Not all conversations were learned from yet: the next command continues."

/**
 * Does work that adds to the facts while no other process does so, so that nothing is computed twice. Returns undefined at once
 * if another process is working.
 */
export async function addAlone<T>({ home }: Pick<Dex, "home">, work: () => Promise<T>): Promise<T | undefined> {
  const lock = tryLock(`${home.dir}/knowledge.lock`)
  if (!lock) return undefined
  try {
    return await work()
  } finally {
    lock.release()
  }
}

async function learnAll(dex: Dex): Promise<{ complete: boolean }> {
  return (await hasMuchToLearn(dex)) ? dex.learnApart() : learnHere(dex)
}

/** Learning from so few conversations takes less time than starting a process. */
const FEW = 16

async function hasMuchToLearn(dex: Dex): Promise<boolean> {
  const { rebuild, more } = await (await dex.store()).changes((await dex.knowledge()).conversations.learnedToken(), FEW)
  return rebuild || more
}

/** Learns in this process. Afterwards no byte of the facts contains anything forgotten. */
export async function learnHere(dex: Dex): Promise<{ complete: boolean }> {
  const store = await dex.store()
  const knowledge = await dex.knowledge()
  knowledge.projects.setRedactionVersion(REDACTION_VERSION)
  knowledge.projects.dropOtherProjects(optedIn(dex.home))
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

async function readAlso(dex: Dex, { project, commits }: AlsoRead): Promise<string[]> {
  if (project === undefined && commits === undefined) return []
  const facts = await import("./project-facts.ts")
  const knowledge = await dex.knowledge()
  return [
    ...(project === undefined ? [] : await facts.readProject(dex, knowledge, project)),
    ...(commits === undefined ? [] : await facts.learnFromGit(dex, knowledge, commits)),
  ]
}

/** Learning takes long only the first time, when everything is new. */
async function progressOf(dex: Dex, store: HistoryReader): Promise<(learned: number) => void> {
  if (!dex.onProgress) return () => {}
  const { conversations } = await store.stats()
  return (done) => {
    const total = Math.max(done, conversations)
    dex.onProgress!({ phase: "learning", done, total, bytes: done, bytesTotal: total })
  }
}
