import type { HistoryReader } from "../store/history/store.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"

// Checks whether there is anything to learn. Learning loads much code and usually has nothing to do, so this check is separate.

/** The version of the learner. Increase it if something is learned differently; everything is then learned again. */
export const LEARNER_VERSION = 12

/** True if dex has not yet learned from some changes in the history. */
export async function isKnowledgeOutdated(store: HistoryReader, knowledge: Knowledge): Promise<boolean> {
  const { rebuild, changes } = await store.changes(knowledge.conversations.learnedToken(), 1)
  return rebuild || changes.length > 0
}

/** True if the knowledge is outdated, or if the learner has a new version or did not finish last time. */
export async function needsLearning(store: HistoryReader, knowledge: Knowledge): Promise<boolean> {
  const { conversations, decisions } = knowledge
  return (
    !conversations.isLearnerVersion(LEARNER_VERSION) ||
    decisions.hasStaleReversals() ||
    (await isKnowledgeOutdated(store, knowledge))
  )
}
