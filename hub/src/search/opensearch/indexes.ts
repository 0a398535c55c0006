import { randomUUID } from "node:crypto"
import type { Column } from "../../../../src/store/index/fields.ts"
import { type Cluster, ClusterRefusal, refreshIndex, writeDocuments } from "./client.ts"

/** How often a word of a column counts: twice its weight in the ranking (RANK_WEIGHTS), rounded. */
export const COLUMN_TIMES: Record<Column, 1 | 2 | 4> = { returned: 1, said: 4, called: 2, aside: 2, hidden: 1 }
/** The constants of FTS5's bm25: twice its k1, because words count twice here, k1 + 1, and b. */
const [SATURATION, FREQUENCY_FACTOR, LENGTH_SHARE] = [2.4, 2.2, 0.75]
/** The mean number of words of a message in 35,310 genuine ones. It is not that of an index, which would reveal how long the messages of others are. */
const MEAN_LENGTH = 260

const MIN_RARITY = 1e-6

/** How much a word says that occurs in so many of the messages. */
export function rarityOf(messages: number, containing: number): number {
  return Math.max(MIN_RARITY, Math.log((messages - containing + 0.5) / (containing + 0.5)))
}

/** Changes with everything that an index must be built again for. */
const FORMAT = 2

/**
 * How far an index is in the feed of a history: everything up to `followed` is in it, and nothing newer than `reached`. PostgreSQL
 * may go back to an earlier state. Then changes get numbers again that documents already have as their version.
 */
export type IndexPosition = { history: string; followed: number; reached: number }

/** The id of the document in which an index stores its position. */
const POSITION_ID = "position"

/**
 * The names of a tenant's indexes. `searched` is the alias for searches, and `written` the alias through which the holder of a
 * lease writes. The next holder removes it. No name occurs twice: the number of a lease would, if PostgreSQL goes back.
 */
export const namesOf = (prefix: string, tenant: number) => ({
  searched: `${prefix}-${tenant}`,
  written: `${prefix}-${tenant}-w${randomUUID()}`,
  built: `${prefix}-${tenant}-i${randomUUID()}`,
  allBuilt: `${prefix}-${tenant}-i*`,
})

type BuiltFrom = { format: number }

/**
 * Creates an index. Its words are counted as FTS5 weighs them: `word~4` counts four times and `word~2` twice, at one place, so that
 * phrases and lengths are right. The score of a word depends only on the message itself. How rare a word is, the query says,
 * because the index counts what the member may not read.
 */
export async function createWordIndex({ ask, shards }: Cluster, name: string): Promise<void> {
  const score = `double norm = ${1 - LENGTH_SHARE} + ${LENGTH_SHARE} * doc.length / ${MEAN_LENGTH}.0;
    return query.boost * ${FREQUENCY_FACTOR} * doc.freq / (doc.freq + ${SATURATION} * norm);`
  const keyword = { type: "keyword", doc_values: false, norms: false }
  const body = {
    settings: {
      index: {
        number_of_shards: shards,
        auto_expand_replicas: "0-1",
        // The indexer refreshes, and only then says how far the index is.
        refresh_interval: "-1",
        // Deleted documents must leave the disks. A node that is away longer than this gets all files again.
        "merge.policy.expunge_deletes_allowed": 0,
        "soft_deletes.retention_lease.period": "10m",
        similarity: { words: { type: "scripted", script: { source: score } } },
        analysis: {
          filter: {
            times: {
              type: "pattern_capture",
              preserve_original: false,
              // A hash has 11 characters. Without the anchors and the possessive quantifier, indexing takes twice as long.
              patterns: ["^(((([^~]{11}+))))~4$", "^(([^~]{11}+))~2$"],
            },
          },
          analyzer: {
            words: { type: "custom", tokenizer: "whitespace", filter: ["times"] },
            plain: { type: "custom", tokenizer: "whitespace" },
          },
        },
      },
    },
    mappings: {
      dynamic: "strict",
      _source: { enabled: false },
      _meta: { format: FORMAT } satisfies BuiltFrom,
      properties: {
        words: { type: "text", analyzer: "words", search_analyzer: "plain", similarity: "words" },
        beginnings: { type: "text", analyzer: "plain", similarity: "words", norms: false, index_options: "docs" },
        tags: keyword,
        author: keyword,
        project: keyword,
        visibility: keyword,
        conversation: { ...keyword, doc_values: true },
        kind: { ...keyword, doc_values: true },
        number: { type: "integer", index: false },
        at: { type: "long" },
        shared: { ...keyword, index: false, doc_values: true },
        state: { ...keyword, index: false, doc_values: true },
        history: { ...keyword, index: false, doc_values: true },
        followed: { type: "long", index: false },
        reached: { type: "long", index: false },
      },
    },
  }
  await ask({ method: "PUT", path: `/${name}`, body })
}

/** The index that the holder of a lease writes, and the alias through which it writes. */
export type IndexPlace = {
  index: string
  alias: string
  position: IndexPosition
  /** True if it has just been created, so that there is nothing in it. */
  isNew: boolean
  /** True if searches use it. */
  isSearched: boolean
  /** True if searches use it or an older index of the same history. */
  hasSearched: boolean
  /** The tenant's other indexes. They are deleted when this one is complete. */
  others: string[]
}

type FoundIndexes = Record<string, { aliases: Record<string, object>; mappings: { _meta?: BuiltFrom } }>

/**
 * Finds the index of a tenant's history, or creates one, and makes it writable for this lease only. The alias of the lease before
 * is removed by the same request that adds the new one, and only if it is still there. So of two processes that try, one fails.
 * `isPast` says whether the history has this number.
 */
export async function takeIndex(
  cluster: Cluster,
  tenant: number,
  { history, isPast }: { history: string; isPast(history: string, seq: number): Promise<boolean> },
): Promise<IndexPlace> {
  const { ask, prefix } = cluster
  const names = namesOf(prefix, tenant)
  const found = await ask<FoundIndexes>({ method: "GET", path: `/${names.allBuilt}` })
  const usable: { index: string; followed: number; reached: number; isOld: boolean; isSearched: boolean }[] = []
  for (const [index, { aliases, mappings }] of Object.entries(found)) {
    const isOld = mappings._meta?.format !== FORMAT
    const position = await positionOf(cluster, index)
    if (!position && isOld) continue
    // If PostgreSQL has gone back to an earlier state, the index may have changes that no longer exist.
    if (position && !(await isPast(position.history, position.reached))) continue
    usable.push({
      index,
      followed: position?.followed ?? 0,
      reached: position?.reached ?? 0,
      isOld,
      isSearched: names.searched in aliases,
    })
  }
  const newest = usable.filter(({ isOld }) => !isOld).sort((a, b) => b.followed - a.followed)[0]
  const index = newest?.index ?? names.built
  if (!newest) await createWordIndex(cluster, index)
  const alias = names.written
  const removals = Object.entries(found).flatMap(([name, { aliases }]) =>
    Object.keys(aliases)
      .filter((one) => one !== names.searched)
      .map((one) => ({ remove: { index: name, alias: one, must_exist: true } })),
  )
  await ask({
    method: "POST",
    path: "/_aliases",
    body: { actions: [...removals, { add: { index, alias, is_write_index: true } }] },
  })
  return {
    index,
    alias,
    position: { history, followed: newest?.followed ?? 0, reached: newest?.reached ?? 0 },
    isNew: !newest,
    isSearched: newest?.isSearched ?? false,
    hasSearched: usable.some(({ isSearched }) => isSearched),
    others: Object.keys(found).filter((name) => name !== index),
  }
}

type StoredPosition = { history: string[]; followed: number[]; reached: number[] }

/** Undefined if nothing was written yet. */
async function positionOf(cluster: Cluster, index: string): Promise<IndexPosition | undefined> {
  await refreshIndex(cluster, index)
  const { hits } = await cluster.ask<{ hits: { hits: { fields?: Partial<StoredPosition> }[] } }>({
    method: "POST",
    path: `/${index}/_search`,
    query: { allow_partial_search_results: false },
    body: { query: { ids: { values: [POSITION_ID] } }, docvalue_fields: ["history", "followed", "reached"] },
  })
  const { history, followed, reached } = hits.hits[0]?.fields ?? {}
  return history && followed && reached && { history: history[0]!, followed: followed[0]!, reached: reached[0]! }
}

export async function savePosition(cluster: Cluster, alias: string, position: IndexPosition): Promise<void> {
  await writeDocuments(cluster, alias, undefined, [{ id: POSITION_ID, document: position }])
}

/** Makes searches use this index, and deletes the others. */
export async function searchIn({ ask, prefix }: Cluster, tenant: number, { index, others }: IndexPlace): Promise<void> {
  const { searched } = namesOf(prefix, tenant)
  const removals = others.map((name) => ({ remove_index: { index: name } }))
  await ask({
    method: "POST",
    path: "/_aliases",
    body: { actions: [...removals, { add: { index, alias: searched } }] },
  })
}

/** True if the request failed because another process took over the alias or the index. */
export function isTakenOver(error: unknown): boolean {
  return error instanceof ClusterRefusal && /^(aliases?_not_found|index_not_found)/.test(error.type)
}

/** The messages of a conversation in an index that share a state. Correct indexes have only one state for each conversation. */
export type IndexedMessages = { conversation: number; shared: string; messages: number }

/** Counts the messages that searches find, without the cards, which have the tag `cardTag`. */
export async function indexedMessages(
  { ask, prefix }: Cluster,
  tenant: number,
  cardTag: string,
): Promise<IndexedMessages[]> {
  const counted: IndexedMessages[] = []
  let after: object | undefined
  do {
    const sources = ["conversation", "shared"].map((field) => ({ [field]: { terms: { field } } }))
    const body = {
      size: 0,
      query: { bool: { must_not: [{ term: { tags: cardTag } }] } },
      aggs: { states: { composite: { size: 10_000, sources, after } } },
    }
    const path = `/${namesOf(prefix, tenant).searched}/_search`
    const { aggregations } = await ask<StatesAnswer>({
      method: "POST",
      path,
      query: { allow_partial_search_results: false },
      body,
    })
    const { buckets, after_key } = aggregations.states
    for (const { key, doc_count } of buckets)
      counted.push({ conversation: Number(key.conversation), shared: key.shared, messages: doc_count })
    after = after_key
  } while (after)
  return counted
}

type StatesAnswer = {
  aggregations: {
    states: { after_key?: object; buckets: { key: { conversation: string; shared: string }; doc_count: number }[] }
  }
}
