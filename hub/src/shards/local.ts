import type { IndexScope } from "../../../src/store/index/index-scope.ts"
import { scopedIndex } from "../../../src/store/index/scoped.ts"
import { readIndex, type SearchIndex } from "../../../src/store/index/search-index.ts"
import type { Knowledge } from "../../../src/store/knowledge/knowledge.ts"
import { createRecent } from "../recent.ts"
import { fileIdentity, type ShardName, shardFile } from "./files.ts"
import { linesFile, readShardLines } from "./lines.ts"

/**
 * What somebody may read of a shard. `version` changes with it, as whoever computed it counts (`by`, where that is another
 * node). Without names it can be answered only where they are known from before.
 */
export type ShardScope = {
  of: { member: number }
  by?: string
  version: number
  names?: ReadonlySet<string> | readonly string[]
}

/** Conversations in the scopes that are remembered, of all members and shards together. */
const MOST_SCOPED = 2_000_000

type KeptScope = { version: number; index: SearchIndex; followed: string | undefined; scope: IndexScope }

/** So often is looked whether a file is gone: as long as somebody has it open, its place on the disk is not free. */
const SWEEP_MS = 10_000

/** This node's shards, to be asked. */
export function openLocalShards(data: string) {
  const indexes = openedFiles<SearchIndex>()
  const derived = openedFiles<Knowledge>()
  const scopes = createRecent<KeptScope>(MOST_SCOPED, ({ scope }) => scope.ids.length + scope.others.length + 1)
  const indexOf = (name: ShardName): SearchIndex | undefined => {
    const path = shardFile(data, name)
    return indexes.at(path, () => {
      const index = readIndex(path)
      return typeof index === "string" ? undefined : index
    })
  }
  const sweeping = setInterval(() => {
    indexes.closeGone()
    derived.closeGone()
  }, SWEEP_MS).unref()
  return {
    /** Undefined while there is none. Without a scope, all of it. */
    open: async (name: ShardName, wanted: ShardScope | undefined): Promise<SearchIndex | "scope" | undefined> => {
      const index = indexOf(name)
      if (!index || !wanted) return index
      const followed = await index.followed()
      const key = [name.tenant, name.shard, wanted.of.member, wanted.by].join(" ")
      const known = scopes.get(key)
      if (known?.version === wanted.version && known.index === index && known.followed === followed)
        return scopedIndex(index, known.scope)
      if (!wanted.names) return "scope"
      const scope = await index.scope(new Set(wanted.names))
      scopes.set(key, { version: wanted.version, index, followed, scope })
      return scopedIndex(index, scope)
    },
    /** Who wrote which line. Undefined while nothing was derived. */
    lines: (name: ShardName): Knowledge | undefined => {
      const path = shardFile(data, name)
      return derived.at(linesFile(path), () => readShardLines(path))
    },
    close: () => {
      clearInterval(sweeping)
      indexes.close()
      derived.close()
    },
  }
}

/** Each is opened once, and again where another file is in its place. */
function openedFiles<T extends { close(): void }>() {
  const files = new Map<string, { identity: string | undefined; opened: T; isGone?: boolean }>()
  return {
    at: (path: string, open: () => T | undefined): T | undefined => {
      const identity = fileIdentity(path)
      const known = files.get(path)
      if (known && known.identity === identity) return known.opened
      known?.opened.close()
      files.delete(path)
      const opened = open()
      if (opened) files.set(path, { identity, opened })
      return opened
    },
    /** Those that were gone the last time too: one that is replaced is gone for a moment. */
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
