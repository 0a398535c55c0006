import { existsSync, mkdirSync, rmSync } from "node:fs"
import { dirname } from "node:path"
import { openIndex, type SearchIndex } from "../../../src/store/index/search-index.ts"
import type { Database } from "../store/connection.ts"
import { feeds } from "../store/feeds.ts"
import { openShardHistory } from "../store/history.ts"
import { allShards, nodeSeen, type PlacedShard, type ShardNode, shardArrived } from "../store/shards.ts"
import { type ShardName, shardFile, shardFolder } from "./files.ts"
import { openShardLines, type ShardLines } from "./lines.ts"

/** How long one shard is updated before the others get a turn, in milliseconds. */
const TURN_MS = 2_000
/**
 * How many bytes of text are read and indexed together. Batches are limited by size, because batches of 64 conversations of any
 * length made a hub use 70 to 90 MB more memory.
 */
const MAX_BYTES = 2_000_000
/** How often a node reports that it runs, in milliseconds. */
const REPORT_EVERY_MS = 5_000
/** How long a moved shard is kept, in milliseconds. By then, all questions that arrived while it was here are answered. */
const DELETE_AFTER_MS = 15_000

export const ONLY_NODE: ShardNode = { name: "main" }

export type ShardLag = ShardName & { lag: number }

export type Follower = {
  /** Brings every shard of this node up to date, or a step closer. Returns true if nothing is left to do. */
  step(): Promise<boolean>
  /** How many changes each shard was behind its tenant's feed after the last step. */
  lags(): ShardLag[]
  close(): void
}

/** The only writer of a node's shards. */
export function createFollower(db: Database, data: string, node = ONLY_NODE): Follower {
  const shards = new Map<string, OpenShard>()
  let lags: ShardLag[] = []
  let reportedAt = 0
  const movedAt = new Map<string, number>()
  const reportRunning = async () => {
    if (Date.now() - reportedAt <= REPORT_EVERY_MS) return
    await nodeSeen(db, node)
    reportedAt = Date.now()
  }
  /** Closes a shard that now belongs to another node, and deletes its folder after a while. */
  const closeMovedShard = (name: ShardName): void => {
    const key = keyOf(name)
    shards.get(key)?.close()
    shards.delete(key)
    const folder = shardFolder(data, name)
    if (!existsSync(folder)) return
    const since = movedAt.get(key) ?? Date.now()
    movedAt.set(key, since)
    if (Date.now() - since < DELETE_AFTER_MS) return
    rmSync(folder, { recursive: true, force: true })
    movedAt.delete(key)
  }
  const openedShard = (name: ShardName): OpenShard => {
    const key = keyOf(name)
    movedAt.delete(key)
    const shard = shards.get(key) ?? openShard(shardFile(data, name))
    shards.set(key, shard)
    return shard
  }
  const follow = async (name: ShardName, seq: number): Promise<boolean> => {
    const shard = openedShard(name)
    if (shard.seq === seq && shard.linesSeq === seq) return true
    const history = openShardHistory(db, name.tenant, name.shard)
    const { complete } = await shard.index.follow(history, { deadline: Date.now() + TURN_MS, mostBytes: MAX_BYTES })
    // No word of a forgotten conversation stays in the index.
    if (complete && (await shard.index.isPurgeDue(history))) await shard.index.purge(history)
    if (complete) shard.seq = seq
    // Search comes first: lines are read when nothing else is left.
    if (complete && (await shard.lines.follow(history, Date.now() + TURN_MS))) shard.linesSeq = seq
    return complete && shard.linesSeq === seq
  }
  return {
    step: async () => {
      await reportRunning()
      const seqs = new Map((await feeds(db)).map(({ tenant, seq }) => [tenant, seq]))
      const all = await allShards(db)
      const isOwn = (shard: PlacedShard) => shard.node === node.name || shard.moving_to === node.name
      const ownShards = all.filter(isOwn)
      for (const shard of all) if (shard.node !== null && !isOwn(shard)) closeMovedShard(shard)
      const seqOf = ({ tenant }: ShardName) => seqs.get(tenant) ?? 0
      let isDone = true
      for (const shard of ownShards) {
        await reportRunning()
        const isCurrent = await follow(shard, seqOf(shard))
        if (isCurrent && shard.moving_to === node.name) await shardArrived(db, shard, node.name)
        isDone &&= isCurrent
      }
      lags = ownShards.map(({ tenant, shard }) => {
        const { seq } = openedShard({ tenant, shard })
        return { tenant, shard, lag: seqOf({ tenant, shard }) - Math.max(0, seq) }
      })
      return isDone
    },
    lags: () => lags,
    close: () => {
      for (const shard of shards.values()) shard.close()
    },
  }
}

/** The last change in the index (`seq`) and in the lines (`linesSeq`). */
type OpenShard = { index: SearchIndex; seq: number; lines: ShardLines; linesSeq: number; close(): void }

function keyOf({ tenant, shard }: ShardName): string {
  return `${tenant} ${shard}`
}

function openShard(file: string): OpenShard {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const [index, lines] = [openIndex(file), openShardLines(file)]
  const close = () => {
    index.close()
    lines.close()
  }
  return { index, seq: -1, lines, linesSeq: -1, close }
}
