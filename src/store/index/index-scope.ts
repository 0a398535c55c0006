import { type Ref, sourceWithOwner } from "../../core/ref.ts"
import type { Db } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { savedToken } from "./follow-marks.ts"
import type { IndexHit, IndexQuery, IndexSizes, PreparedQuery } from "./query.ts"
import type { Term } from "./terms.ts"

/** The rights of a member of a team, in terms of the columns of `access`. */
export type MemberAccess = {
  author: number
  /** Whether they may read what is shared with the organisation. */
  org: boolean
  projects: readonly number[]
  /** Conversations that they may read nevertheless, by their names in the history's feed. */
  opened: readonly string[]
  /** Conversations that they may no longer read, although the index does not know that yet. */
  withdrawn: readonly string[]
}

/** The conversations to which a query is restricted. Valid only for the index that created it. */
export type IndexScope = {
  /** Conversations that are left out. */
  readonly others: readonly number[]
  /** The newest conversation of the index when the scope was created. Later ones are left out too. */
  readonly last?: number
  /** Set for a member of a team: the parameters of ACCESS_SQL. */
  readonly access?: { author: number; org: 0 | 1; projects: string; opened: string }
  /** The documents in the scope, newest first, if they are few. It is faster to look for them than to check each one that matches. */
  readonly docs?: readonly number[]
  /** The index's position in the feed when the documents were listed. Later, an id may belong to another document. */
  readonly listedAt?: string
  /** The index's position in the feed if the scope leaves out nothing there. */
  readonly completeAt?: string
  /** Computes scores and counts within the scope. */
  readonly part?: ScopedPart
}

export type ScopedPart = {
  find(db: Db, query: IndexQuery, prepared: PreparedQuery): IndexHit[] | undefined
  sizes(db: Db, terms: Term[], scope: IndexScope): IndexSizes | undefined
  oldestOfNewest(db: Db, newest: number, scope: IndexScope): number | undefined
}

/**
 * The condition for a row of `access` or `access_total`, as `a`, that a member of a team may read. The hub's scope.ts has the same
 * condition for PostgreSQL.
 */
const SHARED_SQL =
  "((a.visibility = 2 and @org) or (a.visibility > 0 and a.project in (select value from json_each(@projects))))"
export const ACCESS_SQL = `(a.author = @author or ${SHARED_SQL})`
const SELECT_TOTAL = "select ifnull(sum(messages), 0) from project_total"
/** Messages that others share are summed by project, because there are many more pairs of an author and a project than projects. */
const SELECT_READABLE_TOTAL = `select ifnull((select sum(messages) from project_total a where ${SHARED_SQL}), 0)
  + ifnull((select sum(messages) from access_total a where a.author = @author and not ${SHARED_SQL}), 0)
  + ifnull((select sum(messages) from access a where not ${ACCESS_SQL} and conversation in (select value from json_each(@opened))), 0)
  - ifnull((select sum(messages) from access a where conversation in (select value from json_each(@others))
      and (${ACCESS_SQL} or conversation in (select value from json_each(@opened)))), 0)`
const SELECT_OTHERS_TOTAL =
  "select (select count(*) from doc) - (select count(*) from doc where conversation_id in (select value from json_each(?)))"

/** How many scopes of one state of the index are kept: those of the members who search at the same time. */
const MAX_KEPT_SCOPES = 100

/** Creates scopes. Returns the same scope for the same input while the index is the same, because each has cached statistics. */
export function createScopes() {
  let kept: { db: Db; token: string | undefined; scopes: Map<string, IndexScope> } | undefined
  const keptOr = (db: Db, input: unknown, create: () => IndexScope): IndexScope => {
    const token = savedToken(db)
    if (kept?.db !== db || kept.token !== token || kept.scopes.size >= MAX_KEPT_SCOPES)
      kept = { db, token, scopes: new Map() }
    const key = JSON.stringify(input)
    const scope = kept.scopes.get(key) ?? create()
    kept.scopes.set(key, scope)
    return scope
  }
  return {
    /** All conversations that a member of a team may read. */
    scopeOf: (db: Db, access: MemberAccess, listAtMost = MAX_LISTED): IndexScope =>
      keptOr(db, access, () => {
        const scope: IndexScope = {
          others: idsNamed(db, access.withdrawn),
          access: {
            author: access.author,
            org: access.org ? 1 : 0,
            projects: JSON.stringify(access.projects),
            opened: JSON.stringify(idsNamed(db, access.opened)),
          },
        }
        const messages = messagesIn(db, scope)
        if (messages === valueQuery(db, SELECT_TOTAL, "integer").get()) return { ...scope, completeAt: savedToken(db) }
        return messages <= listAtMost
          ? {
              ...scope,
              docs: valueQuery(db, SELECT_LISTED, "integer").all(scopeValues(db, scope)),
              listedAt: savedToken(db),
            }
          : scope
      }),
    /** All conversations except these. */
    scopeWithout: (db: Db, excluded: readonly Ref[]): IndexScope => {
      const refs = excluded.map((ref) => [sourceWithOwner(ref), ref.id])
      return keptOr(db, refs, () => ({
        others: valueQuery(db, SELECT_IDS_OF_REFS, "integer").all(JSON.stringify(refs)),
        last: valueQuery(db, "select max(id) from conversation", "integer?").get() ?? 0,
      }))
    },
  }
}

const SELECT_IDS_OF_REFS = `select c.id from json_each(?) r join conversation c on c.source = r.value ->> 0 and c.native_id = r.value ->> 1`
const SELECT_IDS_NAMED = "select id from conversation where name in (select value from json_each(?))"

function idsNamed(db: Db, names: readonly string[]): number[] {
  return names.length === 0 ? [] : valueQuery(db, SELECT_IDS_NAMED, "integer").all(JSON.stringify(names))
}

/** The maximum number of documents that are listed for a scope. */
const MAX_LISTED = 20_000

const SELECT_LISTED = `select d.id from
  (select conversation from access where author = @author
    union select conversation from access where visibility = 2 and @org
    union select a.conversation from json_each(@projects) p join access a on a.project = p.value where a.visibility > 0
    union select value from json_each(@opened)) one
  join doc d on d.conversation_id = one.conversation
  where @excluded is null or d.conversation_id not in (select value from json_each(@excluded)) order by d.id`

/** The number of messages in a scope. */
export function messagesIn(db: Db, { others, access }: IndexScope): number {
  return access
    ? valueQuery(db, SELECT_READABLE_TOTAL, "integer").get({ ...access, others: JSON.stringify(others) })!
    : valueQuery(db, SELECT_OTHERS_TOTAL, "integer").get(JSON.stringify(others))!
}

/** Returns false if the scope includes everything in the index. */
export function excludesAny(db: Db, { completeAt }: IndexScope): boolean {
  return completeAt === undefined || savedToken(db) !== completeAt
}

/** The parameters of SCOPE_SQL, and the list of documents. Those that are null restrict nothing. */
export type ScopeValues = Record<"docs" | "excluded" | "projects" | "opened", string | null> &
  Record<"last" | "author" | "org", number | null>

const NO_SCOPE: ScopeValues = {
  ...{ docs: null, excluded: null, last: null },
  ...{ author: null, org: null, projects: null, opened: null },
}

/** The condition for a document, as `d`, of a conversation in a scope. */
export const SCOPE_SQL = `(@excluded is null or d.conversation_id not in (select value from json_each(@excluded)))
  and (@last is null or d.conversation_id <= @last)
  and (@author is null or exists (select 1 from access a where a.conversation = d.conversation_id
    and (${ACCESS_SQL} or a.conversation in (select value from json_each(@opened)))))`

/** Returns the parameters that restrict a query to a scope, without these conversations. */
export function scopeValues(db: Db, scope: IndexScope | undefined, excluded: readonly number[] = []): ScopeValues {
  const { others = [], last = null, access, docs, listedAt } = scope && excludesAny(db, scope) ? scope : {}
  if (docs && savedToken(db) === listedAt) {
    const listed = excluded.length > 0 ? JSON.stringify(excluded) : null
    return { ...NO_SCOPE, docs: JSON.stringify(docs), excluded: listed }
  }
  const leftOut = [...excluded, ...others]
  return { ...NO_SCOPE, last, ...access, excluded: leftOut.length > 0 ? JSON.stringify(leftOut) : null }
}
