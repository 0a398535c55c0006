import { statSync } from "node:fs"
import { join } from "node:path"

export type ShardName = { tenant: number; shard: number }

/** Each shard has its own folder, so that one tenant's data can never appear in another's. */
export function shardFolder(data: string, { tenant, shard }: ShardName): string {
  return join(data, shard === 0 ? `tenant-${tenant}` : `tenant-${tenant}-shard-${shard}`)
}

export function shardFile(data: string, name: ShardName): string {
  return join(shardFolder(data, name), "index.db")
}

/**
 * Identifies a file. The identity changes if the file is removed and created again. A process that still has the old file open
 * must open it again.
 */
export function fileIdentity(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats && `${stats.ino} ${stats.birthtimeMs}`
}
