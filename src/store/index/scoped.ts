import type { IndexFilter, IndexScope } from "./query.ts"
import type { SearchIndex } from "./search-index.ts"

/**
 * An index that answers from a part of it only, for somebody who may see no more. How common a word is, and which words
 * there are, is still said of all of it: nobody is told of a word before it was found in the part.
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
