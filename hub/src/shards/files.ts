import { mkdirSync } from "node:fs"
import { join } from "node:path"

/** Where a tenant's shard is: one tenant, one folder, so that nothing of one can come up in another's. */
export function shardFile(data: string, tenant: number): string {
  const folder = join(data, `tenant-${tenant}`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return join(folder, "index.db")
}
