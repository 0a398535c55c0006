import { openIndex, type SearchIndex } from "../../../src/store/index/search-index.ts"
import type { Database } from "../store/connection.ts"
import { feeds } from "../store/feeds.ts"
import { openTenantHistory } from "../store/history.ts"
import { shardFile } from "./files.ts"
import { openShardLines, type ShardLines } from "./lines.ts"

/** A tenant that has much to read lets the others have their turn after this long. */
const TURN_MS = 2_000

export type ShardLag = { tenant: number; lag: number }

export type Follower = {
  /** Brings every shard to where its tenant is, or a step nearer. True where nothing is left. */
  step(): Promise<boolean>
  /** By how many changes each shard was behind its tenant's feed after the last step. */
  lags(): ShardLag[]
  close(): void
}

/** The one writer of a node's shards. */
export function createFollower(db: Database, data: string): Follower {
  const shards = new Map<number, OpenShard>()
  let lags: ShardLag[] = []
  const follow = async (tenant: number, seq: number): Promise<boolean> => {
    const shard = shards.get(tenant) ?? openShard(shardFile(data, tenant))
    shards.set(tenant, shard)
    if (shard.seq === seq && shard.linesSeq === seq) return true
    const history = openTenantHistory(db, tenant)
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
      let isDone = true
      const heads = await feeds(db)
      for (const { tenant, seq } of heads) isDone = (await follow(tenant, seq)) && isDone
      lags = heads.map(({ tenant, seq }) => ({ tenant, lag: seq - Math.max(0, shards.get(tenant)?.seq ?? 0) }))
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
  return { index: openIndex(file), seq: -1, lines: openShardLines(file), linesSeq: -1 }
}
