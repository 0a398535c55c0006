import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { openIndex, type SearchIndex } from "../../../src/store/index/search-index.ts"
import type { Database } from "../store/connection.ts"
import { type Feed, feeds } from "../store/feeds.ts"
import { openFollowedHistory } from "../store/history.ts"
import { createLineDeriver } from "../store/lines.ts"
import { tenantFolder, tenantIndexFile } from "./fts5.ts"

/** How long one tenant's index is updated before the others get a turn, in milliseconds. */
const TURN_MS = 2_000
/**
 * How many bytes of text are read and indexed together. Batches are limited by size, because batches of 64 conversations of any
 * length made a hub use 70 to 90 MB more memory.
 */
const MAX_BYTES = 2_000_000

export type TenantLag = { tenant: number; lag: number }

export type Follower = {
  /** Brings the index of every tenant up to date, or a step closer. Returns true if nothing is left to do. */
  step(): Promise<boolean>
  /** How many changes each index was behind its tenant's feed after the last step. */
  lags(): TenantLag[]
  /** Whether there is an index for every tenant. */
  isBuilt(): Promise<boolean>
  close(): void
}

/** The only writer of this hub's indexes. A new index is built beside its place, and moved there when it is complete. */
export function createFollower(db: Database, data: string): Follower {
  const indexes = new Map<number, FollowedIndex>()
  const lines = createLineDeriver(db)
  let lags: TenantLag[] = []
  const pathOf = (tenant: number) => tenantIndexFile(data, tenant)
  const buildingPathOf = (tenant: number) => `${pathOf(tenant)}.new`
  const openedIndex = (tenant: number): FollowedIndex => {
    const path = pathOf(tenant)
    const isBuilding = !existsSync(path)
    const opened = indexes.get(tenant)
    if (opened && opened.isBuilding === isBuilding) return opened
    opened?.index.close()
    mkdirSync(tenantFolder(data, tenant), { recursive: true, mode: 0o700 })
    // Also after a restart, because the hub may have been stopped between building the index and this.
    if (!isBuilding) removeShards(data, tenant)
    const index = openIndex(isBuilding ? buildingPathOf(tenant) : path)
    const followed = { index, seq: 0, isBuilding }
    indexes.set(tenant, followed)
    return followed
  }
  const finishBuilding = (tenant: number, { index }: FollowedIndex) => {
    index.checkpoint()
    index.close()
    indexes.delete(tenant)
    renameSync(buildingPathOf(tenant), pathOf(tenant))
  }
  /** Deletes the index of a tenant whose words are only in a cluster now. */
  const remove = (tenant: number) => {
    indexes.get(tenant)?.index.close()
    indexes.delete(tenant)
    rmSync(tenantFolder(data, tenant), { recursive: true, force: true })
  }
  const follow = async ({ tenant, seq, position }: Feed): Promise<boolean> => {
    const followed = openedIndex(tenant)
    const { index, isBuilding } = followed
    if (followed.position === position) return true
    const history = openFollowedHistory(db, tenant)
    const { complete } = await index.follow(history, { deadline: Date.now() + TURN_MS, maxBatchBytes: MAX_BYTES })
    if (!complete) return false
    // The index must not contain a word of a forgotten conversation.
    if (await index.isPurgeDue(history)) await index.purge(history)
    if (isBuilding) finishBuilding(tenant, followed)
    Object.assign(openedIndex(tenant), { seq, position })
    return true
  }
  return {
    step: async () => {
      const all = await feeds(db)
      for (const { tenant, in_files } of all) if (!in_files) remove(tenant)
      for (const tenant of tenantsWithFiles(data)) if (!all.some((feed) => feed.tenant === tenant)) remove(tenant)
      const tenants = all.filter(({ in_files }) => in_files)
      let isDone = true
      for (const feed of tenants) isDone = (await follow(feed)) && isDone
      lags = tenants.map(({ tenant, seq }) => ({ tenant, lag: seq - (indexes.get(tenant)?.seq ?? 0) }))
      // The words come first. Several hubs share the work of deriving lines, which are in PostgreSQL.
      return isDone && (await lines.step(Date.now() + TURN_MS))
    },
    lags: () => lags,
    isBuilt: async () =>
      (await feeds(db)).every(({ tenant, in_files, leaving }) => !in_files || leaving || existsSync(pathOf(tenant))),
    close: () => {
      for (const { index } of indexes.values()) index.close()
    },
  }
}

/** The feed's number and position at the last change in the index; no position if that is not known yet. */
type FollowedIndex = { index: SearchIndex; seq: number; position?: string; isBuilding: boolean }

/** The tenants that have a folder, also those that no longer exist. */
function tenantsWithFiles(data: string): number[] {
  return (existsSync(data) ? readdirSync(data) : []).flatMap((name) => {
    const [, tenant] = /^team-(\d+)$/.exec(name) ?? []
    return tenant === undefined ? [] : [Number(tenant)]
  })
}

/** Deletes the search shards in which an older hub kept a tenant's words. */
function removeShards(data: string, tenant: number): void {
  for (const name of readdirSync(data))
    if (name === `tenant-${tenant}` || name.startsWith(`tenant-${tenant}-shard-`))
      rmSync(join(data, name), { recursive: true, force: true })
}
