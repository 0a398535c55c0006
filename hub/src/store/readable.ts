import { createRecentCache } from "../recent.ts"
import type { Database, Viewer } from "./connection.ts"
import { MEMBER_SCOPE, TENANT } from "./scope.ts"

/** The names (as in the feed) of the conversations that a member may read, by shard. `version` changes whenever they do. */
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
const READABLE_AMONG = `select id, ${SHARD} from hub.conversation where ${MEMBER_SCOPE} and id = any ($1)`
const CHANGED = `select distinct conversation as id from hub.change where tenant = ${TENANT} and seq > $1`

/** The maximum number of names in the cache, for all members together. A member may be able to read all of a tenant. */
const MAX_NAMES = 500_000

/** Caches what each member may read. Each call reads only what has changed since the previous one. */
export function createReadable(db: Database): (viewer: Viewer) => Promise<ReadableConversations> {
  const cache = createRecentCache<Cached>(MAX_NAMES, ({ shards }) =>
    shards.values().reduce((sum, names) => sum + names.size, 1),
  )
  let versions = 0
  return async (viewer) => {
    const key = `${viewer.tenant} ${viewer.member}`
    const cached = cache.get(key)
    const current = await db.as(
      viewer,
      async (query) => (await query<{ seq: number; grants: string }>(GRANTS, [viewer.member]))[0]!,
    )
    if (cached && cached.seq === current.seq && cached.grants === current.grants) return cached
    const shards = cached && cached.grants === current.grants ? cached.shards : new Map<number, Set<string>>()
    const add = ({ id, shard }: ConversationShard) => {
      if (!shards.has(shard)) shards.set(shard, new Set())
      shards.get(shard)!.add(String(id))
    }
    if (shards === cached?.shards) {
      // Conversations may have become hidden, so the list of changes, which is only numbers, is read without the access check.
      const rows = await db.asIndex(viewer.tenant, (query) => query<{ id: number }>(CHANGED, [cached!.seq]))
      const changedIds = rows.map(({ id }) => id)
      const stillReadable = await db.as(viewer, (query) => query<ConversationShard>(READABLE_AMONG, [changedIds]))
      for (const names of shards.values()) for (const id of changedIds) names.delete(String(id))
      for (const row of stillReadable) add(row)
      for (const [shard, names] of shards) if (names.size === 0) shards.delete(shard)
    } else for (const row of await db.as(viewer, (query) => query<ConversationShard>(ALL))) add(row)
    const updated = { ...current, shards, version: ++versions }
    cache.set(key, updated)
    return updated
  }
}
