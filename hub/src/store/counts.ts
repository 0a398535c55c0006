import type { Database, Query } from "./connection.ts"
import { feeds } from "./feeds.ts"
import { countsIn } from "./push.ts"
import { type MessageFacts, SEAL_PURPOSES, type SealedHead, unsealJson } from "./sealed.ts"
import { tenantKeyOf } from "./tenant.ts"

/** The highest plausible number of messages in a conversation. It is checked because earlier hubs trusted the clients' counts. */
const MAX_COUNT = 1_000_000
const IS_WRONG = `rev > 0 and (message_count not between 0 and ${MAX_COUNT} or copied_count not between 0 and message_count
  or estimated_tokens < 0 or text_bytes < 0)`
const COUNT_WRONG = `select count(*) as wrong from hub.conversation where tenant = $1 and ${IS_WRONG}`

export async function countProblems(db: Database, tenant: number): Promise<string[]> {
  const [row] = await db.asIndex(tenant, (query) => query<{ wrong: number }>(COUNT_WRONG, [tenant]))
  const { wrong } = row!
  if (wrong === 0) return []
  const subject = wrong === 1 ? "One conversation" : `${wrong} conversations`
  const verb = wrong === 1 ? "has" : "have"
  return [`${subject} of tenant ${tenant} ${verb} impossible counts. Run: dex-hub recount`]
}

const SELECT_WRONG = `select c.id, c.head, k.wrapped from hub.conversation c
  join hub_key.conversation_key k on k.tenant = c.tenant and k.conversation = c.id where c.tenant = $1 and ${IS_WRONG}`
const CORRECT_COUNTS = `update hub.conversation set message_count = $3, copied_count = $4,
  estimated_tokens = greatest(estimated_tokens, 0), text_bytes = greatest(text_bytes, 0) where tenant = $1 and id = $2`

type WrongCount = { id: number; head: Buffer; wrapped: Buffer }

/** Corrects impossible counts from the chunks. `query` runs as the owner of the tables. Returns the number of corrections. */
export async function recount(db: Database, query: Query): Promise<number> {
  let corrected = 0
  for (const { tenant } of await feeds(db)) {
    await query("select set_config('hub.tenant', $1, true)", [String(tenant)])
    const key = await tenantKeyOf(db, query)
    for (const row of await query<WrongCount>(SELECT_WRONG, [tenant])) {
      const { messages, copied } = await countFromChunks(query, tenant, row, key.conversationKey(row.wrapped))
      await query(CORRECT_COUNTS, [tenant, row.id, messages, copied])
      corrected++
    }
  }
  return corrected
}

async function countFromChunks(query: Query, tenant: number, { id, head }: WrongCount, key: Buffer) {
  const { chunks } = unsealJson<SealedHead>(key, head, `${SEAL_PURPOSES.head} ${id}`)
  const rows = await query<{ facts: Buffer }>(
    "select facts from hub.chunk where tenant = $1 and conversation = $2 and encode(hash, 'hex') = any ($3)",
    [tenant, id, chunks],
  )
  return countsIn(rows.flatMap(({ facts }) => unsealJson<MessageFacts[]>(key, facts, `${SEAL_PURPOSES.facts} ${id}`)))
}
