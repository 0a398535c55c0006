import { LISTED_KINDS, type SourceId } from "../core/conversation.ts"
import { isoDate } from "../core/dates.ts"
import { isDexError } from "../core/error.ts"
import { messageText } from "../core/format.ts"
import { formatRef, type Ref } from "../core/ref.ts"
import type { ConversationRow, HistoryReader } from "../store/history/store.ts"
import type { NewestHit, NewestQuery } from "../store/index/newest.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import { matchTexts } from "../store/index/snippets.ts"
import type { Term } from "../store/index/terms.ts"
import type { Query } from "./query.ts"
import { scopeOf, withoutHidden } from "./scope.ts"

// A search that runs while somebody types. It must finish before the next key press, so it does not rank: the newest matches
// come first.

export type TypedQuery = {
  /** The text so far. Its last word may be unfinished. */
  text: string
  sources?: SourceId[]
  /** A part of the project's path. */
  project?: string
  /** Searches only messages from this time on. */
  after?: number
  /** The project in which the search runs. Its private conversations are included. */
  inside?: string
  limit: number
}

export type TypedRow = {
  ref: Ref
  title: string
  /** When the conversation ended; empty if unknown. */
  time: string
  source: SourceId
  project: string | undefined
  tags: string[] | undefined
  /** The text around the match, with the words marked. Undefined if nothing was typed, or if only the title matches. */
  snippet: string | undefined
}

/** The maximum number of rows in a result. Each row is read from the history. */
const MAX_ROWS = 20
/** The number of completions of the last word that are searched. The most common completions find nearly all messages. */
const MAX_ENDINGS = 40
const MAX_WORDS = 12
/**
 * The number of characters of a text that are searched for a snippet. Snippets are much shorter, and searching long texts would
 * take too long.
 */
const EXCERPT_CHARS = 3_000
/** The maximum number of messages that are cached in memory. */
const MAX_CACHED_MESSAGES = 500
/** The maximum number of titles to search if there is no index, or if it finds nothing. */
const MAX_TITLES = 1_000
const WORD = /[\p{L}\p{N}\p{Co}\p{M}]+/gu
/** The minimum length of an unfinished hash or number that is looked up in the index. */
const MIN_HASH_LETTERS = 4

/**
 * A cache of rows that were read for earlier keystrokes, most of which are needed again. The caller discards it when the history
 * changes.
 */
export type TypedSearchCache = Map<string, ReadHit>
type ReadHit = { row: ConversationRow; text: string | undefined }

/** Returns one row per conversation. Matches in titles or prompts come first, then all others, each newest first. */
export async function searchAsYouType(
  store: HistoryReader,
  index: SearchIndex | undefined,
  query: TypedQuery,
  cache: TypedSearchCache = new Map(),
): Promise<TypedRow[]> {
  const words = wordsOf(query.text)
  if (words.length === 0) return (await listRows(store, query, query.limit)).map((row) => rowOf(row))
  if (!index) return findByTitle(store, query, words)
  try {
    const rows = await findRows(store, index, query, words, cache)
    // In titles, any part of a word matches, so there may be matches that the index does not find.
    return rows.length > 0 ? rows : findByTitle(store, query, words)
  } catch (error) {
    if (!isDexError(error) || error.code !== "index_damaged") throw error
    return findByTitle(store, query, words) // The next sync rebuilds the index.
  }
}

/** The newest conversations in which one message contains all words and phrases of the query, at most `limit` of them. */
export async function conversationsContaining(
  store: HistoryReader,
  index: SearchIndex,
  { words, required, excluded }: Pick<Query, "words" | "required" | "excluded">,
  { inside, limit }: { inside: string | undefined; limit: number },
): Promise<Ref[]> {
  const scope = await scopeOf(store, { kinds: LISTED_KINDS, inside })
  const all = [...words.map((word): Term[] => [{ words: word }]), ...required.map((term) => [term])]
  if (!scope || all.length === 0) return []
  return (await index.newest({ ...scope.filters, excluded, all, limit })).map(({ ref }) => ref)
}

function wordsOf(text: string): string[] {
  return (text.toLowerCase().match(WORD) ?? []).slice(0, MAX_WORDS)
}

async function findRows(
  store: HistoryReader,
  index: SearchIndex,
  query: TypedQuery,
  words: string[],
  cache: TypedSearchCache,
): Promise<TypedRow[]> {
  const { sources, project, after, inside } = query
  const scope = await scopeOf(store, {
    kinds: LISTED_KINDS,
    sources,
    project,
    from: after,
    inside,
  })
  if (!scope) return []
  const all = await termsOf(index, query.text, words)
  const limit = Math.min(query.limit, MAX_ROWS)
  const lookup: NewestQuery = { ...scope.filters, all, limit }
  const prompts = await index.newest({ ...lookup, inPrompts: true })
  const promptRefs = new Set(prompts.map(({ ref }) => formatRef(ref)))
  const others = prompts.length < limit ? await index.newest(lookup) : []
  const rest = others.filter(({ ref }) => !promptRefs.has(formatRef(ref))).slice(0, limit - prompts.length)
  const visibleStore = withoutHidden(store, scope.filters)
  const hits = await Promise.all([prompts, rest].map((list) => readHits(visibleStore, list, cache)))
  return toRows(hits, all.flat(), words)
}

/** Returns a term for every finished word, and the possible completions of the last one. */
async function termsOf(index: SearchIndex, text: string, words: string[]): Promise<Term[][]> {
  const finished = words.map((word): Term[] => [{ words: word }])
  const last = words.at(-1)!
  if (!text.toLowerCase().endsWith(last)) return finished
  return [...finished.slice(0, -1), [{ words: last }, ...(await completionTerms(index, last))]]
}

async function completionTerms(index: SearchIndex, last: string): Promise<Term[]> {
  if (!/^\p{L}+$/u.test(last)) return last.length < MIN_HASH_LETTERS ? [] : [{ words: last, prefix: true }]
  return (await index.words(last, MAX_ENDINGS)).map(({ word }) => ({ words: word }))
}

/** Reads the hits and sorts them, newest first. Skips conversations that were forgotten since they were indexed. */
async function readHits(store: HistoryReader, hits: NewestHit[], cache: TypedSearchCache): Promise<ReadHit[]> {
  if (cache.size > MAX_CACHED_MESSAGES) cache.clear()
  const found = await Promise.all(
    hits.map(async ({ ref, number }) => {
      const name = `${formatRef(ref)}#${number}`
      const hit = cache.get(name) ?? (await readHit(store, ref, number))
      if (hit) cache.set(name, hit)
      return hit
    }),
  )
  return found.flatMap((hit) => hit ?? []).sort((a, b) => (b.row.ended_at ?? 0) - (a.row.ended_at ?? 0))
}

async function readHit(store: HistoryReader, ref: Ref, number: number): Promise<ReadHit | undefined> {
  const row = await store.conversation(ref)
  if (!row) return undefined
  const [message] = number > 0 ? await store.messages(ref, [number]) : []
  return { row, text: message && messageText(message, "full") }
}

function toRows(lists: ReadHit[][], terms: Term[], words: string[]): TypedRow[] {
  const hits = lists.flat()
  const textMatches = matchTexts(
    hits.map(({ text }) => excerptOf(text ?? "", words)),
    terms,
    words,
  )
  return hits.map(({ row, text }, i) => rowOf(row, text === undefined ? undefined : textMatches[i]!.snippet))
}

/** Returns the part of a long text around the last typed word that the text contains literally. */
function excerptOf(text: string, words: string[]): string {
  if (text.length <= EXCERPT_CHARS) return text
  const lower = text.toLowerCase()
  const positions = words.toReversed().map((word) => lower.indexOf(word))
  const first = positions.find((position) => position >= 0) ?? -1
  if (first < 0) return text
  const start = Math.max(0, first - EXCERPT_CHARS / 2)
  return text.slice(start, start + EXCERPT_CHARS)
}

async function findByTitle(store: HistoryReader, query: TypedQuery, words: string[]): Promise<TypedRow[]> {
  const rows = await listRows(store, query, MAX_TITLES)
  const hasAll = (title: string) => words.every((word) => title.includes(word))
  return rows
    .filter((row) => hasAll(row.title?.text.toLowerCase() ?? ""))
    .slice(0, query.limit)
    .map((row) => rowOf(row))
}

async function listRows(store: HistoryReader, query: TypedQuery, limit: number): Promise<ConversationRow[]> {
  const { sources, project, after, inside } = query
  const filters = {
    kinds: LISTED_KINDS,
    project,
    from: after,
    inside,
    limit,
    offset: 0,
  }
  if (!sources) return (await store.list(filters)).rows
  const lists = await Promise.all(sources.map((source) => store.list({ ...filters, source })))
  return lists
    .flatMap(({ rows }) => rows)
    .sort((a, b) => (b.ended_at ?? 0) - (a.ended_at ?? 0))
    .slice(0, limit)
}

function rowOf(row: ConversationRow, snippet?: string): TypedRow {
  return {
    ref: row.ref,
    title: row.title?.text ?? "(no title)",
    tags: row.tags,
    time: row.ended_at === undefined ? "" : isoDate(row.ended_at),
    source: row.ref.source,
    project: row.project,
    snippet,
  }
}
