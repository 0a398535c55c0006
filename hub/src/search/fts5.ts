import { existsSync, statSync } from "node:fs"
import { join } from "node:path"
import { INDEX_FILE } from "../../../src/core/formats.ts"
import { scopedIndex } from "../../../src/store/index/scoped.ts"
import { readIndex, type SearchIndex } from "../../../src/store/index/search-index.ts"
import type { WordEngine } from "./engine.ts"

/** How often to check for deleted files, in milliseconds. The disk space of a deleted file is not freed while it is open. */
const SWEEP_MS = 10_000

/** Each tenant has its own folder, so that one tenant's data can never get into another tenant's files. */
export function tenantFolder(data: string, tenant: number): string {
  return join(data, `team-${tenant}`)
}

/** The index of all of a tenant's conversations. The file exists only if it was complete once. */
export function tenantIndexFile(data: string, tenant: number): string {
  return join(tenantFolder(data, tenant), INDEX_FILE)
}

/**
 * Searches the files of this hub: one FTS5 index for each tenant. If a member may read at most `listAtMost` messages, they are listed
 * instead of checking each one that matches.
 */
export function openFts5(data: string, listAtMost?: number): WordEngine {
  const indexes = new Map<number, { identity: string | undefined; index: SearchIndex }>()
  const close = (tenant: number) => {
    indexes.get(tenant)?.index.close()
    indexes.delete(tenant)
  }
  /** Opens each file once, and again if another file has replaced it. */
  const indexOf = (tenant: number): SearchIndex | undefined => {
    const path = tenantIndexFile(data, tenant)
    const identity = fileIdentity(path)
    const opened = indexes.get(tenant)
    if (opened && opened.identity === identity) return opened.index
    close(tenant)
    const index = readIndex(path)
    if (typeof index === "string") return undefined
    indexes.set(tenant, { identity, index })
    return index
  }
  const sweepTimer = setInterval(() => {
    for (const tenant of indexes.keys()) if (!existsSync(tenantFolder(data, tenant))) close(tenant)
  }, SWEEP_MS).unref()
  return {
    open: async (tenant) => {
      const index = indexOf(tenant)
      if (!index) return undefined
      return {
        followed: seqOf(await index.followed()),
        within: async (access) => scopedIndex(index, await index.scopeOf(access, listAtMost)),
      }
    },
    close: () => {
      clearInterval(sweepTimer)
      for (const tenant of [...indexes.keys()]) close(tenant)
    },
  }
}

/** The number in a token of the feed, which consists of a history and a number. */
export function seqOf(token: string | undefined): number {
  return Number(token?.split("@")[1] ?? 0)
}

/**
 * Identifies a file. The identity changes if the file is removed and created again. A process that still has the old file open
 * must open it again.
 */
function fileIdentity(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats && `${stats.ino} ${stats.birthtimeMs}`
}
