import { mkdirSync } from "node:fs"
import { dirname } from "node:path"
import { openIndex, type SearchIndex } from "../../../src/store/index/search-index.ts"
import type { Database } from "../store/connection.ts"
import { feeds } from "../store/feeds.ts"
import { openShardHistory } from "../store/history.ts"
import { allShards, nodeSeen, type ShardNode } from "../store/shards.ts"
import { type ShardName, shardFile } from "./files.ts"
import { openShardLines, type ShardLines } from "./lines.ts"

/** A shard that has much to read lets the others have their turn after this long. */
const TURN_MS = 2_000
/** So often a node says that it runs. */
const SEEN_MS = 5_000

export const ONLY_NODE: ShardNode = { name: "main" }

export type ShardLag = ShardName & { lag: number }

export type Follower = {
  /** Brings every shard of this node to where its tenant is, or a step nearer. True where nothing is left. */
  step(): Promise<boolean>
  /** By how many changes each shard was behind its tenant's feed after the last step. */
  lags(): ShardLag[]
  close(): void
}

/** The one writer of a node's shards. */
export function createFollower(db: Database, data: string, node = ONLY_NODE): Follower {
  const shards = new Map<string, OpenShard>()
  let lags: ShardLag[] = []
  let seenAt = 0
  const followed = (name: ShardName): OpenShard => {
    const key = `${name.tenant} ${name.shard}`
    const known = shards.get(key) ?? openShard(shardFile(data, name))
    shards.set(key, known)
    return known
  }
  const follow = async (name: ShardName, seq: number): Promise<boolean> => {
    const shard = followed(name)
    if (shard.seq === seq && shard.linesSeq === seq) return true
    const history = openShardHistory(db, name.tenant, name.shard)
    const { complete } = await shard.index.follow(history, { deadline: Date.now() + TURN_MS })
    // What was forgotten leaves no word behind.
    if (complete && (await shard.index.isPurgeDue(history))) await shard.index.purge(history)
    if (complete) shard.seq = seq
    // What can be searched comes first: lines are read when nothing else is left.
    if (complete && (await shard.lines.follow(history, Date.now() + TURN_MS))) shard.linesSeq = seq
    return complete && shard.linesSeq === seq
  }
  return {
    step: async () => {
      if (Date.now() - seenAt > SEEN_MS) {
        await nodeSeen(db, node)
        seenAt = Date.now()
      }
      const heads = new Map((await feeds(db)).map(({ tenant, seq }) => [tenant, seq]))
      const own = (await allShards(db)).filter((shard) => shard.node === node.name)
      const seqOf = ({ tenant }: ShardName) => heads.get(tenant) ?? 0
      let isDone = true
      for (const shard of own) isDone = (await follow(shard, seqOf(shard))) && isDone
      lags = own.map(({ tenant, shard }) => {
        const { seq } = followed({ tenant, shard })
        return { tenant, shard, lag: seqOf({ tenant, shard }) - Math.max(0, seq) }
      })
      return isDone
    },
    lags: () => lags,
    close: () => {
      for (const { index, lines } of shards.values()) {
        index.close()
        lines.close()
      }
    },
  }
}

/** Up to which change the words are followed, and the lines. */
type OpenShard = { index: SearchIndex; seq: number; lines: ShardLines; linesSeq: number }

function openShard(file: string): OpenShard {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  return { index: openIndex(file), seq: -1, lines: openShardLines(file), linesSeq: -1 }
}
