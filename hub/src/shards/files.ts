import { mkdirSync } from "node:fs"
import { join } from "node:path"

export type ShardName = { tenant: number; shard: number }

/** Where a shard is: one shard, one folder, so that nothing of one tenant can come up in another's. */
export function shardFolder(data: string, { tenant, shard }: ShardName): string {
  return join(data, shard === 0 ? `tenant-${tenant}` : `tenant-${tenant}-shard-${shard}`)
}

export function shardFile(data: string, name: ShardName): string {
  const folder = shardFolder(data, name)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return join(folder, "index.db")
}
