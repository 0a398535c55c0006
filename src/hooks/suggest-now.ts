import { existsSync } from "node:fs"
import type { Settings } from "../config/settings.ts"
import type { Item, ItemKind, Moment } from "../core/suggestion.ts"
import { openKnowledge, readKnowledge } from "../store/knowledge/knowledge.ts"
import { olderKnowledge } from "../store/sqlite/older-files.ts"
import type { Suggestions } from "../store/suggestions/suggestions.ts"
import { suggestItems } from "../suggest/suggest.ts"
import { FLOOR, RELEVANCE_WEIGHTS } from "../suggest/weights.ts"
import { sessionOf } from "./session.ts"

/** Another dex may be writing: it is not waited for longer than an agent can spare. */
export const BUSY_MS = 40

export type SuggestRequest = {
  knowledge: string
  suggestions: Suggestions
  settings: Settings
  moment: Moment
  transcript?: string
  kinds: ReadonlySet<ItemKind>
  /** Keys of what the session was told. */
  seen: ReadonlySet<string>
}

/** What there is to say at this moment, for this user: nothing where no facts are known yet. */
export function suggestNow({
  knowledge: path,
  suggestions,
  settings,
  moment,
  transcript,
  kinds,
  seen,
}: SuggestRequest): Item[] {
  // Facts are learned from when somebody first asks for them: that is now, and the next sync does it.
  if (!existsSync(path) && !existsSync(olderKnowledge(path))) openKnowledge(path).close()
  const knowledge = readKnowledge(path, BUSY_MS)
  if (!knowledge) return []
  try {
    const sources = { knowledge, recent_change_days: settings["proactive.recent_change_days"] }
    return suggestItems(sources, moment, sessionOf(knowledge, moment, transcript, seen), {
      weights: RELEVANCE_WEIGHTS,
      learned: suggestions.weights(),
      floor: settings["proactive.min_relevance_score"] ?? FLOOR,
      most: settings["proactive.max_suggestions"],
      kinds,
    })
  } finally {
    knowledge.close()
  }
}
