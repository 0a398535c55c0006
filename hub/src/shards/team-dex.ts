import { createDex } from "../../../src/app/dex.ts"
import type { HistoryReader } from "../../../src/store/history/store.ts"
import type { SearchIndex } from "../../../src/store/index/search-index.ts"
import { openSuggestions } from "../../../src/store/suggestions/suggestions.ts"
import type { Dex } from "../../../src/tools/context.ts"

/**
 * What the tools work with, where the history is a team's and whoever asks may see a part of it. It has no home of its own:
 * `folder` is empty, so that nothing of this machine is in an answer.
 */
export function teamDex(folder: string, version: string, history: HistoryReader, index: SearchIndex | undefined): Dex {
  const refuse = () => Promise.reject(new Error("A hub's history is changed by pushing to it only."))
  return {
    ...createDex({ env: { HOME: folder, DEX_HOME: folder }, cwd: folder, version }),
    project: "",
    isTeam: true,
    hasHistory: () => true,
    store: async () => history,
    storeToWrite: refuse,
    index: async () => index,
    indexIsDamaged: async () => false,
    indexToWrite: async () => undefined,
    knows: () => false,
    hasSuggestions: () => false,
    suggestions: () => Promise.resolve(openSuggestions(":memory:", { redact: (text) => text })),
    takeDamaged: async () => [],
    syncBehind: async () => false,
    syncDeps: refuse,
    lastListing: () => ({ refs: [], words: [] }),
  }
}
