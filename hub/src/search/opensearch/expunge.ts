import { setTimeout as pause } from "node:timers/promises"
import type { Database } from "../../store/connection.ts"
import { addCopies, openRemoval, saveClean, type WordCopy, wordCopies } from "../../store/word-copies.ts"
import { type Cluster, refreshIndex } from "./client.ts"
import { namesOf } from "./indexes.ts"

// A deleted document stays in the files of every node until its segment is written again. After a forgetting, all segments with
// deleted documents are, and a receipt is closed when every node that had a copy was seen without the old ones.

/** How often the nodes are looked at, in milliseconds. */
const INTERVAL_MS = 10_000
const POLL_MS = 2_000
/** After this time, what was replaced or hidden is removed too, for which there is no receipt. */
const ALWAYS_MS = 3_600_000
/** How long the cluster may take to write the segments again. */
const MERGE_MS = 3_600_000
/** How often they are written again before the next look. */
const MAX_MERGES = 3

type StoresAnswer = {
  indices: Record<
    string,
    { shards: Record<string, { stores: (Record<string, { name: string }> & { allocation: string })[] }> }
  >
}
type SegmentsAnswer = {
  indices: Record<
    string,
    {
      shards: Record<
        string,
        { routing: { node: string; state: string }; segments: Record<string, { deleted_docs: number }> }[]
      >
    }
  >
}
type StatsAnswer = {
  indices: Record<
    string,
    {
      shards: Record<
        string,
        { seq_no: { max_seq_no: number }; retention_leases: { leases: { retaining_seq_no: number }[] } }[]
      >
    }
  >
}

/** A node's copies of a tenant's indexes: `dirty` are the segments with deleted documents. `isUsed` is false if one is only left over. */
type NodeCopies = { name: string; isUsed: boolean; dirty: Set<string> }

export type Expunger = {
  /** Looks at the nodes and starts to clean them if that is due. `published` is the newest change that searches find. */
  check(published: number): Promise<void>
  stop(): void
}

/** `report` gets the problems of cleaning, which goes on beside the caller's work. The next look tries again. */
export function createExpunger(
  db: Database,
  cluster: Cluster,
  { tenant, index, report }: { tenant: number; index: string; report(error: unknown): void },
): Expunger {
  const stopped = new AbortController()
  let checkedAt = 0
  let cleanedAt = Date.now()
  let cleanedUpTo = 0
  let running: Promise<void> | undefined
  const clean = async (published: number, copies: WordCopy[]) => {
    const isDue = Date.now() - cleanedAt > ALWAYS_MS && published > cleanedUpTo
    const seq = (await openRemoval(db, tenant, published)) ?? (isDue ? published : undefined)
    if (seq === undefined) return
    const waiting = copies.filter((copy) => copy.clean < seq).map(({ node }) => node)
    const cleaned = await cleanNodes(cluster, tenant, index, waiting, stopped.signal)
    await saveClean(db, tenant, { seq: published, clean: cleaned, without: [] })
    cleanedAt = Date.now()
    cleanedUpTo = published
  }
  return {
    check: async (published) => {
      if (Date.now() - checkedAt < INTERVAL_MS) return
      checkedAt = Date.now()
      const [nodes, stores] = [await nodesOf(cluster), await storesOf(cluster, tenant)]
      await addCopies(db, tenant, new Map([...stores].map(([node, { name }]) => [node, name])))
      const copies = await wordCopies(db, tenant)
      const without = copies.filter(({ node }) => nodes.has(node) && !stores.has(node)).map(({ node }) => node)
      if (without.length > 0) await saveClean(db, tenant, { seq: published, clean: [], without })
      running ??= clean(published, copies)
        .catch((error: unknown) => {
          if (!stopped.signal.aborted) report(error)
        })
        .finally(() => {
          running = undefined
        })
    },
    stop: () => stopped.abort(),
  }
}

/** Deletes the indexes of a tenant whose words the cluster no longer has. `seq` is the feed's number. */
export async function removeIndexes(db: Database, cluster: Cluster, tenant: number, seq: number): Promise<void> {
  const { allBuilt } = namesOf(cluster.prefix, tenant)
  const names = Object.keys(await cluster.ask<object>({ method: "GET", path: `/${allBuilt}` }))
  if (names.length > 0) await cluster.ask({ method: "DELETE", path: `/${names.join(",")}` })
  const [nodes, stores] = [await nodesOf(cluster), await storesOf(cluster, tenant)]
  const without = [...nodes].filter((node) => !stores.has(node))
  await saveClean(db, tenant, { seq, clean: [], without })
}

/**
 * Writes the segments with deleted documents again. Returns those of the nodes that have none of the segments of before. A node
 * that is away or is being filled is not among them.
 */
async function cleanNodes(
  cluster: Cluster,
  tenant: number,
  index: string,
  waiting: string[],
  signal: AbortSignal,
): Promise<string[]> {
  await waitUntilReleased(cluster, index, signal)
  await flush(cluster, index)
  const before = await storesOf(cluster, tenant)
  // A copy may have been filled from any other meanwhile.
  const dirty = new Set([...before.values()].flatMap((copies) => [...copies.dirty]))
  let left = waiting.filter((node) => before.get(node)?.isUsed)
  const cleaned: string[] = []
  for (let merges = 0; left.length > 0 && merges < MAX_MERGES; merges++) {
    await cluster.ask({
      method: "POST",
      path: `/${index}/_forcemerge`,
      query: { only_expunge_deletes: true },
      timeoutMs: MERGE_MS,
    })
    await refreshIndex(cluster, index)
    await flush(cluster, index)
    const after = await storesOf(cluster, tenant)
    const isClean = (node: string) =>
      after.get(node)?.isUsed === true && ![...after.get(node)!.dirty].some((segment) => dirty.has(segment))
    cleaned.push(...left.filter(isClean))
    left = left.filter((node) => !isClean(node))
  }
  return cleaned
}

/**
 * Waits until no copy keeps what was deleted before now for another copy that may still need it. A node that is away holds this up
 * until its claim ends.
 */
async function waitUntilReleased(cluster: Cluster, index: string, signal: AbortSignal): Promise<void> {
  const wanted = new Map<string, number>()
  for (;;) {
    const path = `/${index}/_stats`
    const { indices } = await cluster.ask<StatsAnswer>({ method: "GET", path, query: { level: "shards" } })
    let isReleased = true
    for (const [name, { shards }] of Object.entries(indices))
      for (const [shard, copies] of Object.entries(shards))
        for (const { seq_no, retention_leases } of copies) {
          const key = `${name} ${shard}`
          if (!wanted.has(key)) wanted.set(key, seq_no.max_seq_no)
          if (retention_leases.leases.some(({ retaining_seq_no }) => retaining_seq_no <= wanted.get(key)!))
            isReleased = false
        }
    if (isReleased) return
    await pause(POLL_MS, undefined, { signal })
  }
}

async function flush({ ask }: Cluster, index: string): Promise<void> {
  await ask({ method: "POST", path: `/${index}/_flush`, query: { force: true, wait_if_ongoing: true } })
}

/** The nodes that are in the cluster now. */
async function nodesOf({ ask }: Cluster): Promise<Set<string>> {
  const { nodes } = await ask<{ nodes: Record<string, object> }>({ method: "GET", path: "/_cluster/state/nodes" })
  return new Set(Object.keys(nodes))
}

/** The copies of a tenant's indexes on the disks of the nodes that are in the cluster, by node. */
async function storesOf({ ask, prefix }: Cluster, tenant: number): Promise<Map<string, NodeCopies>> {
  const indexes = namesOf(prefix, tenant).allBuilt
  const found = new Map<string, NodeCopies>()
  const { indices } = await ask<StoresAnswer>({
    method: "GET",
    path: `/${indexes}/_shard_stores`,
    query: { status: "all" },
  })
  for (const { shards } of Object.values(indices))
    for (const { stores } of Object.values(shards))
      for (const store of stores)
        for (const [node, value] of Object.entries(store)) {
          if (typeof value !== "object" || !("name" in value)) continue
          const known = found.get(node) ?? { name: value.name, isUsed: true, dirty: new Set<string>() }
          known.isUsed &&= store.allocation !== "unused"
          found.set(node, known)
        }
  const segments = await ask<SegmentsAnswer>({ method: "GET", path: `/${indexes}/_segments` })
  for (const [name, { shards }] of Object.entries(segments.indices))
    for (const [shard, copies] of Object.entries(shards))
      for (const copy of copies) {
        const known = found.get(copy.routing.node)
        if (!known) continue
        known.isUsed &&= copy.routing.state === "STARTED"
        for (const [segment, { deleted_docs }] of Object.entries(copy.segments))
          if (deleted_docs > 0) known.dirty.add(`${name} ${shard} ${segment}`)
      }
  return found
}
