import type { IndexScope } from "./index-scope.ts"
import type { IndexFilter } from "./query.ts"
import { SCOPED_PART } from "./scoped-scores.ts"
import type { SearchIndex } from "./search-index.ts"

/**
 * Maps each given scope to its copy with a `part`. The copy is reused, because statistics are cached for each scope object.
 */
const scopes = new WeakMap<IndexScope, IndexScope>()

/**
 * An index restricted to some of its conversations, for a user who may see no others. Every score and count is as if it contained
 * nothing else. Its vocabulary has all words, so callers must find a word in a text before they show it (`isPart`).
 */
export function scopedIndex(
  index: SearchIndex,
  givenScope: IndexScope,
  leavesOut: NonNullable<SearchIndex["leavesOut"]> = "others",
): SearchIndex {
  const scope = scopes.get(givenScope) ?? { ...givenScope, part: SCOPED_PART }
  scopes.set(givenScope, scope)
  /** Adds the scope. If it leaves out private projects, drops the filter that excludes them too, which would be slower. */
  const restrict = <F extends Pick<IndexFilter, "scope" | "excludedProjects">>(filter: F): F => {
    const inScope = { ...filter, scope }
    if (leavesOut === "private") delete inScope.excludedProjects
    return inScope
  }
  return {
    ...index,
    isPart: true,
    ...(scope.completeAt === undefined && { leavesOut }),
    find: (query) => index.find(restrict(query)),
    newest: (query) => index.newest(restrict(query)),
    count: (query) => index.count(restrict(query)),
    countConversations: (query) => index.countConversations(restrict(query)),
    sizes: (terms) => index.sizes(terms, scope),
    vectors: async () => {
      const { scopedVectors } = await import("./vector-index.ts")
      return scopedVectors(await index.vectors(), scope)
    },
  }
}
