import type { Database } from "./connection.ts"

/** How far each tenant is. A counter is all that is told of them. */
export async function feeds(db: Database): Promise<{ tenant: number; seq: number }[]> {
  return db.asIndex(0, (query) => query("select tenant, seq from hub.feed order by tenant"))
}
