import type { Database } from "./connection.ts"
import { SEAL_PURPOSES, type SealedHead, unsealJson } from "./sealed.ts"
import { tenantKeyOf } from "./tenant.ts"

// A plan gives a conversation a row and a key before its content arrives, and chunks arrive before a commit names them. If no
// commit follows within a week, all of these have to be removed.

/** The number of conversations per transaction, so that pushes wait only for a moment. */
const CONVERSATIONS_PER_TRANSACTION = 100

/** Removes conversations that were planned and never committed. A client that returns must plan again. Returns how many. */
export async function removeAbandoned(db: Database, tenant: number): Promise<number> {
  let total = 0
  for (;;) {
    const [row] = await db.asIndex(tenant, (query) => query<{ n: number }>("select hub.remove_abandoned() as n"))
    if (row!.n === 0) return total
    total += row!.n
  }
}

type LeftOver = { id: number; rev: number; head: Buffer; wrapped: Buffer }

/** Removes chunks that no revision names. Returns the number of removed chunks. */
export async function removeUnnamedChunks(db: Database, tenant: number): Promise<number> {
  let removed = 0
  for (let afterId: number | undefined = 0; afterId !== undefined; )
    afterId = await db.asIndex(tenant, async (query) => {
      const key = await tenantKeyOf(db, query)
      const rows: LeftOver[] = await query<LeftOver>("select id, rev, head, wrapped from hub.with_left_over($1, $2)", [
        afterId,
        CONVERSATIONS_PER_TRANSACTION,
      ])
      for (const { id, rev, head, wrapped } of rows) {
        const purpose = `${SEAL_PURPOSES.head} ${id}`
        const { chunks } = unsealJson<SealedHead>(key.conversationKey(wrapped), head, purpose)
        const named = chunks.map((hash) => Buffer.from(hash, "hex"))
        const [row] = await query<{ n: number }>("select hub.remove_left_over($1, $2, $3) as n", [id, rev, named])
        removed += row!.n
      }
      return rows.at(-1)?.id
    })
  return removed
}
