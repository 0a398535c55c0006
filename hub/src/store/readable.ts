import { createRecentCache } from "../recent.ts"
import type { Database, Viewer } from "./connection.ts"
import { MEMBER_SCOPE, TENANT } from "./scope.ts"

/** The conversations that a member may read, as the feed calls them, by shard. `version` changes with them. */
export type ReadableConversations = { shards: ReadonlyMap<number, ReadonlySet<string>>; version: number }

type Cached = { seq: number; grants: string; shards: Map<number, Set<string>>; version: number }
type ConversationShard = { id: number; shard: number }

/** Selects everything that grants a member more than their own conversations. If it changes, all conversations are read again. */
const GRANTS = `select coalesce((select seq from hub.feed where tenant = ${TENANT}), 0) as seq, md5(concat(
  (select string_agg(project || level, ',' order by project) from hub.project_grant where tenant = ${TENANT} and member = $1), ';',
  (select string_agg(id::text, ',' order by id) from hub.project where tenant = ${TENANT} and visibility = 'org'), ';',
  (select string_agg(conversation::text, ',' order by conversation) from hub.break_glass where tenant = ${TENANT} and member = $1 and until > now()))) as grants`
const SHARD =
  "(select p.shard from hub.project p where p.tenant = conversation.tenant and p.id = conversation.project) as shard"
const ALL = `select id, ${SHARD} from hub.conversation where ${MEMBER_SCOPE}`
const AMONG = `select id, ${SHARD} from hub.conversation where ${MEMBER_SCOPE} and id = any ($1)`
const CHANGED = `select distinct conversation as id from hub.change where tenant = ${TENANT} and seq > $1`

/** The most names of conversations in the cache, for all members together. Each may have all of a tenant's. */
const MAX_NAMES = 500_000

/** Caches what each member may read, and reads only what changed since. */
export function createReadable(db: Database): (viewer: Viewer) => Promise<ReadableConversations> {
  const kept = createRecentCache<Cached>(MAX_NAMES, ({ shards }) =>
    shards.values().reduce((sum, names) => sum + names.size, 1),
  )
  let versions = 0
  return async (viewer) => {
    const key = `${viewer.tenant} ${viewer.member}`
    const known = kept.get(key)
    const now = await db.as(
      viewer,
      async (query) => (await query<{ seq: number; grants: string }>(GRANTS, [viewer.member]))[0]!,
    )
    if (known && known.seq === now.seq && known.grants === now.grants) return known
    const shards = known && known.grants === now.grants ? known.shards : new Map<number, Set<string>>()
    const add = ({ id, shard }: ConversationShard) => {
      if (!shards.has(shard)) shards.set(shard, new Set())
      shards.get(shard)!.add(String(id))
    }
    if (shards === known?.shards) {
      // What is hidden from the member has changed too, so the list of changes (only numbers) is read without the access check.
      const rows = await db.asIndex(viewer.tenant, (query) => query<{ id: number }>(CHANGED, [known!.seq]))
      const changed = rows.map(({ id }) => id)
      const still = await db.as(viewer, (query) => query<ConversationShard>(AMONG, [changed]))
      for (const names of shards.values()) for (const id of changed) names.delete(String(id))
      for (const row of still) add(row)
      for (const [shard, names] of shards) if (names.size === 0) shards.delete(shard)
    } else for (const row of await db.as(viewer, (query) => query<ConversationShard>(ALL))) add(row)
    const next = { ...now, shards, version: ++versions }
    kept.set(key, next)
    return next
  }
}
