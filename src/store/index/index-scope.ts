import type { Db } from "../sqlite/database.ts"
import { rowQuery } from "../sqlite/typed-query.ts"
import { tokenOf } from "./follow-marks.ts"
import type { IndexHit, IndexQuery, PreparedQuery, Sizes } from "./query.ts"
import type { Term } from "./terms.ts"

/**
 * Some of the index's conversations, for a row filter: made by the index that is then asked. `others` are all the rest, as long as the
 * index stands at `token`: where they are fewer, they are left out instead, and who may see all of it asks as if there were no filter.
 */
export type IndexScope = {
  readonly ids: readonly number[]
  readonly others: readonly number[]
  readonly token: string | undefined
  /** Who computes numbers within it. Only a hub has members who may not see everything. */
  readonly part?: ScopedPart
}

export type ScopedPart = {
  find(db: Db, query: IndexQuery, prepared: PreparedQuery): IndexHit[] | undefined
  sizes(db: Db, terms: Term[], scope: IndexScope): Sizes | undefined
  oldestOfNewest(db: Db, newest: number, scope: IndexScope): number | undefined
}

/** Looks up conversations by their names in the history's feed. All names are kept for as long as the index stands where it did. */
export function createScopes(): (db: Db, names: ReadonlySet<string>) => IndexScope {
  let kept: { db: Db; token: string | undefined; all: { id: number; name: string }[] } | undefined
  return (db, names) => {
    const token = tokenOf(db)
    if (kept?.db !== db || kept.token !== token) {
      const all = rowQuery(db, "select id, name from conversation", { id: "integer", name: "text" }).all()
      kept = { db, token, all }
    }
    const ids: number[] = []
    const others: number[] = []
    for (const { id, name } of kept.all) (names.has(name) ? ids : others).push(id)
    return { ids, others, token }
  }
}

/** False where the scope is all that the index contains. */
export function leavesOut(db: Db, { others, token }: IndexScope): boolean {
  return others.length > 0 || tokenOf(db) !== token
}

/** What is asked for, within a scope. */
export function inScope(
  db: Db,
  { ids, others, token }: IndexScope,
  chosen: number[] | undefined,
  excluded: number[],
): { conversations: readonly number[] | undefined; excluded: readonly number[] } {
  if (chosen) {
    const within = new Set(ids)
    return { conversations: chosen.filter((id) => within.has(id)), excluded }
  }
  return others.length < ids.length && tokenOf(db) === token
    ? { conversations: undefined, excluded: [...excluded, ...others] }
    : { conversations: ids, excluded }
}
