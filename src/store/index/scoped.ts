import type { IndexScope } from "./index-scope.ts"
import type { IndexFilter } from "./query.ts"
import type { SearchIndex } from "./search-index.ts"

/**
 * An index that answers from some of its conversations only, for somebody who may see no more. Statistics and vocabulary are
 * still those of the whole index, so a caller shows no word before it has found it in a text (`isPart`).
 */
export function scopedIndex(index: SearchIndex, scope: IndexScope): SearchIndex {
  const within = <F extends Pick<IndexFilter, "scope">>(filter: F): F => ({ ...filter, scope })
  return {
    ...index,
    isPart: true,
    find: (query) => index.find(within(query)),
    newest: (query) => index.newest(within(query)),
    count: (query) => index.count(within(query)),
    countConversations: (query) => index.countConversations(within(query)),
    vectors: () => Promise.reject(new Error("There is no search by meaning in a part of an index.")),
  }
}
