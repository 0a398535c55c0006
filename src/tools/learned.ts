import { optedIn } from "../config/projects.ts"
import { isSamePath } from "../core/path-key.ts"
import { hiddenFrom } from "../search/scope.ts"
import { isPurgeDue, type Knowledge, purgeKnowledge } from "../store/knowledge.ts"
import { keepProjects } from "../store/knowledge-projects.ts"
import type { Store } from "../store/store.ts"
import { learn } from "../suggest/learn.ts"
import type { Dex } from "./context.ts"

export type Learned = {
  knowledge: Knowledge
  /** What is not known yet. */
  notes: string[]
  /** A private project is told of only inside itself. */
  isHidden(project: string | undefined): boolean
  /** The private projects that this is not inside of. */
  hidden: string[]
}

/** The facts, brought up to what the history says; what was forgotten is in no byte of them. */
export async function learnedOf(dex: Dex): Promise<Learned> {
  const store = await dex.store()
  const knowledge = await dex.knowledge()
  keepProjects(knowledge, optedIn(dex.home))
  const { complete } = await learn(store, knowledge, {
    ...(dex.signal && { signal: dex.signal }),
    onProgress: await progressOf(dex, store),
  })
  if (isPurgeDue(knowledge)) purgeKnowledge(knowledge, dex.home.knowledge)
  const { platform } = dex.machine
  const hidden = hiddenFrom(await store.projects(), dex.project, platform)
  return {
    knowledge,
    notes: complete ? [] : ["Not every conversation was learned from yet: the next command goes on."],
    isHidden: (project) => project !== undefined && hidden.some((one) => isSamePath(one, project, platform)),
    hidden,
  }
}

/** Long only the first time, when everything is new. */
async function progressOf(dex: Dex, store: Store): Promise<(learned: number) => void> {
  if (!dex.onProgress) return () => {}
  const { conversations } = await store.stats()
  return (done) => {
    const total = Math.max(done, conversations)
    dex.onProgress!({ phase: "learning", done, total, bytes: done, bytesTotal: total })
  }
}
