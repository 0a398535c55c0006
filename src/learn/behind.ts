import type { HistoryReader } from "../store/history/store.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"

// Whether there is anything to learn, apart from learning itself: mostly there is not, and learning is much to load.

/** What is learned differently from this on is learned again from everything. */
export const LEARNER_VERSION = 10

/** Whether the history says more than what was learned from. */
export async function isBehind(store: HistoryReader, knowledge: Knowledge): Promise<boolean> {
  const { rebuild, changes } = await store.changes(knowledge.conversations.learnedToken(), 1)
  return rebuild || changes.length > 0
}

/** … or is to be learned in another way, or was not brought to its end. */
export async function hasToLearn(store: HistoryReader, knowledge: Knowledge): Promise<boolean> {
  const { conversations, decisions } = knowledge
  return !conversations.isLearner(LEARNER_VERSION) || decisions.hasStale() || (await isBehind(store, knowledge))
}
