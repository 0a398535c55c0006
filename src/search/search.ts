import type { Kind, SourceId } from "../core/conversation.ts"
import { messageText } from "../core/format.ts"
import { formatRef, type Ref } from "../core/ref.ts"
import type { IndexHit, IndexQuery, SearchIndex } from "../store/search-index.ts"
import { cutSnippets } from "../store/snippets.ts"
import type { ConversationRow, Store } from "../store/store.ts"
import { parseQuery, type Query } from "./query.ts"
import { scan } from "./scan.ts"

export type SearchInput = {
  query: string
  sources?: SourceId[]
  project?: string
  from?: number
  to?: number
  file?: string
  model?: string
  conversation?: Ref
  kinds?: Kind[]
  /** The project in which the question is asked. */
  inside?: string
  limit: number
  offset: number
}

export type SearchHit = {
  row: ConversationRow
  /** The best message, by its number. */
  number: number
  at?: number
  score: number
  snippet: string
  /** Further messages of this conversation among the best ones. */
  more: number
}

export type SearchOutcome = {
  hits: SearchHit[]
  /** Messages that match. */
  total: number
  total_is_at_least: boolean
  /** `some`: no message holds all the words, so those are shown that hold some of them. */
  matched: "all" | "some"
  /** `scan`: there was no index to ask, so the history itself was read, newest first, as far as the time allowed. */
  mode: "index" | "scan"
  /** False while the index has not yet seen all that is in the history. */
  index_is_current: boolean
  /** For a scan: how many conversations were looked at, and how many there are. */
  scanned?: { conversations: number; of: number }
  hidden_private: number
}

/** Hits are messages; several of one conversation are shown as one row, so more are fetched than are shown. */
const HITS_PER_ROW = 6

export async function search(store: Store, index: SearchIndex | undefined, input: SearchInput): Promise<SearchOutcome> {
  const query = parseQuery(input.query)
  const nothing: SearchOutcome = {
    hits: [],
    total: 0,
    total_is_at_least: false,
    matched: "all",
    mode: "index",
    index_is_current: true,
    hidden_private: 0,
  }
  if (query.all === undefined) return nothing
  const scope = await scopeOf(store, input)
  if (scope === undefined) return nothing
  if (!index)
    return { ...nothing, ...(await scan(store, query, input, scope.filters.conversations)), index_is_current: false }
  const limit = (input.offset + input.limit) * HITS_PER_ROW
  let matched: "all" | "some" = "all"
  let match = query.all
  let found = index.find({ ...scope.filters, match, limit })
  if (found.hits.length === 0 && query.some !== undefined) {
    matched = "some"
    match = query.some
    found = index.find({ ...scope.filters, match, limit })
  }
  const hidden =
    scope.hiddenProjects.length === 0
      ? 0
      : index.find({ ...scope.filters, excludedProjects: [], projects: scope.hiddenProjects, match, limit: 1 }).total
  return {
    hits: await showHits(
      store,
      groupByConversation(found.hits).slice(input.offset, input.offset + input.limit),
      match,
      query,
    ),
    total: found.total,
    total_is_at_least: found.total_is_at_least,
    matched,
    mode: "index",
    index_is_current: !(await index.isBehind(store)),
    hidden_private: hidden,
  }
}

type Scope = { filters: Omit<IndexQuery, "match" | "limit">; hiddenProjects: string[] }

/** The filters as the index takes them. Undefined when one of them can match nothing. */
async function scopeOf(store: Store, input: SearchInput): Promise<Scope | undefined> {
  const filters: Scope["filters"] = {}
  const wanted = input.project?.toLowerCase()
  const projects = await store.projects()
  const hiddenProjects = projects
    .filter((project) => project.private && project.path !== input.inside)
    .map((project) => project.path)
  if (wanted !== undefined) {
    filters.projects = projects.map((project) => project.path).filter((path) => path.toLowerCase().includes(wanted))
    if (filters.projects.length === 0) return undefined
  }
  if (hiddenProjects.length > 0) filters.excludedProjects = hiddenProjects
  if (input.sources) filters.sources = input.sources
  if (input.kinds) filters.kinds = input.kinds
  if (input.from !== undefined) filters.from = input.from
  if (input.to !== undefined) filters.to = input.to
  const chosen: Ref[][] = []
  if (input.conversation) chosen.push([input.conversation])
  if (input.file !== undefined) chosen.push(await store.touching(input.file))
  if (input.model !== undefined) chosen.push(await store.usingModel(input.model))
  if (chosen.length > 0) {
    filters.conversations = inAll(chosen)
    if (filters.conversations.length === 0) return undefined
  }
  const shown =
    wanted === undefined ? hiddenProjects : hiddenProjects.filter((path) => path.toLowerCase().includes(wanted))
  return { filters, hiddenProjects: shown }
}

function inAll([first = [], ...others]: Ref[][]): Ref[] {
  const names = others.map((refs) => new Set(refs.map(formatRef)))
  return first.filter((ref) => names.every((set) => set.has(formatRef(ref))))
}

type Group = { best: IndexHit; more: number }

/** What the index calls a conversation's title. */
const TITLE = 0

/** One group for each conversation, in the order of their best hits. A message tells more than the title it stands under. */
export function groupByConversation(hits: IndexHit[]): Group[] {
  const groups = new Map<string, Group>()
  for (const hit of hits) {
    const name = `${hit.ref.source}:${hit.ref.id}`
    const group = groups.get(name)
    if (!group) groups.set(name, { best: hit, more: 0 })
    else if (group.best.number === TITLE) group.best = hit
    else group.more++
  }
  return [...groups.values()]
}

async function showHits(store: Store, groups: Group[], match: string, query: Query): Promise<SearchHit[]> {
  const shown: (Omit<SearchHit, "snippet"> & { text: string })[] = []
  for (const { best, more } of groups) {
    const row = await store.conversation(best.ref)
    if (!row) continue // forgotten since it was indexed
    const number = Math.max(1, best.number)
    const [message] = await store.messages(best.ref, [number])
    if (!message && best.number !== TITLE) continue
    const text = message ? messageText(message, "full") : (row.title?.text ?? "")
    shown.push({
      row,
      number,
      score: best.score,
      more,
      text,
      ...(best.at !== undefined && { at: best.at }),
    })
  }
  const snippets = cutSnippets(
    shown.map((hit) => hit.text),
    match,
    query.words,
  )
  return shown.map(({ text: _, ...hit }, i) => ({ ...hit, snippet: snippets[i]! }))
}
