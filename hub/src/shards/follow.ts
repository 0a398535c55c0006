import { existsSync, mkdirSync, rmSync } from "node:fs"
import { dirname } from "node:path"
import { openIndex, type SearchIndex } from "../../../src/store/index/search-index.ts"
import type { Database } from "../store/connection.ts"
import { feeds } from "../store/feeds.ts"
import { openShardHistory } from "../store/history.ts"
import { allShards, nodeSeen, type PlacedShard, type ShardNode, shardArrived } from "../store/shards.ts"
import { type ShardName, shardFile, shardFolder } from "./files.ts"
import { openShardLines, type ShardLines } from "./lines.ts"

/** A shard that has much to read lets the others have their turn after this long. */
const TURN_MS = 2_000
/** Of text that is read to be indexed together. With 64 conversations, however long they are, a hub was 70 to 90 MB larger. */
const MOST_BYTES = 2_000_000
/** So often a node says that it runs. */
const SEEN_MS = 5_000
/** Whoever began to ask while a shard was here has its answer by then. */
const LEAVE_MS = 15_000

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
  const leftAt = new Map<string, number>()
  const saySeen = async () => {
    if (Date.now() - seenAt <= SEEN_MS) return
    await nodeSeen(db, node)
    seenAt = Date.now()
  }
  /** Of another node by now: what is here of it goes. */
  const leave = (name: ShardName): void => {
    const key = keyOf(name)
    shards.get(key)?.close()
    shards.delete(key)
    const folder = shardFolder(data, name)
    if (!existsSync(folder)) return
    const since = leftAt.get(key) ?? Date.now()
    leftAt.set(key, since)
    if (Date.now() - since < LEAVE_MS) return
    rmSync(folder, { recursive: true, force: true })
    leftAt.delete(key)
  }
  const followed = (name: ShardName): OpenShard => {
    const key = keyOf(name)
    leftAt.delete(key)
    const known = shards.get(key) ?? openShard(shardFile(data, name))
    shards.set(key, known)
    return known
  }
  const follow = async (name: ShardName, seq: number): Promise<boolean> => {
    const shard = followed(name)
    if (shard.seq === seq && shard.linesSeq === seq) return true
    const history = openShardHistory(db, name.tenant, name.shard)
    const { complete } = await shard.index.follow(history, { deadline: Date.now() + TURN_MS, mostBytes: MOST_BYTES })
    // What was forgotten leaves no word behind.
    if (complete && (await shard.index.isPurgeDue(history))) await shard.index.purge(history)
    if (complete) shard.seq = seq
    // What can be searched comes first: lines are read when nothing else is left.
    if (complete && (await shard.lines.follow(history, Date.now() + TURN_MS))) shard.linesSeq = seq
    return complete && shard.linesSeq === seq
  }
  return {
    step: async () => {
      await saySeen()
      const heads = new Map((await feeds(db)).map(({ tenant, seq }) => [tenant, seq]))
      const all = await allShards(db)
      const isOwn = (shard: PlacedShard) => shard.node === node.name || shard.moving_to === node.name
      const own = all.filter(isOwn)
      for (const shard of all) if (shard.node !== null && !isOwn(shard)) leave(shard)
      const seqOf = ({ tenant }: ShardName) => heads.get(tenant) ?? 0
      let isDone = true
      for (const shard of own) {
        await saySeen()
        const isThere = await follow(shard, seqOf(shard))
        if (isThere && shard.moving_to === node.name) await shardArrived(db, shard, node.name)
        isDone &&= isThere
      }
      lags = own.map(({ tenant, shard }) => {
        const { seq } = followed({ tenant, shard })
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

/** Up to which change the words are followed, and the lines. */
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
