import { randomUUID } from "node:crypto"
import { setTimeout as pause } from "node:timers/promises"
import type { Change, ConversationRow, HistoryReader } from "../../../../src/store/history/store.ts"
import { CARD_NUMBER, CARD_TAG, cardOf } from "../../../../src/store/index/fields.ts"
import { FIRST_BATCH_SIZE, MAX_CARD_FILES, nextBatchSize } from "../../../../src/store/index/follow-feed.ts"
import type { Database } from "../../store/connection.ts"
import { type Feed, feeds } from "../../store/feeds.ts"
import { openFollowedHistory } from "../../store/history.ts"
import type { TenantKey } from "../../store/keyring.ts"
import {
  countedConversations,
  type Lease,
  openTenantKey,
  releaseLease,
  renewLease,
  saveFollowed,
  takeLease,
} from "../../store/word-index.ts"
import type { TenantLag } from "../follow.ts"
import { seqOf } from "../fts5.ts"
import { type Cluster, ClusterUnavailable, refreshIndex, writeDocuments } from "./client.ts"
import {
  cardEntry,
  cardState,
  createWordHasher,
  documentId,
  documentsOf,
  type IndexedEntry,
  messageEntry,
  messageState,
  placeOf,
  sharedState,
  stateOf,
} from "./document.ts"
import { createExpunger, removeIndexes } from "./expunge.ts"
import { type IndexPlace, indexedMessages, isTakenOver, savePosition, searchIn, takeIndex } from "./indexes.ts"

/** How long one tenant's index is written before the others get a turn, in milliseconds. */
const TURN_MS = 2_000
/** How often a lease is renewed, and how long after the last time it still counts, in milliseconds. */
const RENEW_MS = 3_000
const LEASE_MS = 8_000
/** How often what was written becomes searchable, in milliseconds. */
const REFRESH_MS = 1_000
const SHORT_MS = 50
/** How often to look whether the disks have lost a tenant that has left, in milliseconds. A node that is away may take days. */
const REMOVE_MS = 5_000
/** A cluster that answers more slowly is not available. */
const HEALTH_TIMEOUT_MS = 3_000
/** The approximate amount of text that is read and sent together, in bytes. */
const MAX_BYTES = 2_000_000
/** The number of messages of which the state is kept, so that a conversation that grows need not be looked up. */
const MAX_KNOWN = 100_000
/** The cluster's limit for the results of a search. */
const PAGE = 10_000

export type Indexer = {
  /** Brings the index of every tenant that this process may write up to date, or a step closer. True if nothing is left to do. */
  step(): Promise<boolean>
  /** How many changes each index was behind its tenant's feed at the last step. */
  lags(): TenantLag[]
  close(): Promise<void>
}

/**
 * Writes the indexes of tenants whose words a cluster has. Of several hubs, one at a time writes the index of a tenant. `report` gets
 * the problems of work that goes on beside the steps.
 */
export function createIndexer(db: Database, cluster: Cluster, report: (error: unknown) => void): Indexer {
  const holder = randomUUID()
  const writers = new Map<number, Writer>()
  let removedAt = 0
  let lags: TenantLag[] = []
  const drop = (tenant: number) => {
    writers.get(tenant)?.stop()
    writers.delete(tenant)
  }
  const writerOf = async ({ tenant, seq }: Feed): Promise<Writer | undefined> => {
    const open = writers.get(tenant)
    if (open) return open
    const lease = await takeLease(db, tenant, holder)
    if (!lease) return undefined
    const writer = await openWriter({ db, cluster, lease, seq, report })
    writers.set(tenant, writer)
    return writer
  }
  const follow = async (feed: Feed): Promise<boolean> => {
    try {
      return (await (await writerOf(feed))?.step(feed.seq)) ?? true
    } catch (error) {
      drop(feed.tenant)
      if (error instanceof LeaseLost || isTakenOver(error)) return true
      throw error
    }
  }
  return {
    step: async () => {
      const known = await feeds(db)
      const all = known.filter(({ in_cluster }) => in_cluster)
      const left = known.filter(({ in_cluster, has_copies }) => has_copies && !in_cluster)
      if (left.length > 0 && Date.now() - removedAt > REMOVE_MS) {
        removedAt = Date.now()
        for (const { tenant, seq } of left) await removeIndexes(db, cluster, tenant, seq)
      }
      lags = all
        .filter(({ in_files, leaving }) => leaving || !in_files)
        .map(({ tenant, seq, followed }) => ({ tenant, lag: seq - (followed ?? 0) }))
      if (all.length > 0) await checkHealth(cluster)
      for (const tenant of [...writers.keys()]) if (!all.some((feed) => feed.tenant === tenant)) drop(tenant)
      let isDone = true
      const problems: unknown[] = []
      for (const feed of all)
        try {
          isDone = (await follow(feed)) && isDone
        } catch (error) {
          problems.push(error) // the other tenants get their turn
        }
      if (problems.length > 0) throw problems[0]
      return isDone
    },
    lags: () => lags,
    close: async () => {
      for (const [tenant, { lease }] of [...writers]) {
        drop(tenant)
        await releaseLease(db, lease)
      }
    },
  }
}

/** Throws if the cluster does not answer, or has lost a part of an index. */
async function checkHealth({ ask, prefix }: Cluster): Promise<void> {
  const path = `/_cluster/health/${prefix}-*`
  const { status } = await ask<{ status: string }>({ method: "GET", path, timeoutMs: HEALTH_TIMEOUT_MS })
  if (status === "red") throw new ClusterUnavailable("a part of an index is missing")
}

/** Another process writes the index now. */
class LeaseLost extends Error {}

type Writer = Awaited<ReturnType<typeof openWriter>>

type NewWriter = Pick<WriterParts, "db" | "cluster" | "lease" | "seq"> & { report(error: unknown): void }

async function openWriter({ db, cluster, lease, seq, report }: NewWriter) {
  const { tenant } = lease
  let renewedAt = Date.now()
  const renew = async () => {
    const before = Date.now()
    if (!(await renewLease(db, lease))) throw new LeaseLost()
    renewedAt = before
  }
  const confirmLease = async () => {
    if (Date.now() - renewedAt > LEASE_MS) await renew()
  }
  // If it fails, the next write finds out.
  const timer = setInterval(() => void renew().catch(() => {}), RENEW_MS).unref()
  try {
    const history = openFollowedHistory(db, tenant)
    const key = await openTenantKey(db, tenant)
    const isPast = async (id: string, number: number) => !(await history.changes(`${id}@${number}`, 1)).rebuild
    const place = await takeIndex(cluster, tenant, { history: await history.id(), isPast })
    if (!place.hasSearched) await saveFollowed(db, lease, null)
    const expunger = createExpunger(db, cluster, { tenant, index: place.index, report })
    await expunger.check(0)
    const follow = createStep({ db, cluster, lease, history, key, place, seq, renew, confirmLease })
    return {
      lease,
      step: async (feedSeq: number): Promise<boolean> => {
        const published = await follow(feedSeq)
        if (published !== undefined) await expunger.check(published)
        return published !== undefined
      },
      stop: () => {
        clearInterval(timer)
        expunger.stop()
      },
    }
  } catch (error) {
    clearInterval(timer)
    throw error
  }
}

type WriterParts = {
  db: Database
  cluster: Cluster
  lease: Lease
  history: HistoryReader
  key: TenantKey
  place: IndexPlace
  /** The number in the feed when the writer was opened. */
  seq: number
  /** Throws if another process has the lease. */
  renew(): Promise<void>
  confirmLease(): Promise<void>
}

/** Returns the function that follows the feed for a while. Its result is the newest change if the index is up to date, and searches find it. */
function createStep({ db, cluster, lease, history, key, place, seq: firstSeq, renew, confirmLease }: WriterParts) {
  const known = createKnownStates(cluster, place)
  const hash = createWordHasher(key)
  let { position, isSearched } = place
  let published = isSearched ? position.followed : -1
  let isUnrefreshed = false
  let refreshedAt = 0
  let batchSize = FIRST_BATCH_SIZE

  const refresh = async () => {
    await refreshIndex(cluster, place.index)
    isUnrefreshed = false
    refreshedAt = Date.now()
  }
  const publish = async () => {
    await renew()
    await savePosition(cluster, place.alias, position)
    await refresh()
    if (!isSearched) await searchIn(cluster, lease.tenant, place)
    isSearched = true
    if (!(await saveFollowed(db, lease, position.followed))) throw new LeaseLost()
    published = position.followed
  }
  const writeBatch = async (changes: Change[], version: number, seq: number) => {
    const conversations = changes.map(({ conversation }) => conversation)
    // In a new index, what existed when it was created comes once.
    const isFirst = place.isNew && version <= firstSeq
    if (!isFirst && isUnrefreshed && conversations.some((one) => !known.has(one))) await refresh()
    const states = await known.statesOf(isFirst ? [] : conversations)
    const loaded: LoadedConversation[] = []
    for (const change of changes)
      loaded.push(await loadChanges(history, key, change, states.get(change.conversation) ?? new Map()))
    const writes = loaded.flatMap((one) => one.removed.map((number) => ({ id: documentId(one.conversation, number) })))
    const entries = loaded.flatMap(({ conversation, row, entries: changed }) =>
      row ? changed.map((entry) => ({ conversation, row, entry })) : [],
    )
    await confirmLease()
    if (version > position.reached) {
      position = { ...position, reached: Math.max(version, seq) }
      await savePosition(cluster, place.alias, position)
    }
    known.forget(conversations)
    const kept = await writeDocuments(cluster, place.alias, version, [...writes, ...documentsOf(entries, hash, key)])
    isUnrefreshed = true
    const keptIn = new Set([...kept].map((id) => String(placeOf(id).conversation)))
    for (const { conversation, states: now } of loaded) if (!keptIn.has(conversation)) known.save(conversation, now)
    batchSize = nextBatchSize(
      loaded.map(({ row }) => row),
      MAX_BYTES,
    )
  }

  return async (seq: number): Promise<number | undefined> => {
    const deadline = Date.now() + TURN_MS
    while (position.followed !== seq || !isSearched) {
      const feed = await history.changes(`${position.history}@${position.followed}`, batchSize)
      const [historyNow, followed] = [feed.token.split("@")[0], seqOf(feed.token)]
      // Another PostgreSQL continues the feed, perhaps from an earlier state. The next writer checks whether the index fits it.
      if (feed.rebuild || historyNow !== position.history) throw new LeaseLost()
      if (feed.changes.length > 0) await writeBatch(feed.changes, followed, seq)
      position = { ...position, followed }
      if (!feed.more) break
      if (Date.now() > deadline) return undefined
    }
    if (published === position.followed) return published
    const dueIn = refreshedAt + REFRESH_MS - Date.now()
    if (dueIn > 0) {
      await pause(Math.min(dueIn, SHORT_MS))
      return undefined
    }
    await publish()
    return published
  }
}

/** The conversations whose messages in the index differ, in number or in who may read them, from those in PostgreSQL. */
export async function differingConversations(db: Database, cluster: Cluster, tenant: number): Promise<number[]> {
  const key = await openTenantKey(db, tenant)
  const indexed = Map.groupBy(
    await indexedMessages(cluster, tenant, key.word(CARD_TAG)),
    ({ conversation }) => conversation,
  )
  const differing: number[] = []
  for await (const { id, messages, ...row } of countedConversations(db, tenant)) {
    const [found, ...others] = indexed.get(id) ?? []
    indexed.delete(id)
    const isSame = (found?.messages ?? 0) === messages && (messages === 0 || found!.shared === sharedState(row))
    if (!isSame || others.length > 0) differing.push(id)
  }
  return [...differing, ...indexed.keys()]
}

type LoadedConversation = {
  conversation: string
  /** Absent if the conversation was deleted or hidden. */
  row?: ConversationRow
  entries: IndexedEntry[]
  removed: number[]
  /** The states of all entries after the change. */
  states: Map<number, string>
}

/** Reads only those messages of a changed conversation whose documents are missing or different. */
async function loadChanges(
  history: HistoryReader,
  key: TenantKey,
  { conversation, ref }: Change,
  before: ReadonlyMap<number, string>,
): Promise<LoadedConversation> {
  const row = ref && (await history.conversation(ref))
  if (!row?.access) return { conversation, entries: [], removed: [...before.keys()], states: new Map() }
  const shared = sharedState(row)
  const states = new Map<number, string>()
  for (const { number, version, copied } of await history.versions(row.ref))
    if (!copied) states.set(number, messageState(shared, version))
  const card = cardOf(row, await history.editedFiles(row.ref, MAX_CARD_FILES))
  if (card) states.set(CARD_NUMBER, cardState(key, shared, card))
  const changed = [...states].filter(([number, state]) => before.get(number) !== state).map(([number]) => number)
  const numbers = changed.filter((number) => number !== CARD_NUMBER)
  const messages = numbers.length > 0 ? await history.messages(row.ref, numbers) : []
  const entries = messages.map((message) => messageEntry(row, message, states.get(message.number)!))
  if (card && changed.includes(CARD_NUMBER)) entries.push(cardEntry(row, card, states.get(CARD_NUMBER)!))
  return { conversation, row, entries, removed: [...before.keys()].filter((number) => !states.has(number)), states }
}

/** Which messages of conversations are in the index, and in which state. Only the writer changes them, so it remembers some. */
function createKnownStates({ ask }: Cluster, { index }: IndexPlace) {
  const known = new Map<string, Map<number, string>>()
  let size = 0
  const forget = (conversations: string[]) => {
    for (const conversation of conversations) {
      size -= known.get(conversation)?.size ?? 0
      known.delete(conversation)
    }
  }
  /** Reads from the index itself. Everything that was written must have been refreshed. */
  const read = async (conversations: string[]) => {
    const states = new Map(conversations.map((conversation) => [conversation, new Map<number, string>()]))
    let after: unknown[] | undefined
    do {
      const { hits } = await ask<StatesAnswer>({
        method: "POST",
        path: `/${index}/_search`,
        query: { allow_partial_search_results: false },
        body: {
          query: { bool: { filter: [{ terms: { conversation: conversations } }] } },
          sort: [{ conversation: "asc" }, { number: "asc" }],
          docvalue_fields: ["shared", "state"],
          size: PAGE,
          search_after: after,
        },
      })
      for (const { _id, fields } of hits.hits) {
        const { conversation, number } = placeOf(_id)
        states.get(String(conversation))!.set(number, stateOf({ shared: fields.shared[0]!, state: fields.state[0]! }))
      }
      after = hits.hits.length === PAGE ? hits.hits.at(-1)!.sort : undefined
    } while (after)
    return states
  }
  return {
    has: (conversation: string) => known.has(conversation),
    statesOf: async (conversations: string[]): Promise<Map<string, ReadonlyMap<number, string>>> => {
      const unknown = conversations.filter((one) => !known.has(one))
      const found = unknown.length > 0 ? await read(unknown) : new Map<string, Map<number, string>>()
      return new Map(conversations.map((one) => [one, known.get(one) ?? found.get(one)!]))
    },
    forget,
    save: (conversation: string, states: Map<number, string>) => {
      for (const oldest of known.keys()) {
        if (size + states.size <= MAX_KNOWN) break
        forget([oldest])
      }
      known.set(conversation, states)
      size += states.size
    },
  }
}

type StatesAnswer = { hits: { hits: { _id: string; fields: Record<"shared" | "state", string[]>; sort: unknown[] }[] } }
