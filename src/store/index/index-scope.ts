import { type Ref, sourceWithOwner } from "../../core/ref.ts"
import type { Db } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"
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
  /** Computes scores and counts within the scope. */
  readonly part?: ScopedPart
}

export type ScopedPart = {
  find(db: Db, query: IndexQuery, prepared: PreparedQuery): IndexHit[] | undefined
  sizes(db: Db, terms: Term[], scope: IndexScope): IndexSizes | undefined
  oldestOfNewest(db: Db, newest: number, scope: IndexScope): number | undefined
}

/** Creates scopes. Caches the names of all conversations, and the last scope that leaves some out, until the index changes. */
export function createScopes() {
  let cached: { db: Db; token: string | undefined; all: { id: number; name: string }[] } | undefined
  let last: { db: Db; refs: string; scope: IndexScope } | undefined
  return {
    /** The conversations with these names in the history's feed. */
    scopeOf: (db: Db, names: ReadonlySet<string>): IndexScope => {
      const token = savedToken(db)
      if (cached?.db !== db || cached.token !== token) {
        const all = rowQuery(db, "select id, name from conversation", { id: "integer", name: "text" }).all()
        cached = { db, token, all }
      }
      const ids: number[] = []
      const others: number[] = []
      for (const { id, name } of cached.all) (names.has(name) ? ids : others).push(id)
      return { ids, others, token }
    },
    /** All conversations except these. As long as they are the same, so is the scope, whose statistics are cached. */
    scopeWithout: (db: Db, excluded: readonly Ref[]): IndexScope => {
      const refs = JSON.stringify(excluded.map((ref) => [sourceWithOwner(ref), ref.id]))
      const token = savedToken(db)
      if (last?.db === db && last.refs === refs && last.scope.token === token) return last.scope
      const others = valueQuery(db, IDS_OF_REFS, "integer").all(refs)
      const ids = valueQuery(db, IDS_EXCEPT, "integer").all(JSON.stringify(others))
      last = { db, refs, scope: { ids, others, token } }
      return last.scope
    },
  }
}

const IDS_OF_REFS = `select c.id from json_each(?) r join conversation c on c.source = r.value ->> 0 and c.native_id = r.value ->> 1`
const IDS_EXCEPT = "select id from conversation where id not in (select value from json_each(?)) order by id"

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
