import { DexError } from "../../../../src/core/error.ts"
import type { Ref } from "../../../../src/core/ref.ts"
import { RANK_WEIGHTS } from "../../../../src/search/rank.ts"
import type { DocId } from "../../../../src/store/index/doc-id.ts"
import { INDEXED_KINDS } from "../../../../src/store/index/fields.ts"
import type { MemberAccess } from "../../../../src/store/index/index-scope.ts"
import {
  COUNT_LIMIT,
  type CountByKind,
  type IndexFilter,
  type IndexHit,
  type MatchCount,
} from "../../../../src/store/index/query.ts"
import { compareHits } from "../../../../src/store/index/scoped-scores.ts"
import type { Database } from "../../store/connection.ts"
import type { TenantKey } from "../../store/keyring.ts"
import { clusterStateOf, numbersOfProjects, numbersOfRefs, refsOfNumbers } from "../../store/word-index.ts"
import type { TeamWords, WordEngine } from "../engine.ts"
import { seqOf } from "../fts5.ts"
import { batchedSearch, type Cluster, ClusterUnavailable, type SearchAnswer } from "./client.ts"
import { placeOf } from "./document.ts"
import { namesOf, rarityOf } from "./indexes.ts"
import { type Clause, type FilterNumbers, filterClauses, wallOf } from "./query.ts"
import { type CountedTerm, termCounts } from "./term-counts.ts"

/** Searches the words of each tenant in the cluster or in the files of this hub, whichever has them. */
export function openWords(db: Database, cluster: Cluster | undefined, files: WordEngine): WordEngine {
  return {
    open: async (tenant) => {
      const state = await clusterStateOf(db, tenant)
      if (!state) return files.open(tenant)
      const { followed, key, leaving } = state
      const built = leaving ? await files.open(tenant) : undefined
      if (built) return built
      if (!cluster) throw new ClusterUnavailable("DEX_HUB_SEARCH_URL is not set")
      if (followed === null) return undefined
      return { followed, within: async (access) => wordsWithin({ db, cluster, tenant, key, followed }, access) }
    },
    close: () => {
      files.close()
      void cluster?.close()
    },
  }
}

type TenantParts = { db: Database; cluster: Cluster; tenant: number; key: TenantKey; followed: number }

/** The maximum number of results of a query, which is the cluster's own limit. */
const MAX_RESULTS = 10_000
/** In this order, so that the same messages are found whatever else the index contains. */
const BEST_FIRST = [
  { _score: "desc" },
  { at: { order: "desc", missing: "_last" } },
  { conversation: "asc" },
  { number: "asc" },
]
const NEWEST_FIRST = BEST_FIRST.slice(1)

/** The words of one tenant for one question of a member. Every request has the condition for what they may read. */
function wordsWithin({ db, cluster, tenant, key, followed }: TenantParts, access: MemberAccess): TeamWords {
  const wall = wallOf(access)
  const search = batchedSearch(cluster, namesOf(cluster.prefix, tenant).searched)
  const counts = termCounts({ db, tenant, key, wall, search })
  const totals = new Map<string, MatchCount>()

  /** The query for a filter, or undefined if it can match nothing. `all` are lists of terms of which one must match. */
  const queryFor = async (
    { required = [], excluded = [], ...filter }: Omit<IndexFilter, "match">,
    all: CountedTerm[][],
  ) => {
    refuseOthers(filter)
    const numbers = await numbersIn(db, tenant, filter)
    const [messages, requiredTerms, excludedTerms] = await Promise.all([
      counts.messages(),
      counts.of(required),
      counts.of(excluded),
    ])
    const clauses = filterClauses(filter, numbers, key)
    if (!clauses || all.some((terms) => terms.length === 0)) return undefined
    const scored = (one: CountedTerm): Clause => one.clause(rarityOf(messages, one.containing))
    const lists = all.map((terms) => ({ bool: { should: terms.map(scored), minimum_should_match: 1 } }))
    return {
      isComplete: [...all.flat(), ...requiredTerms, ...excludedTerms].every((one) => one.isComplete),
      query: {
        bool: {
          filter: [wall, ...clauses.must],
          must: [...lists, ...requiredTerms.map(scored)],
          must_not: [...clauses.not, ...excludedTerms.map((one) => one.clause())],
        },
      },
    }
  }
  const queryMatching = async ({ match, ...filter }: IndexFilter) => queryFor(filter, [await counts.of(match)])
  const hitsOf = async ({ hits }: SearchAnswer) => {
    const places = hits.hits.map((hit) => ({ hit, ...placeOf(hit._id) }))
    const refs = await refsOfNumbers(db, tenant, [...new Set(places.map(({ conversation }) => conversation))])
    return places.flatMap(({ hit, conversation, number }) => {
      const ref = refs.get(conversation)
      return ref ? [{ hit, ref, number }] : []
    })
  }

  return {
    isFastForCommonWords: true,
    countAhead: async (terms) => void (await counts.of(terms)),
    find: async ({ weights, limit, ...filter }) => {
      if (JSON.stringify(weights) !== JSON.stringify(RANK_WEIGHTS.columns))
        throw new Error("The weights of words are part of this index.")
      const request = await queryMatching(filter)
      if (!request) return []
      const answer = await search({
        query: request.query,
        sort: BEST_FIRST,
        size: Math.min(limit, MAX_RESULTS),
        track_total_hits: COUNT_LIMIT + 1,
      })
      totals.set(nameOfFilter(filter), matchCount(answer, request.isComplete))
      const found = (await hitsOf(answer)).map(
        ({ hit, ref, number }): IndexHit => ({
          doc: docOf(hit._id),
          ref,
          number,
          at: timeOf(hit.sort?.[1]),
          score: hit._score ?? 0,
        }),
      )
      return found.sort(compareHits)
    },
    newest: async ({ all, inPrompts, limit, ...filter }) => {
      if (inPrompts) throw new DexError("usage", "A team's prompts cannot be searched separately. Search everything.")
      if (all.length === 0) return []
      const request = await queryFor(filter, await Promise.all(all.map(counts.of)))
      if (!request) return []
      const answer = await search({
        query: request.query,
        sort: NEWEST_FIRST,
        collapse: { field: "conversation" },
        size: Math.min(limit, MAX_RESULTS),
      })
      return (await hitsOf(answer)).map(({ ref, number }) => ({ ref, number }))
    },
    containing: async (term, docs) => {
      if (docs.length === 0) return new Set()
      const [counted] = await counts.of([term])
      const among = { ids: { values: docs } }
      const answer = await search({
        query: { bool: { filter: [wall, among, counted!.clause()] } },
        size: Math.min(docs.length, MAX_RESULTS),
      })
      return new Set(answer.hits.hits.map(({ _id }) => docOf(_id)))
    },
    count: async (filter) => {
      const known = totals.get(nameOfFilter(filter))
      if (known) return known
      const request = await queryMatching(filter)
      if (!request) return { total: 0, total_is_at_least: false }
      const answer = await search({ query: request.query, size: 0, track_total_hits: COUNT_LIMIT + 1 })
      return matchCount(answer, request.isComplete)
    },
    countConversations: async (filter): Promise<CountByKind> => {
      const request = await queryMatching(filter)
      if (!request) return { total: 0, total_is_at_least: false, kinds: {} }
      const conversations = { terms: { field: "conversation", size: COUNT_LIMIT } }
      const answer = await search({
        query: request.query,
        size: 0,
        track_total_hits: COUNT_LIMIT + 1,
        aggs: { kinds: { terms: { field: "kind" }, aggs: { conversations } } },
      })
      const kinds: CountByKind["kinds"] = {}
      for (const { key: kind, conversations: found } of answer.aggregations?.kinds?.buckets ?? [])
        kinds[INDEXED_KINDS[Number(kind)]!] = found.buckets.length
      return { ...matchCount(answer, request.isComplete), kinds }
    },
    sizes: async (terms) => {
      const [messages, counted] = await Promise.all([counts.messages(), counts.of(terms)])
      return { messages, sample: messages, shares: counted.map(({ containing }) => containing / Math.max(1, messages)) }
    },
    isBehind: async (store) => seqOf(await store.revision()) > followed,
  }
}

/** Refuses the parts of a filter that only the index of a laptop knows. */
function refuseOthers({ newest, scope }: Pick<IndexFilter, "newest" | "scope">): void {
  if (newest !== undefined || scope !== undefined)
    throw new Error("A team's index in a cluster is not searched in parts.")
}

async function numbersIn(
  db: Database,
  tenant: number,
  { projects, excludedProjects, conversations, excludedConversations }: Omit<IndexFilter, "match">,
): Promise<FilterNumbers> {
  const ofProjects = (keys?: string[]) => keys && numbersOfProjects(db, tenant, keys)
  const ofRefs = (refs?: Ref[]) => refs && numbersOfRefs(db, tenant, refs)
  return {
    projects: await ofProjects(projects),
    excludedProjects: await ofProjects(excludedProjects),
    conversations: await ofRefs(conversations),
    excludedConversations: await ofRefs(excludedConversations),
  }
}

function nameOfFilter(filter: IndexFilter): string {
  const set = Object.entries(filter).filter(([, value]) => value !== undefined)
  return JSON.stringify(set.sort(([a], [b]) => (a < b ? -1 : 1)))
}

function matchCount({ hits }: SearchAnswer, isComplete: boolean): MatchCount {
  const { value } = hits.total!
  return { total: Math.min(value, COUNT_LIMIT), total_is_at_least: !isComplete || value > COUNT_LIMIT }
}

/** The cluster sorts messages without a time as if it were the lowest number. */
function timeOf(sorted: unknown): number | undefined {
  return typeof sorted === "number" && sorted > Number.MIN_SAFE_INTEGER ? sorted : undefined
}

function docOf(id: string): DocId {
  return id as unknown as DocId // each kind of index has ids of its own, which only that index reads
}
