import type { Db } from "../sqlite/database.ts"
import { rowQuery } from "../sqlite/typed-query.ts"
import { savedToken } from "./follow-marks.ts"
import type { IndexHit, IndexQuery, IndexSizes, PreparedQuery } from "./query.ts"
import type { Term } from "./terms.ts"

/**
 * Some of the index's conversations, for a row filter. It is valid for the index that created it. `others` are all the rest, as
 * long as the index is at `token`. If the others are fewer, they are excluded instead; a user who may see everything queries
 * without a filter.
 */
export type IndexScope = {
  readonly ids: readonly number[]
  readonly others: readonly number[]
  readonly token: string | undefined
  /** Computes scores and counts within the scope. Only a hub has members who may not see everything. */
  readonly part?: ScopedPart
}

export type ScopedPart = {
  find(db: Db, query: IndexQuery, prepared: PreparedQuery): IndexHit[] | undefined
  sizes(db: Db, terms: Term[], scope: IndexScope): IndexSizes | undefined
  oldestOfNewest(db: Db, newest: number, scope: IndexScope): number | undefined
}

/** Looks up conversations by their names in the history's feed. Caches all names until the index changes. */
export function createScopes(): (db: Db, names: ReadonlySet<string>) => IndexScope {
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

/** Restricts a query to a scope. */
export function scopeSql(
  db: Db,
  { ids, others, token }: IndexScope,
  chosen: number[] | undefined,
  excluded: number[],
): { conversations: readonly number[] | undefined; excluded: readonly number[] } {
  if (chosen) {
    const within = new Set(ids)
    return { conversations: chosen.filter((id) => within.has(id)), excluded }
  }
  return others.length < ids.length && savedToken(db) === token
    ? { conversations: undefined, excluded: [...excluded, ...others] }
    : { conversations: ids, excluded }
}
