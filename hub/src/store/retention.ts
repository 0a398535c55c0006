import { recordAudit } from "./audit.ts"
import type { Database, Query } from "./connection.ts"
import { requireProject } from "./people.ts"
import { tombstoneOf } from "./push.ts"
import { tenantKeyOf } from "./tenant.ts"

/** The number of conversations per transaction, so that pushes wait only for a moment. */
const CONVERSATIONS_PER_TRANSACTION = 100

type ExpiredConversation = { id: number; author: number; source: string; native_id: string }

/**
 * Forgets a tenant's conversations that have exceeded their project's retention period, even if their authors have left. The
 * database decides which ones these are. Returns the number of forgotten conversations.
 */
export async function forgetExpired(db: Database, tenant: number): Promise<number> {
  let total = 0
  for (;;) {
    const forgotten = await db.asIndex(tenant, async (query) => {
      const rows = await query<ExpiredConversation>("select id, author, source, native_id from hub.expired($1)", [
        CONVERSATIONS_PER_TRANSACTION,
      ])
      if (rows.length === 0) return 0
      const key = await tenantKeyOf(db, query)
      const hashes = rows.map(({ author, source, native_id }) => tombstoneOf(key, author, { source, id: native_id }))
      const [row] = await query<{ n: number }>("select hub.forget_expired($1, $2) as n", [
        rows.map(({ id }) => id),
        hashes,
      ])
      return row!.n
    })
    total += forgotten
    if (forgotten === 0) return total
  }
}

/** Sets how long a project keeps conversations. Without `days`, it keeps everything. */
export async function setRetention(query: Query, tenant: number, key: string, days: number | undefined): Promise<void> {
  await requireProject(query, tenant, key)
  await query("update hub.project set retention_days = $3 where tenant = $1 and key = $2", [tenant, key, days ?? null])
  await recordAudit(query, { tenant }, { action: "keep", target: key, detail: { days: days ?? "forever" } })
}
