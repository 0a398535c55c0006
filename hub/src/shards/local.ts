import type { IndexScope } from "../../../src/store/index/query.ts"
import { scopedIndex } from "../../../src/store/index/scoped.ts"
import { readIndex, type SearchIndex } from "../../../src/store/index/search-index.ts"
import type { Knowledge } from "../../../src/store/knowledge/knowledge.ts"
import type { Viewer } from "../store/connection.ts"
import { type ShardName, shardFile } from "./files.ts"
import { readShardLines } from "./lines.ts"

/** What somebody may read of a shard. `version` changes with it. */
export type ShardScope = { of: Viewer; version: number; names: ReadonlySet<string> }

/** This node's shards, to be asked. */
export function openLocalShards(data: string) {
  const indexes = new Map<string, SearchIndex>()
  const derived = new Map<string, Knowledge>()
  const scopes = new Map<string, { version: number; followed: string | undefined; scope: IndexScope }>()
  const indexOf = (name: ShardName): SearchIndex | undefined => {
    const key = `${name.tenant} ${name.shard}`
    const known = indexes.get(key)
    if (known) return known
    const index = readIndex(shardFile(data, name))
    if (typeof index === "string") return undefined
    indexes.set(key, index)
    return index
  }
  return {
    /** Undefined while there is none. Without a scope, all of it. */
    open: async (name: ShardName, wanted: ShardScope | undefined): Promise<SearchIndex | undefined> => {
      const index = indexOf(name)
      if (!index || !wanted) return index
      const followed = await index.followed()
      const key = `${name.tenant} ${name.shard} ${wanted.of.member}`
      const known = scopes.get(key)
      if (known?.version === wanted.version && known.followed === followed) return scopedIndex(index, known.scope)
      const scope = await index.scope([...wanted.names])
      scopes.set(key, { version: wanted.version, followed, scope })
      return scopedIndex(index, scope)
    },
    /** Who wrote which line. Undefined while nothing was derived. */
    lines: (name: ShardName): Knowledge | undefined => {
      const key = `${name.tenant} ${name.shard}`
      const known = derived.get(key) ?? readShardLines(shardFile(data, name))
      if (known) derived.set(key, known)
      return known
    },
    close: () => {
      for (const opened of [...indexes.values(), ...derived.values()]) opened.close()
    },
  }
}
