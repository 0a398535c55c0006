import type { Database } from "./connection.ts"
import { TENANT } from "./scope.ts"

export async function hasHistory(db: Database, tenant: number): Promise<boolean> {
  return db.asIndex(tenant, async (query) => (await query(PUSHED)).length > 0)
}

const PUSHED = `select from hub.feed where tenant = ${TENANT} and seq > 0`

/** The current number in each tenant's feed. The transaction can see nothing else of a tenant. */
export async function feeds(db: Database): Promise<{ tenant: number; seq: number }[]> {
  return db.asIndex(0, (query) => query("select tenant, seq from hub.feed order by tenant"))
}
