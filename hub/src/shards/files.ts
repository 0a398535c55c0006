import { statSync } from "node:fs"
import { join } from "node:path"

export type ShardName = { tenant: number; shard: number }

/** Where a shard is: one shard, one folder, so that nothing of one tenant can come up in another's. */
export function shardFolder(data: string, { tenant, shard }: ShardName): string {
  return join(data, shard === 0 ? `tenant-${tenant}` : `tenant-${tenant}-shard-${shard}`)
}

export function shardFile(data: string, name: ShardName): string {
  return join(shardFolder(data, name), "index.db")
}

/** Another one where the file was removed and made again: whoever has it open reads what is gone. */
export function fileIdentity(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats && `${stats.ino} ${stats.birthtimeMs}`
}
