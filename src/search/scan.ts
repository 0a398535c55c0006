import { CONVERSATION_KINDS, type Kind } from "../core/conversation.ts"
import { messageText } from "../core/format.ts"
import { formatRef } from "../core/ref.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../store/history/store.ts"
import { matchTexts } from "../store/index/snippets.ts"
import { createRowFolding } from "./fold.ts"
import { findPassage } from "./passage.ts"
import type { Query } from "./query.ts"
import type { Scope } from "./scope.ts"
import type { SearchHit, SearchInput, SearchOutcome } from "./search.ts"

/** The longest time that a search without an index may take, in milliseconds. The answer says how much was read. */
const MAX_TIME_MS = 3_000
const PAGE_SIZE = 50

/** Searches by reading the history, newest first, if there is no index. This is slower, and the outcome says so. */
export async function scanHistory(
  store: HistoryReader,
  query: Query,
  input: SearchInput,
  filters: Scope["filters"],
): Promise<Pick<SearchOutcome, "hits" | "total" | "total_is_at_least" | "matched" | "mode" | "scanned">> {
  const deadline = Date.now() + MAX_TIME_MS
  const words = query.words.map((word) => word.toLowerCase())
  const wantedRefs = filters.conversations && new Set(filters.conversations.map(formatRef))
  const excludedRefs = new Set(filters.excludedConversations?.map(formatRef))
  const phrases = query.required.map(({ words: phrase }) => phrase)
  const excludedWords = query.without.map((word) => word.toLowerCase())
  const hits: ScannedHit[] = []
  let total = 0
  let scanned = 0
  let listed = 0
  let complete = true
  for await (const page of listedPages(store, input, filters)) {
    listed += page.added
    if (Date.now() >= deadline) {
      complete = false
      break
    }
    for (const row of page.rows) {
      if (Date.now() >= deadline) {
        complete = false
        break
      }
      scanned++
      const name = formatRef(row.ref)
      if ((wantedRefs && !wantedRefs.has(name)) || excludedRefs.has(name)) continue
      if (filters.sources && !filters.sources.includes(row.ref.source)) continue
      let best: { message: StoredMessage; text: string } | undefined
      let count = 0
      for (const message of await store.messages(row.ref)) {
        if (message.copied || isFilteredOut(message, row.ended_at, input)) continue
        const text = messageText(message, "full")
        const lower = text.toLowerCase()
        const contains = (word: string) => lower.includes(word)
        if (!words.every(contains) || !phrases.every(contains) || excludedWords.some(contains)) continue
        count++
        best ??= { message, text }
      }
      total += count
      if (!best) continue
      const unscored = { score: 0, parts: [], evidence: { rank_source: "lexical" as const } }
      hits.push({ row, number: best.message.number, more: count - 1, ...unscored, ...best })
    }
  }
  const rows = input.prose ? await foldedRows(store, hits, input, filters) : hits
  const shown = rows.slice(input.offset, input.offset + input.limit)
  const textMatches = matchTexts(
    shown.map((hit) => hit.text),
    [...query.terms, ...query.required],
    query.words,
  )
  const passageQuery = { query, weights: query.words.map(() => 1) }
  const passages = await Promise.all(
    shown.map(
      ({ message, row }) =>
        input.prose &&
        message &&
        findPassage(store, undefined, message, { ref: row.ref, numbers: [], bestCoverage: 1 }, passageQuery),
    ),
  )
  return {
    hits: shown.map(({ text: _, ...hit }, i) => ({ ...hit, snippet: (passages[i] || textMatches[i]!).snippet })),
    total,
    total_is_at_least: !complete,
    matched: "all",
    mode: "scan",
    scanned: { conversations: scanned, of: listed },
  }
}

/** Lists the conversations and then the documents that the filters may select. `added` sums up to the number of all of them. */
export async function* listedPages(
  store: HistoryReader,
  { project, from, to, inside }: Pick<SearchInput, "project" | "from" | "to" | "inside">,
  { kinds, excludedKinds, collections, excludedCollections }: Scope["filters"],
): AsyncGenerator<{ rows: ConversationRow[]; added: number }> {
  const isSelected = (kind: Kind) => (kinds === undefined || kinds.includes(kind)) && !excludedKinds?.includes(kind)
  const lists: (string[] | undefined)[] = []
  if (CONVERSATION_KINDS.some((kind) => kind !== "document" && isSelected(kind))) lists.push(undefined)
  if (isSelected("document")) {
    const known = (await store.collections()).map(({ name }) => name)
    lists.push(collections ?? known.filter((name) => !excludedCollections?.includes(name)))
  }
  for (const collections of lists)
    for (let offset = 0; ; offset += PAGE_SIZE) {
      const filter = { project, from, to, kinds, inside, collections }
      const { rows, total } = await store.list({ ...filter, limit: PAGE_SIZE, offset })
      if (rows.length === 0) break
      yield { rows, added: offset === 0 ? total : 0 }
    }
}

type ScannedHit = Omit<SearchHit, "snippet"> & { text: string }

/**
 * Returns no more rows than are needed for the requested page. Unless each message has its own row, a conversation and its
 * subagents share one, which shows the newest of them.
 */
async function foldedRows(
  store: HistoryReader,
  hits: ScannedHit[],
  { offset, limit, by }: SearchInput,
  filters: Scope["filters"],
): Promise<ScannedHit[]> {
  const findRow = createRowFolding(store, filters)
  const rows = new Map<string, ScannedHit>()
  for (const hit of hits) {
    if (rows.size >= offset + limit) break
    const { name, parent } = await findRow(hit.row)
    const key = by === "message" ? formatRef(hit.row.ref) : name
    const leader = rows.get(key)
    if (leader) leader.more += 1 + hit.more
    else rows.set(key, { ...hit, parent })
  }
  return [...rows.values()]
}

/** Returns true if the filters for single messages leave this one out. */
export function isFilteredOut(
  message: StoredMessage,
  endedAt: number | undefined,
  input: Pick<SearchInput, "from" | "to" | "roles" | "tools">,
): boolean {
  const { from, to, roles, tools } = input
  if (roles && !roles.includes(message.role)) return true
  const usedTools = message.parts.flatMap((part) => ("tool" in part && part.tool ? [part.tool.toLowerCase()] : []))
  if (tools && !tools.some((tool) => usedTools.includes(tool.toLowerCase()))) return true
  const at = message.at ?? endedAt
  if (at === undefined) return from !== undefined || to !== undefined
  return (from !== undefined && at < from) || (to !== undefined && at > to)
}
