import type { MemberAccess } from "../../../src/store/index/index-scope.ts"
import type { SearchIndex } from "../../../src/store/index/search-index.ts"

/** The methods that the ranking uses of an index of a team's words. Every answer and number is as if the index had only what a member may read. */
export type TeamWords = Pick<
  SearchIndex,
  | "find"
  | "newest"
  | "containing"
  | "count"
  | "countConversations"
  | "sizes"
  | "isBehind"
  | "leavesOut"
  | "isFastForCommonWords"
  | "countAhead"
>

/** An index of a tenant's words. `followed` is the number of the newest change in the tenant's feed that it has processed. */
export type TenantWords = { followed: number; within(access: MemberAccess): Promise<TeamWords> }

/** An engine that indexes the words of teams. `test/engine.test.ts` has the contract. */
export type WordEngine = {
  /** Returns undefined if there is no index yet. */
  open(tenant: number): Promise<TenantWords | undefined>
  close(): void
}

/** Nothing is reported as not found that was not searched. */
export const SEARCH_UNAVAILABLE = {
  status: 503,
  code: "search_unavailable",
  message:
    "The hub's search is not available at the moment, so nothing was searched. Everything else works, and nothing that you push is lost. Search again in a few seconds.",
}

const refuse = () => Promise.reject(new Error("A team's index can only be searched."))

/**
 * The index for the search tool. A hub corrects and completes no words: only a laptop does, from its own. Which messages contain
 * no spoken word of a question is found in their texts.
 */
export function searchIndexOf(words: TeamWords): SearchIndex {
  return {
    ...words,
    isPart: true,
    words: async () => [],
    wordsOfLength: async () => [],
    unspoken: async () => new Set(),
    followed: refuse,
    scopeOf: refuse,
    scopeWithout: refuse,
    vectors: refuse,
    follow: refuse,
    purge: refuse,
    isPurgeDue: refuse,
    check: refuse,
    checkpoint: () => {},
    close: () => {},
  }
}
