import type { IndexScope } from "./index-scope.ts"
import type { IndexFilter } from "./query.ts"
import { SCOPED_PART } from "./scoped-scores.ts"
import type { SearchIndex } from "./search-index.ts"

/** One scope for each given scope, so that cached statistics can be reused. */
const scopes = new WeakMap<IndexScope, IndexScope>()

/**
 * An index restricted to some of its conversations, for a user who may see no others. Every number is as if it contained nothing
 * else. Its vocabulary has all words, so callers must find a word in a text before they show it (`isPart`).
 */
export function scopedIndex(
  index: SearchIndex,
  names: IndexScope,
  leavesOut: NonNullable<SearchIndex["leavesOut"]> = "others",
): SearchIndex {
  const scope = scopes.get(names) ?? { ...names, part: SCOPED_PART }
  scopes.set(names, scope)
  /** The scope leaves out private projects by itself, and a query without other filters is faster. */
  const within = <F extends Pick<IndexFilter, "scope" | "excludedProjects">>(filter: F): F => {
    const inScope = { ...filter, scope }
    if (leavesOut === "private") delete inScope.excludedProjects
    return inScope
  }
  return {
    ...index,
    isPart: true,
    ...(scope.others.length > 0 && { leavesOut }),
    find: (query) => index.find(within(query)),
    newest: (query) => index.newest(within(query)),
    count: (query) => index.count(within(query)),
    countConversations: (query) => index.countConversations(within(query)),
    sizes: (terms) => index.sizes(terms, scope),
    vectors: async () => {
      const { scopedVectors } = await import("./vector-index.ts")
      return scopedVectors(await index.vectors(), scope)
    },
  }
}
