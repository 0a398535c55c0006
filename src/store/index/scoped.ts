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
export function scopedIndex(index: SearchIndex, names: IndexScope): SearchIndex {
  const scope = scopes.get(names) ?? { ...names, part: SCOPED_PART }
  scopes.set(names, scope)
  const within = <F extends Pick<IndexFilter, "scope">>(filter: F): F => ({ ...filter, scope })
  return {
    ...index,
    isPart: true,
    ...(scope.others.length > 0 && { leavesOut: true as const }),
    find: (query) => index.find(within(query)),
    newest: (query) => index.newest(within(query)),
    count: (query) => index.count(within(query)),
    countConversations: (query) => index.countConversations(within(query)),
    sizes: (terms) => index.sizes(terms, scope),
    vectors: () => Promise.reject(new Error("There is no search by meaning in a part of an index.")),
  }
}
