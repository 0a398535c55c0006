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
 * Identifies the file. Changes if the file was removed and created again: a process that still has it open reads a deleted file.
 */
export function fileIdentity(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats && `${stats.ino} ${stats.birthtimeMs}`
}
