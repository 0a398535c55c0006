import { loadSettings } from "../../config/load.ts"
import type { Settings } from "../../config/settings.ts"
import { ROLES, type Role } from "../../core/conversation.ts"
import { isoDate, parseDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
import { formatRef, type Ref } from "../../core/ref.ts"
import { charactersWithin, estimateTokens } from "../../core/tokens.ts"
import type { TraceFacts } from "../../core/trace.ts"
import { budgetTooSmall, largestPassing } from "../../render/budget.ts"
import { toJson } from "../../render/json.ts"
import { many } from "../../render/words.ts"
import type { PatternOutcome } from "../../search/pattern.ts"
import { parseQuery, type QueryFilters } from "../../search/query.ts"
import type { Filters } from "../../search/scope.ts"
import type { SearchHit, SearchInput, SearchOutcome } from "../../search/search.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import { clipSnippet } from "../../store/index/snippets.ts"
import { markDamaged } from "../../store/sqlite/database.ts"
import { changesLookup } from "../changed-later.ts"
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

/** How long the very first search on this machine may read the newest conversations before it answers, in milliseconds. */
const FIRST_READ_MS = 3_500
/** How many messages are read to fill a bundle. */
const MAX_PACKED = 60
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
const MAX_CHANGES_LOOKED_UP = 3

/**
 * Searches. With `prose`, the shown messages are chosen for people to read; callers that build answers want the best matches.
 * Snippets have at least `minSnippet` characters, however many rows there are.
 */
export async function run(
  dex: Dex,
  input: SearchToolInput,
  { prose = true, minSnippet = MIN_SNIPPET_LENGTH }: { prose?: boolean; minSnippet?: number } = {},
) {
  if (!dex.isTeam && (!dex.hasHistory() || (await isHistoryEmpty(dex)))) {
    const { syncWithThreads } = await import("../../ingest/sync-thread.ts")
    await syncWithThreads(await dex.syncDeps(), dex.home.index, {
      deadline: Date.now() + FIRST_READ_MS,
      onProgress: dex.onProgress,
    })
  }
  const store = await dex.store()
  const conversation = await resolveSession(dex, input.session)
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env, project: dex.place })
  const sources = await namedSources(dex)
  const query = parseQuery(input.query ?? "", (name, value) => isFilterValue(name, value, sources, dex.now()))
  const { source } = query.filters
  const filtersFromQuery = {
    ...query.filters,
    ...(source !== undefined && { source: matchingSources(source, sources)[0]! }),
  }
  const filters = { ...filtersFromQuery, ...filtersFromOptions(input) }
  const scopeFilters = async (): Promise<Filters> => ({
    ...filtersOf(filters, dex.now()),
    conversation,
    archived: input.archived,
    among: input.in,
    noGlobal: input.no_global || undefined,
    collections:
      input.collections &&
      (await (await import("../docs/collections.ts")).requireVisibleCollections(dex, input.collections)),
    inside: dex.project,
  })
  if (input.regex !== undefined || input.fixed !== undefined || input.whole_words || input.context || input.count) {
    return runPattern(dex, input, { typedWords: query.text, filters: await scopeFilters() })
  }
  const listing =
    query.terms.length === 0 && isOfHistory(input) && !conversation ? await import("./browse.ts") : undefined
  if (input.pack === undefined && listing?.canBrowse(filters, input.archived)) {
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
  if (input.pack !== undefined && query.terms.length === 0)
    throw new DexError(
      "usage",
      `--pack needs words to search for: dex search "refresh token race" --pack ${input.pack}`,
    )
  if (input.query === undefined)
    throw new DexError(
      "usage",
      `A search needs words, or at least a file, project, source, model or date. For example: ${EXAMPLE}`,
    )
  const index = await dex.index()
  const searchInput = {
    ...(await scopeFilters()),
    query,
    ...(await modelsFor(dex, settings, query.text)),
    by: input.pack === undefined ? input.by : ("message" as const),
    limit: input.pack === undefined ? input.limit : MAX_PACKED,
    offset: input.offset,
    prose: prose && input.pack === undefined,
  }
  const { found: searchOutcome, meant: corrections } = await searchWithCorrections(store, index, searchInput)
  // A damaged index is marked, so that no process uses it until the next sync rebuilds it.
  if (searchOutcome.index_is_damaged) markDamaged(dex.home.index)
  const isDamaged = searchOutcome.index_is_damaged || (searchOutcome.mode === "scan" && (await dex.indexIsDamaged()))
  const outcome = { ...searchOutcome, index_is_damaged: isDamaged }
  dex.trace?.(searchFacts(outcome, input.offset, conversation))
  const notes = [
    ...(corrections?.map(correctionNote) ?? []),
    ...(outcome.hits.length === 0
      ? await filterNotes(store, index, searchInput, { ...filters, ...(input.archived && { archived: "" }) })
      : []),
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
  if (input.pack !== undefined) {
    const { packPassages } = await import("./pack.ts")
    const pack = await packPassages(dex, outcome.hits, query.words, input.pack)
    return { results: [], pack, total: outcome.total, matched: outcome.matched, mode: outcome.mode, notes }
  }
  const changesOf = await changesLookup(dex)
  const rows = outcome.hits.map((hit, i) => ({
    ...withShortDate(resultHead(hit)),
    ...(hit.message && sectionRef(hit.row, hit.message)),
    message_index: hit.number,
    role: hit.message?.role,
    origin: hit.message && originsText(hit.message),
    ...(i < MAX_CHANGES_LOOKED_UP ? changesOf(hit.row.ref) : {}),
    more_matches: hit.more,
    ...(outcome.mode === "hybrid" || input.explain ? hit.evidence : {}),
    score_final: input.explain ? hit.score : roundScore(hit.score),
    score_parts: input.explain ? hit.parts : undefined,
  }))
  const charsLeft = charactersWithin(ANSWER_TOKENS) - JSON.stringify({ rows, notes }).length - ENVELOPE_CHARS
  const snippetChars = Math.max(
    minSnippet,
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
    notes: kept === results.length ? notes : [...notes, leftOutNote(results.length - kept, input.offset + kept)],
  })
  return fitRows(answer, results.length, input.max_tokens)
}

const PATTERN_EXAMPLE = "dex search -e 'refresh_?token' --project api"
const MAX_NAMED = 3

/** A search for a regular expression or a fixed text. It reads the conversations instead of the index. */
async function runPattern(
  dex: Dex,
  input: SearchToolInput,
  { typedWords, filters }: { typedWords: string; filters: Filters },
) {
  const { regex, fixed, whole_words, context, count, by, limit, offset } = input
  if (dex.isTeam) throw new DexError("usage", "--regex and --fixed search only the history on this machine.")
  const text = regex ?? fixed
  if (text === undefined)
    throw new DexError("usage", `--whole-words, --context and --count need --regex or --fixed: ${PATTERN_EXAMPLE}`)
  if ((regex !== undefined && fixed !== undefined) || typedWords !== "")
    throw new DexError(
      "usage",
      `Give either words, or --regex, or --fixed. Filters may stand beside them: ${PATTERN_EXAMPLE}`,
    )
  const outcome = await (await import("../../search/pattern.ts")).findPattern(await dex.store(), await dex.index(), {
    ...filters,
    pattern: { text, isFixed: fixed !== undefined, wholeWords: whole_words === true },
    by,
    contextLines: context,
    countsAll: count === true,
    limit,
    offset,
    onSlow: ({ read, of }) =>
      dex.onWait?.(`Searched the newest ${grouped(read)} of ${grouped(of)} conversations so far. Ctrl-C stops.`),
  })
  const rows = outcome.hits.map(({ row, parent, message, snippet, lines, more }) => ({
    ...withShortDate(resultHead({ row, parent })),
    ...sectionRef(row, message),
    message_index: message.number,
    role: message.role,
    origin: originsText(message),
    more_matches: more,
    score_final: 0,
    snippet: clipSnippet(snippet, MAX_SNIPPET_LENGTH),
    lines,
  }))
  const results = count ? [] : rows
  const unread = await historyNote(dex, { found: rows.length > 0 })
  const notes = [...(unread === undefined ? [] : [unread]), ...patternNotes(outcome)]
  const answer = (kept: number) => ({
    results: results.slice(0, kept),
    total: outcome.messages,
    total_is_at_least: !outcome.isComplete || outcome.tooSlow.length > 0 || undefined,
    conversations: outcome.conversations,
    matched: "all" as const,
    mode: "pattern" as const,
    notes: kept === results.length ? notes : [...notes, leftOutNote(results.length - kept, offset + kept)],
  })
  return fitRows(answer, results.length, input.max_tokens)
}

/** Notes on what was not searched. */
function patternNotes({ messages, isComplete, read, of, backTo, tooSlow }: PatternOutcome): string[] {
  const notes: string[] = []
  if (isComplete && messages === 0) notes.push(`Searched all ${grouped(of)} conversations, subagents and notes.`)
  if (!isComplete) {
    const until = backTo === undefined ? "" : `, back to ${isoDate(backTo).slice(0, 10)}`
    notes.push(
      `Searched the newest ${grouped(read)} of ${grouped(of)} conversations, subagents and notes${until}. A larger --limit shows more, and --count counts all.`,
    )
  }
  if (tooSlow.length > 0) {
    const named = tooSlow.slice(0, MAX_NAMED).map(formatRef).join(", ")
    const others = tooSlow.length > MAX_NAMED ? ` and ${grouped(tooSlow.length - MAX_NAMED)} others` : ""
    notes.push(
      `Not searched, because the pattern takes too long there: ${many(tooSlow.length, "message")} (${named}${others}). A pattern such as (a+)+ tries every way to divide a text; a+ finds the same.`,
    )
  }
  return notes
}

/** The answer with as many rows as its budget allows. Throws if not even one fits. */
function fitRows<A extends object>(answer: (count: number) => A, rowCount: number, maxTokens: number | undefined): A {
  const fits = (count: number) => maxTokens === undefined || estimateTokens(`${toJson(answer(count))}\n`) <= maxTokens
  if (fits(rowCount)) return answer(rowCount)
  const largest = largestPassing(Math.min(1, rowCount), rowCount - 1, fits)
  if (largest === undefined) throw budgetTooSmall(maxTokens!, answer(Math.min(1, rowCount)))
  return answer(largest)
}

function leftOutNote(rowCount: number, offset: number): string {
  return `${many(rowCount, "more row")} left out to stay within max_tokens. Continue with offset ${offset}.`
}

/** The first fields of a result. A subagent is shown with its parent's title and date, but with its own ref and sizes. */
function resultHead({ row, parent }: Pick<SearchHit, "row" | "parent">) {
  const head = conversationOf(row)
  if (!parent) return head
  const { id, title, tags, project, source, date } = conversationOf(parent)
  return { ...head, title, tags, project, source, date, parent: id }
}

/** The ref of a section, which ends with its heading. Empty for a message, because a separate field has its number. */
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
 * The minimum time limit for the local model, in milliseconds. On a busy machine the model is slow, but waiting for it improves
 * the answer.
 */
const LOCAL_TIMEOUT_MS = 500

function embedTimeout(settings: Settings): number {
  const timeoutMs = settings["embed.timeout_ms"]
  return settings["embed.provider"] === "local" ? Math.max(timeoutMs, LOCAL_TIMEOUT_MS) : timeoutMs
}

function isOfHistory({ in: where, collections }: SearchToolInput): boolean {
  return where !== "docs" && collections === undefined
}

/** Returns true if no sync has run yet, or if the last one found no transcripts. */
async function isHistoryEmpty(dex: Dex): Promise<boolean> {
  return ((await (await dex.store()).progress())?.total ?? 0) === 0
}

/** The filters that were given as options. They override those in the query. */
function filtersFromOptions({
  project,
  source,
  from,
  to,
  file,
  tool,
  role,
  model,
  tag,
}: SearchToolInput): QueryFilters {
  const flags = { project, source, from, to, file, tool, role, model, tag }
  return Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined))
}

function filtersOf({ project, source, from, to, file, tool, role, model, tag }: QueryFilters, now: number): Filters {
  return {
    project,
    sources: source === undefined ? undefined : [source],
    ...dateRange({ from, to }, now),
    file,
    tools: tool === undefined ? undefined : [tool],
    roles: role === undefined ? undefined : [role as Role],
    model,
    tag,
  }
}

/**
 * Returns false if the value does not suit the filter. `from:nowhere` is then searched for as two words, since it is not a date.
 */
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
