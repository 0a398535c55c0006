import type { Database, Query } from "./connection.ts"
import type { TenantKey } from "./keyring.ts"
import { TENANT } from "./scope.ts"

/** The key of the transaction's tenant. */
export async function tenantKeyOf(db: Database, query: Query): Promise<TenantKey> {
  const [row] = await query<{ slug: string; wrapped_key: Buffer }>(
    `select slug, wrapped_key from hub.tenant where id = ${TENANT}`,
  )
  if (!row) throw new Error("The transaction names no tenant.")
  return db.keys.tenantKey(row)
}
