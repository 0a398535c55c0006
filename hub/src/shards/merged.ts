import type { Kind } from "../../../src/core/conversation.ts"
import { isDexError } from "../../../src/core/error.ts"
import { type DocId, docId, rowOf } from "../../../src/store/index/doc-id.ts"
import {
  COUNT_LIMIT,
  type CountByKind,
  type IndexFilter,
  type IndexHit,
  type MatchCount,
} from "../../../src/store/index/query.ts"
import type { SearchIndex } from "../../../src/store/index/search-index.ts"
import type { WrittenWord } from "../../../src/store/index/vocabulary.ts"
import { unsupportedMethods } from "./not-offered.ts"

/** Thrown if a shard is not available now: its node does not answer, or has not built it yet. */
export class ShardUnavailableError extends Error {}

export type MergedShard = {
  /** Undefined if the index is not built yet. */
  index: SearchIndex | undefined
  /** True if it may contain something of the projects that the question names. */
  isNamed: boolean
  /** True if the index is on another node. */
  isRemote?: boolean
}

/**
 * The time limits of a question. `callMs` limits one call, so that a silent shard does not use up the time of the others. `until`
 * is the end of all calls, in milliseconds since 1970.
 */
export type ShardsTime = { callMs: number; until: number }

/**
 * A tenant's shards as one index, for one question. Scores are compared as they are, although each shard computes on its own how
 * rare a word is. A shard that does not answer in time is left out from then on, and `shards` reports that.
 */
export function mergedIndex(shards: MergedShard[], { callMs, until }: ShardsTime): SearchIndex {
  const queried = new Set<number>()
  const missing = new Set<number>()
  const sizes = new Map<number, number>()
  const namedShards = new Set(shards.keys().filter((k) => shards[k]!.isNamed))
  const isRemote = (k: number) => shards[k]!.isRemote === true
  /** Asks several shards. Returns the answers of those that answer in time. */
  const askShards = async <T>(among: Iterable<number>, ask: (index: SearchIndex, k: number) => Promise<T>) => {
    const end = Math.min(until, Date.now() + callMs)
    const askOne = async (k: number) => {
      queried.add(k)
      if (missing.has(k)) return []
      try {
        const { index } = shards[k]!
        if (!index) throw new ShardUnavailableError()
        return [{ k, answer: await withDeadline(end, () => ask(index, k)) }]
      } catch (error) {
        if (!isShardUnavailable(error)) throw error
        missing.add(k)
        return []
      }
    }
    const all = [...among]
    const remote = all.filter(isRemote)
    const local = all.filter((k) => !isRemote(k))
    // Calls to other nodes are sent first, because reading a local file blocks this thread.
    const afterRemote = async (k: number) => {
      if (remote.length > 0) await new Promise(setImmediate)
      return askOne(k)
    }
    const answers = await Promise.all([...remote.map(askOne), ...local.map(afterRemote)])
    return answers.flat().sort((a, b) => a.k - b.k)
  }
  /** Asks only the shards that may have the projects that a question names; all shards if it names none. */
  const askNamedShards = <T>(
    { projects }: Pick<IndexFilter, "projects">,
    ask: (index: SearchIndex, k: number) => Promise<T>,
  ) => askShards(projects ? namedShards : shards.keys(), ask)
  /** Splits `newest` among the shards in proportion to their sizes. */
  const newestOf = ({ newest }: IndexFilter, k: number): { newest?: number } => {
    if (newest === undefined) return {}
    const all = [...sizes.values()].reduce((sum, messages) => sum + messages, 0)
    return { newest: Math.max(1, Math.ceil((newest * (sizes.get(k) ?? 0)) / Math.max(1, all))) }
  }
  return {
    ...unsupportedMethods,
    // This node does not know whether an index on another node leaves anything out.
    ...(shards.some(({ index, isRemote }) => isRemote || index?.leavesOut) && { leavesOut: "others" as const }),
    isUnanswered: () => namedShards.size > 0 && [...namedShards].every((k) => missing.has(k)),
    shards: () => ({ searched: queried.size - missing.size, of: queried.size }),
    find: async (query) => {
      const answers = await askNamedShards(query, (index, k) => index.find({ ...query, ...newestOf(query, k) }))
      const hits = answers.flatMap(({ k, answer }) =>
        answer.map((hit) => ({ ...hit, doc: mergedDocId(hit.doc, k, shards.length) })),
      )
      return hits.sort(byScore).slice(0, query.limit)
    },
    newest: async (query) => {
      const answers = await askNamedShards(query, (index) => index.newest(query))
      return interleave(answers.map(({ answer }) => answer)).slice(0, query.limit)
    },
    containing: async (term, docs) => {
      const docsByShard = Map.groupBy(docs, (doc) => shardOf(doc, shards.length))
      const answers = await askShards(docsByShard.keys(), (index, k) =>
        index.containing(
          term,
          docsByShard.get(k)!.map((doc) => docInShard(doc, shards.length)),
        ),
      )
      return new Set(answers.flatMap(({ k, answer }) => [...answer].map((doc) => mergedDocId(doc, k, shards.length))))
    },
    unspoken: async (ref, numbers, terms) => {
      const answers = await askShards(namedShards, (index) => index.unspoken(ref, numbers, terms))
      return new Set(answers.flatMap(({ answer }) => [...answer]))
    },
    count: async (query) => {
      const answers = await askNamedShards(query, (index, k) => index.count({ ...query, ...newestOf(query, k) }))
      return sumCounts(answers.map(({ answer }) => answer))
    },
    countConversations: async (query) => {
      const answers = await askNamedShards(query, (index, k) =>
        index.countConversations({ ...query, ...newestOf(query, k) }),
      )
      const counts = answers.map(({ answer }) => answer)
      const kinds: CountByKind["kinds"] = {}
      for (const kind of counts.flatMap((one) => Object.keys(one.kinds) as Kind[]))
        kinds[kind] ??= counts.reduce((sum, one) => sum + (one.kinds[kind] ?? 0), 0)
      return { ...sumCounts(counts), kinds }
    },
    sizes: async (terms) => {
      const answers = await askShards(namedShards, (index) => index.sizes(terms))
      for (const { k, answer } of answers) sizes.set(k, answer.messages)
      const sum = (valueIn: (sizes: { messages: number; sample: number; shares: number[] }) => number) =>
        answers.reduce((all, { answer }) => all + valueIn(answer), 0)
      const messages = sum((one) => one.messages)
      return {
        messages,
        sample: sum((one) => one.sample),
        shares: terms.map((_, i) => sum((one) => one.shares[i]! * one.messages) / Math.max(1, messages)),
      }
    },
    words: async (beginning, limit) => {
      const words = sumWordCounts(await askShards(namedShards, (index) => index.words(beginning, limit)))
      return limit === undefined ? words : words.slice(0, limit)
    },
    wordsOfLength: async (least, most) =>
      sumWordCounts(await askShards(namedShards, (index) => index.wordsOfLength(least, most))),
    followed: async () =>
      oldestToken((await askShards(namedShards, (index) => index.followed())).map(({ answer }) => answer)),
    isBehind: async (store) => {
      const tokens = (await askShards(namedShards, (index) => index.followed())).map(({ answer }) => answer)
      if (tokens.length === 0) return false
      const { changes, rebuild } = await store.changes(oldestToken(tokens), 1)
      return rebuild || changes.length > 0
    },
  }
}

export function isShardUnavailable(error: unknown): boolean {
  return error instanceof ShardUnavailableError || (isDexError(error) && error.code === "index_damaged")
}

async function withDeadline<T>(end: number, ask: () => Promise<T>): Promise<T> {
  const left = end - Date.now()
  if (left <= 0) throw new ShardUnavailableError()
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new ShardUnavailableError()), left)
  })
  try {
    return await Promise.race([ask(), timeout])
  } finally {
    clearTimeout(timer)
  }
}

// A document's number is unique only in its shard. Combined with the shard's position, it is unique in all of them.

function mergedDocId(doc: DocId, k: number, shardCount: number): DocId {
  return docId(rowOf(doc) * shardCount + k)
}

function shardOf(doc: DocId, shardCount: number): number {
  return ((rowOf(doc) % shardCount) + shardCount) % shardCount
}

function docInShard(doc: DocId, shardCount: number): DocId {
  return docId(Math.floor(rowOf(doc) / shardCount))
}

/** Compares hits in the order of a single index. */
function byScore(a: IndexHit, b: IndexHit): number {
  return b.score - a.score || (b.at ?? 0) - (a.at ?? 0) || compare(a.ref.id, b.ref.id) || a.number - b.number
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function sumCounts(counts: MatchCount[]): MatchCount {
  const total = counts.reduce((sum, count) => sum + count.total, 0)
  return {
    total: Math.min(total, COUNT_LIMIT),
    total_is_at_least: total > COUNT_LIMIT || counts.some((count) => count.total_is_at_least),
  }
}

function interleave<T>(lists: T[][]): T[] {
  const longest = Math.max(0, ...lists.map((list) => list.length))
  return Array.from({ length: longest }, (_, i) => lists.flatMap((list) => list.slice(i, i + 1))).flat()
}

/** Adds up the counts of equal words, most frequent first. */
function sumWordCounts(answers: { answer: WrittenWord[] }[]): WrittenWord[] {
  const spreads = new Map<string, number>()
  for (const { word, spread } of answers.flatMap(({ answer }) => answer))
    spreads.set(word, (spreads.get(word) ?? 0) + spread)
  const words = [...spreads].map(([word, spread]) => ({ word, spread }))
  return words.sort((a, b) => b.spread - a.spread || compare(a.word, b.word))
}

/** The oldest of these tokens, all from one tenant's feed. Each contains a history and a number. */
function oldestToken(tokens: (string | undefined)[]): string | undefined {
  if (tokens.includes(undefined)) return undefined
  const seqOf = (token: string) => Number(token.split("@")[1])
  return (tokens as string[]).toSorted((a, b) => seqOf(a) - seqOf(b))[0]
}
