import type { IndexScope } from "../../../src/store/index/index-scope.ts"
import { scopedIndex } from "../../../src/store/index/scoped.ts"
import { readIndex, type SearchIndex } from "../../../src/store/index/search-index.ts"
import type { Knowledge } from "../../../src/store/knowledge/knowledge.ts"
import { createRecentCache } from "../recent.ts"
import { fileIdentity, type ShardName, shardFile } from "./files.ts"
import { linesFile, readShardLines } from "./lines.ts"

/**
 * The part of a shard that a member may read. `version` changes whenever that part does. This thread counts the versions, or if
 * `by` is set, that thread of another node. Without `names`, the scope can be used only while it is cached.
 */
export type ShardScope = {
  of: { member: number }
  by?: string
  version: number
  names?: ReadonlySet<string> | readonly string[]
}

/** The maximum number of conversations in all cached scopes together, for all members and shards. */
const MAX_CACHED_NAMES = 2_000_000

type CachedScope = { version: number; index: SearchIndex; followed: string | undefined; scope: IndexScope }

/** How often to check for deleted files, in milliseconds. The disk space of a deleted file is not freed while it is open. */
const SWEEP_MS = 10_000

/** This node's shards, opened for reading. */
export function openLocalShards(data: string) {
  const indexes = createFileCache<SearchIndex>()
  const knowledgeFiles = createFileCache<Knowledge>()
  const scopes = createRecentCache<CachedScope>(
    MAX_CACHED_NAMES,
    ({ scope }) => scope.ids.length + scope.others.length + 1,
  )
  const indexOf = (name: ShardName): SearchIndex | undefined => {
    const path = shardFile(data, name)
    return indexes.get(path, () => {
      const index = readIndex(path)
      return typeof index === "string" ? undefined : index
    })
  }
  const sweepTimer = setInterval(() => {
    indexes.closeGone()
    knowledgeFiles.closeGone()
  }, SWEEP_MS).unref()
  return {
    /**
     * Returns undefined if there is no index yet, and "scope" if the names are needed. Without a scope, opens the complete index.
     */
    open: async (name: ShardName, wanted: ShardScope | undefined): Promise<SearchIndex | "scope" | undefined> => {
      const index = indexOf(name)
      if (!index || !wanted) return index
      const followed = await index.followed()
      const key = [name.tenant, name.shard, wanted.of.member, wanted.by].join(" ")
      const cached = scopes.get(key)
      if (cached?.version === wanted.version && cached.index === index && cached.followed === followed)
        return scopedIndex(index, cached.scope)
      if (!wanted.names) return "scope"
      const scope = await index.scope(new Set(wanted.names))
      scopes.set(key, { version: wanted.version, index, followed, scope })
      return scopedIndex(index, scope)
    },
    /** Who wrote which line. Undefined if nothing was derived yet. */
    lines: (name: ShardName): Knowledge | undefined => {
      const path = shardFile(data, name)
      return knowledgeFiles.get(linesFile(path), () => readShardLines(path))
    },
    close: () => {
      clearInterval(sweepTimer)
      indexes.close()
      knowledgeFiles.close()
    },
  }
}

/** Opens each file once, and again if another file has replaced it. */
function createFileCache<T extends { close(): void }>() {
  const files = new Map<string, { identity: string | undefined; opened: T; isGone?: boolean }>()
  return {
    get: (path: string, open: () => T | undefined): T | undefined => {
      const identity = fileIdentity(path)
      const cachedFile = files.get(path)
      if (cachedFile && cachedFile.identity === identity) return cachedFile.opened
      cachedFile?.opened.close()
      files.delete(path)
      const opened = open()
      if (opened) files.set(path, { identity, opened })
      return opened
    },
    /** Closes files that were already missing the last time: a file that is being replaced is missing for a moment. */
    closeGone: () => {
      for (const [path, file] of files) {
        const wasGone = file.isGone === true
        file.isGone = file.identity !== undefined && fileIdentity(path) === undefined
        if (!wasGone || !file.isGone) continue
        file.opened.close()
        files.delete(path)
      }
    },
    close: () => {
      for (const { opened } of files.values()) opened.close()
    },
  }
}
