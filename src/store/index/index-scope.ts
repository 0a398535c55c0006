import type { Db } from "../sqlite/database.ts"
import { rowQuery } from "../sqlite/typed-query.ts"
import { savedToken } from "./follow-marks.ts"
import type { IndexHit, IndexQuery, IndexSizes, PreparedQuery } from "./query.ts"
import type { Term } from "./terms.ts"

/**
 * The conversations of an index to which a query is restricted. Valid only for the index that created it. `others` are all other
 * conversations while the index is at `token`. If they are fewer, a query excludes them instead, so that a user who may see
 * everything queries without a filter.
 */
export type IndexScope = {
  readonly ids: readonly number[]
  readonly others: readonly number[]
  readonly token: string | undefined
  /** Computes scores and counts within the scope. Needed only on a hub, whose members may not see everything. */
  readonly part?: ScopedPart
}

export type ScopedPart = {
  find(db: Db, query: IndexQuery, prepared: PreparedQuery): IndexHit[] | undefined
  sizes(db: Db, terms: Term[], scope: IndexScope): IndexSizes | undefined
  oldestOfNewest(db: Db, newest: number, scope: IndexScope): number | undefined
}

/** Returns a function that creates a scope of conversations, by their names in the history's feed. It caches all names. */
export function scopeCreator(): (db: Db, names: ReadonlySet<string>) => IndexScope {
  let cached: { db: Db; token: string | undefined; all: { id: number; name: string }[] } | undefined
  return (db, names) => {
    const token = savedToken(db)
    if (cached?.db !== db || cached.token !== token) {
      const all = rowQuery(db, "select id, name from conversation", { id: "integer", name: "text" }).all()
      cached = { db, token, all }
    }
    const ids: number[] = []
    const others: number[] = []
    for (const { id, name } of cached.all) (names.has(name) ? ids : others).push(id)
    return { ids, others, token }
  }
}

/** Returns false if the scope includes everything in the index. */
export function excludesAny(db: Db, { others, token }: IndexScope): boolean {
  return others.length > 0 || savedToken(db) !== token
}

/** Returns the conversations that a query must select or exclude to stay within a scope. */
export function restrictToScope(
  db: Db,
  { ids, others, token }: IndexScope,
  chosen: number[] | undefined,
  excluded: number[],
): { conversations: readonly number[] | undefined; excluded: readonly number[] } {
  if (chosen) {
    const inScope = new Set(ids)
    return { conversations: chosen.filter((id) => inScope.has(id)), excluded }
  }
  return others.length < ids.length && savedToken(db) === token
    ? { conversations: undefined, excluded: [...excluded, ...others] }
    : { conversations: ids, excluded }
}
