import { loadSettings } from "../../config/load.ts"
import type { Settings } from "../../config/settings.ts"
import { ROLES, type Role } from "../../core/conversation.ts"
import { parseDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { formatRef, type Ref } from "../../core/ref.ts"
import { charactersWithin, estimateTokens } from "../../core/tokens.ts"
import type { TraceFacts } from "../../core/trace.ts"
import { budgetTooSmall, largestPassing } from "../../render/budget.ts"
import { toJson } from "../../render/json.ts"
import { many } from "../../render/words.ts"
import { parseQuery, type QueryFilters } from "../../search/query.ts"
import type { Filters } from "../../search/scope.ts"
import type { SearchHit, SearchInput, SearchOutcome } from "../../search/search.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import { clipSnippet } from "../../store/index/snippets.ts"
import { markDamaged } from "../../store/sqlite/database.ts"
import type { Dex } from "../context.ts"
import { conversationOf, dateRange } from "../fields.ts"
import { countPersonConversations } from "../kinds.ts"
import { resolveSession } from "../resolve.ts"
import { matchingSources, type NamedSource, namedSources } from "../source-named.ts"
import { historyNote } from "../unread.ts"
import { originsText } from "../view.ts"
import { correctionNote, filterNotes, searchWithCorrections } from "./forgiving.ts"
import { notesOn, privateNote } from "./notes.ts"
import type { SearchToolInput } from "./search.ts"

/** How long the first search reads the newest conversations if nothing was ever read on this machine, in milliseconds. */
const FIRST_READ_MS = 3_500
const EXAMPLE = 'dex search "refresh token race" --from 30d'
/**
 * The approximate size of an answer, in tokens. The more rows it has, the shorter their snippets are, so that an answer does not
 * fill an agent's context.
 */
const ANSWER_TOKENS = 1_600
const ENVELOPE_CHARS = 180
const SNIPPET_KEY_CHARS = '"snippet":"",'.length
const MAX_SNIPPET_LENGTH = 300
const MIN_SNIPPET_LENGTH = 80

/** Searches. With `prose`, the shown messages are chosen for people to read; callers that build answers want the best matches. */
export async function run(dex: Dex, input: SearchToolInput, { prose = true } = {}) {
  if (!dex.isTeam && (!dex.hasHistory() || (await isHistoryEmpty(dex)))) {
    const { syncWithThreads } = await import("../../ingest/sync-thread.ts")
    await syncWithThreads(await dex.syncDeps(), dex.home.index, {
      deadline: Date.now() + FIRST_READ_MS,
      onProgress: dex.onProgress,
    })
  }
  const store = await dex.store()
  const conversation = await resolveSession(dex, input.session)
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env, project: dex.project })
  const sources = await namedSources(dex)
  const query = parseQuery(input.query ?? "", (name, value) => isFilterValue(name, value, sources, dex.now()))
  const { source } = query.filters
  const filtersFromQuery = {
    ...query.filters,
    ...(source !== undefined && { source: matchingSources(source, sources)[0]! }),
  }
  const filters = { ...filtersFromQuery, ...filtersFromOptions(input) }
  const listing =
    query.terms.length === 0 && isOfHistory(input) && !conversation ? await import("./browse.ts") : undefined
  if (listing?.canBrowse(filters)) {
    const { results, total, notes } = await listing.browse(dex, filters, input)
    dex.trace?.(browseFacts(results, input.offset))
    const unread = await historyNote(dex, { found: results.length > 0 })
    const allNotes = unread === undefined ? notes : [...notes, unread]
    const answer = (count: number) => ({
      results: results.slice(0, count).map(withShortDate),
      total,
      matched: "all" as const,
      mode: "list" as const,
      notes:
        count === results.length ? allNotes : [...allNotes, leftOutNote(results.length - count, input.offset + count)],
    })
    return fitRows(answer, results.length, input.max_tokens)
  }
  if (input.query === undefined)
    throw new DexError(
      "usage",
      `A search needs words, or at least a file, project, source, model or date. For example: ${EXAMPLE}`,
    )
  const index = await dex.index()
  const searchInput = {
    ...filtersOf(filters, dex.now()),
    conversation,
    among: input.in,
    noGlobal: input.no_global || undefined,
    collections:
      input.collections &&
      (await (await import("../docs/collections.ts")).requireVisibleCollections(dex, input.collections)),
    query,
    ...(await modelsFor(dex, settings, query.text)),
    inside: dex.project,
    by: input.by,
    limit: input.limit,
    offset: input.offset,
    prose,
  }
  const { found: searchOutcome, meant: corrections } = await searchWithCorrections(store, index, searchInput)
  // A damaged index is marked, so that nobody uses it until the next sync rebuilds it.
  if (searchOutcome.index_is_damaged) markDamaged(dex.home.index)
  const isDamaged = searchOutcome.index_is_damaged || (searchOutcome.mode === "scan" && (await dex.indexIsDamaged()))
  const outcome = { ...searchOutcome, index_is_damaged: isDamaged }
  dex.trace?.(searchFacts(outcome, input.offset, conversation))
  const notes = [
    ...(corrections?.map(correctionNote) ?? []),
    ...(outcome.hits.length === 0 ? await filterNotes(store, index, searchInput, filters) : []),
    ...notesOn(
      outcome,
      query,
      (await store.progress())?.at,
      await historyNote(dex, { found: outcome.hits.length > 0 }),
      { now: dex.now(), isTeam: dex.isTeam },
    ),
    // An agent does not get this note, because it could find out which words a private project contains.
    ...(dex.caller === undefined ? privateNote(outcome) : []),
  ]
  const rows = outcome.hits.map((hit) => ({
    ...withShortDate(resultHead(hit)),
    ...(hit.message && sectionRef(hit.row, hit.message)),
    message_index: hit.number,
    role: hit.message?.role,
    origin: hit.message && originsText(hit.message),
    more_matches: hit.more,
    ...(outcome.mode === "hybrid" || input.explain ? hit.evidence : {}),
    score_final: input.explain ? hit.score : roundScore(hit.score),
    score_parts: input.explain ? hit.parts : undefined,
  }))
  const charsLeft = charactersWithin(ANSWER_TOKENS) - JSON.stringify({ rows, notes }).length - ENVELOPE_CHARS
  const snippetChars = Math.max(
    MIN_SNIPPET_LENGTH,
    Math.min(MAX_SNIPPET_LENGTH, Math.floor(charsLeft / Math.max(1, rows.length)) - SNIPPET_KEY_CHARS),
  )
  const results = outcome.hits.map((hit, i) => ({ ...rows[i]!, snippet: clipSnippet(hit.snippet, snippetChars) }))
  const answer = (kept: number) => ({
    results: results.slice(0, kept),
    total: outcome.total,
    total_is_at_least: outcome.total_is_at_least || undefined,
    conversations: outcome.kinds && countPersonConversations(outcome.kinds),
    kinds: outcome.kinds,
    matched: outcome.matched,
    replaced: corrections?.map(({ typed, by }) => ({ typed, by })),
    mode: outcome.mode,
    reranked: outcome.reranked || undefined,
    degraded: outcome.degraded.length > 0 ? outcome.degraded : undefined,
    shards: outcome.shards,
    notes: kept === results.length ? notes : [...notes, leftOutNote(results.length - kept, input.offset + kept)],
  })
  return fitRows(answer, results.length, input.max_tokens)
}

function fitRows<A extends object>(answer: (count: number) => A, rows: number, maxTokens: number | undefined): A {
  const fits = (count: number) => maxTokens === undefined || estimateTokens(`${toJson(answer(count))}\n`) <= maxTokens
  if (fits(rows)) return answer(rows)
  const largest = largestPassing(Math.min(1, rows), rows - 1, fits)
  if (largest === undefined) throw budgetTooSmall(maxTokens!, answer(Math.min(1, rows)))
  return answer(largest)
}

function leftOutNote(rows: number, offset: number): string {
  return `${many(rows, "more row")} left out to stay within max_tokens. Continue with offset ${offset}.`
}

/** The first fields of a result. A subagent is shown with its parent's title and date, but with its own ref and sizes. */
function resultHead({ row, parent }: SearchHit) {
  const head = conversationOf(row)
  if (!parent) return head
  const { id, title, project, source, date } = conversationOf(parent)
  return { ...head, title, project, source, date, parent: id }
}

/** The ref of a section, which ends with its heading. Empty for a message, because its number is a field of its own. */
function sectionRef({ ref }: ConversationRow, { parts }: StoredMessage): { id?: string } {
  const section = parts.find((part) => part.type === "text")?.section?.name
  return section ? { id: formatRef({ ...ref, section }) } : {}
}

function withShortDate<T extends { date: string }>(conversation: T): T {
  return { ...conversation, date: conversation.date.replace(/\.\d+Z$/, "Z") }
}

function roundScore(score: number): number {
  return Number(score.toPrecision(4))
}

/** The configured model servers, with the query to send them. It is redacted, because people paste secrets into searches. */
async function modelsFor(
  dex: Dex,
  settings: Settings,
  queryText: string,
): Promise<Pick<SearchInput, "meaning" | "rerank">> {
  const usesMeaning = settings["embed.provider"] !== "none"
  const usesReranking = settings["search.rerank"] !== "off"
  if (!usesMeaning && !usesReranking) return {}
  const { embedSettings, rerankSettings } = await import("../../config/servers.ts")
  const { redactRecord } = await import("../../redact/redact.ts")
  const text = String(redactRecord({ query: queryText }).record.query)
  const environment = { env: dex.machine.env, home: dex.machine.home }
  return {
    meaning: usesMeaning
      ? { settings: () => embedSettings(settings, environment), timeoutMs: embedTimeout(settings), text }
      : undefined,
    rerank: usesReranking
      ? {
          settings: () => rerankSettings(settings, environment) ?? {},
          timeoutMs: settings["rerank.timeout_ms"],
          text,
        }
      : undefined,
  }
}

/**
 * The minimum time limit for the local model, in milliseconds. On a busy machine the model is slow, but waiting for it improves the
 * answer.
 */
const LOCAL_TIMEOUT_MS = 500

function embedTimeout(settings: Settings): number {
  const timeoutMs = settings["embed.timeout_ms"]
  return settings["embed.provider"] === "local" ? Math.max(timeoutMs, LOCAL_TIMEOUT_MS) : timeoutMs
}

function isOfHistory({ in: where, collections }: SearchToolInput): boolean {
  return where !== "docs" && collections === undefined
}

/** Returns true if dex has never found a transcript to read. */
async function isHistoryEmpty(dex: Dex): Promise<boolean> {
  return ((await (await dex.store()).progress())?.total ?? 0) === 0
}

/** The filters that were given as options. They override those in the query. */
function filtersFromOptions({ project, source, from, to, file, tool, role, model }: SearchToolInput): QueryFilters {
  const flags = { project, source, from, to, file, tool, role, model }
  return Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined))
}

function filtersOf({ project, source, from, to, file, tool, role, model }: QueryFilters, now: number): Filters {
  return {
    project,
    sources: source === undefined ? undefined : [source],
    ...dateRange({ from, to }, now),
    file,
    tools: tool === undefined ? undefined : [tool],
    roles: role === undefined ? undefined : [role as Role],
    model,
  }
}

/** Returns false if the value does not suit the filter. `from:nowhere` is then searched for as two words, since it is not a date. */
function isFilterValue(name: string, value: string, known: NamedSource[], now: number): boolean {
  if (name === "source") return matchingSources(value, known).length === 1
  if (name === "role") return ROLES.some((role) => role === value)
  if (name !== "from" && name !== "to") return true
  try {
    parseDate(value, name, now)
    return true
  } catch {
    return false
  }
}

const MAX_SKIPPED = 40

/** The trace facts of a search. */
function searchFacts(outcome: SearchOutcome, offset: number, conversation: Ref | undefined): TraceFacts {
  return {
    args: conversation && { session: formatRef(conversation) },
    mode: outcome.mode,
    inputs: {
      candidates: outcome.candidates,
      index_is_current: outcome.index_is_current,
      degraded: outcome.degraded.length > 0 ? outcome.degraded : undefined,
      conversations: outcome.scanned?.of,
    },
    ranking: outcome.hits.map((hit, i) => ({
      rank: offset + i + 1,
      ref: formatRef({ ...hit.row.ref, number: hit.number }),
      score_final: hit.score,
      ...hit.evidence,
      terms: hit.parts,
      summary: (hit.parent ?? hit.row).title?.text ?? "",
    })),
    skipped: outcome.skipped.slice(0, MAX_SKIPPED).map(({ ref, number, score, reason }) => ({
      ref: formatRef({ ...ref, number }),
      score,
      skipped_reason: reason,
    })),
    skipped_total: outcome.skipped.length,
    truncation: outcome.total_is_at_least ? { candidates_counted_to: outcome.total } : undefined,
  }
}

/** The trace facts of a search without words. */
function browseFacts(rows: readonly { id: string; title: string }[], offset: number): TraceFacts {
  return {
    mode: "list",
    ranking: rows.map(({ id, title }, i) => ({
      rank: offset + i + 1,
      ref: id,
      score_final: 0,
      terms: [],
      summary: title,
    })),
  }
}
