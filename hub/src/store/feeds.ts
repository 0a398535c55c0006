import type { Database } from "./connection.ts"
import { TENANT } from "./scope.ts"

/** Whether anything was ever pushed. */
export async function hasHistory(db: Database, tenant: number): Promise<boolean> {
  return db.asIndex(tenant, async (query) => (await query(PUSHED)).length > 0)
}

const PUSHED = `select from hub.feed where tenant = ${TENANT} and seq > 0`

/** How far each tenant is. A counter is all that is told of them. */
export async function feeds(db: Database): Promise<{ tenant: number; seq: number }[]> {
  return db.asIndex(0, (query) => query("select tenant, seq from hub.feed order by tenant"))
}
