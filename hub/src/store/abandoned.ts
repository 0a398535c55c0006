import type { Query } from "./connection.ts"
import type { Keyring } from "./keyring.ts"
import { asOwner } from "./owner.ts"
import { SEAL_PURPOSES, type SealedHead, unsealJson } from "./sealed.ts"

// A plan gives a conversation a row and a key before its content arrives, and chunks arrive before a commit names them. If no
// commit follows, all of these have to be removed.

/** The number of days after a plan until unfinished data is removed. */
const MAX_IDLE_DAYS = 7
/** The number of conversations per transaction, so that pushes wait only for a moment. */
const CONVERSATIONS_PER_TRANSACTION = 100

/** The condition that no push of the conversation was planned recently. */
const IS_IDLE = "coalesce(planned_at, received_at) < $1::timestamptz - make_interval(days => $2)"
const SELECT_ABANDONED = `select id from hub.conversation where rev = 0 and ${IS_IDLE} for update skip locked`

/**
 * Removes conversations that were planned more than a week ago and never committed. A client that returns must plan again.
 * Returns the number of removed conversations.
 */
export async function removeAbandoned(owner: string, now = new Date()): Promise<number> {
  return asOwner(owner, async (query) => {
    const ids = (await query<{ id: number }>(SELECT_ABANDONED, [now, MAX_IDLE_DAYS])).map(({ id }) => id)
    await query("delete from hub_key.conversation_key where conversation = any ($1)", [ids])
    await query("delete from hub.chunk where conversation = any ($1)", [ids])
    await query("delete from hub.conversation where id = any ($1)", [ids])
    return ids.length
  })
}

/** A commit removes chunks that it does not name, so only chunks that arrived after the last commit can be left over. */
const SELECT_WITH_LATER_CHUNKS = `select c.tenant, c.id, c.head, k.wrapped, t.slug, t.wrapped_key from hub.conversation c
  join hub_key.conversation_key k on k.tenant = c.tenant and k.conversation = c.id join hub.tenant t on t.id = c.tenant
  where c.rev > 0 and ${IS_IDLE} and c.id > $3 and exists (select from hub.chunk later
    where later.tenant = c.tenant and later.conversation = c.id and later.stored_at > c.received_at
      and later.stored_at < $1::timestamptz - make_interval(days => $2))
  order by c.id limit $4 for update of c skip locked`
const REMOVE_UNNAMED = `delete from hub.chunk where tenant = $1 and conversation = $2 and hash <> all ($3)
  and stored_at < $4::timestamptz - make_interval(days => $5) returning hash`

type Candidate = { tenant: number; id: number; head: Buffer; wrapped: Buffer; slug: string; wrapped_key: Buffer }

/** Removes chunks that no revision names, a week after they arrived. Returns the number of removed chunks. */
export async function removeUnnamedChunks(owner: string, keys: Keyring, now = new Date()): Promise<number> {
  let removed = 0
  for (let afterId: number | undefined = 0; afterId !== undefined; )
    afterId = await asOwner(owner, async (query) => {
      const candidates: Candidate[] = await query<Candidate>(SELECT_WITH_LATER_CHUNKS, [
        now,
        MAX_IDLE_DAYS,
        afterId,
        CONVERSATIONS_PER_TRANSACTION,
      ])
      for (const candidate of candidates) removed += await removeFrom(query, keys, candidate, now)
      return candidates.at(-1)?.id
    })
  return removed
}

/** The caller has locked the row, so no commit is in progress. */
async function removeFrom(query: Query, keys: Keyring, candidate: Candidate, now: Date): Promise<number> {
  const key = keys.tenantKey(candidate).conversationKey(candidate.wrapped)
  const { chunks } = unsealJson<SealedHead>(key, candidate.head, `${SEAL_PURPOSES.head} ${candidate.id}`)
  const namedHashes = chunks.map((hash) => Buffer.from(hash, "hex"))
  return (await query(REMOVE_UNNAMED, [candidate.tenant, candidate.id, namedHashes, now, MAX_IDLE_DAYS])).length
}
