import { parseDate } from "../../core/dates.ts"
import { grouped } from "../../core/format.ts"
import { formatRef } from "../../core/ref.ts"
import type { OutputOf } from "../../core/tool.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many, shortPath } from "../../render/words.ts"
import { isOneTerm, parseQuery } from "../../search/query.ts"
import { searchAsYouType, type TypedSearchCache } from "../../search/typing.ts"
import type { HistoryReader } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { describeOtherKinds } from "../../tools/kinds.ts"
import { list } from "../../tools/list/list.ts"
import { search } from "../../tools/search/search.ts"
import { hasNoConversations, nothingYetHtml } from "../actions.ts"
import { type Addresses, type PageRequest, runToolForPage, type ViewPage } from "../page.ts"
import {
  addressWith,
  type FindFilters,
  type FindRequest,
  facetsHtml,
  hasSearchWords,
  readFindRequest,
} from "./facets.ts"
import { agentNames, type ResultRow, rowsHtml } from "./rows.ts"

/** The search page. With `quick` it returns only the results of the quick search. */
export async function findPage({ query, to, dex, actionToken }: PageRequest): Promise<ViewPage> {
  const request = readFindRequest(query)
  const isQuick = query.has("quick")
  if (request.words === "" && !isQuick && !query.has("part") && (await hasNoConversations(dex)))
    return { title: "Find", section: "find", body: nothingYetHtml(to, actionToken) }
  const page = isQuick ? await quickRows(dex, request) : await findRows(dex, request)
  const title = request.words === "" ? "Find" : request.words
  if (!page) return { title, isPart: true, body: html`` }
  // A listing is updated while agents write; search results are not.
  const isListing = request.words === "" && request.offset === 0
  const body = html`<div class="finding"${isListing && html` data-live="${to.find({ ...request.filters, part: 1 })}"`}>${await resultsHtml(dex, request, page, to)}${!isQuick && (await facetsHtml(dex, request, to))}</div>`
  return {
    title,
    section: "find",
    words: request.words,
    hiddenFields: request.filters,
    body,
    isPart: isQuick || query.has("part"),
  }
}

async function resultsHtml(dex: Dex, request: FindRequest, page: FoundPage, to: Addresses): Promise<Html> {
  const { rows, summary, notes } = page
  const filterChips = await filterChipsHtml(dex, request, to)
  const heading = request.words === "" ? "Conversations" : `“${request.words}”`
  const notesHtml = notes.map((note) => html`<p class="note">${withCommands(note)}</p>`)
  const content =
    rows.length > 0
      ? html`${await rowsHtml(dex, rows, to, request.offset + 1)}${pagingHtml(request, page, to)}`
      : nothingHtml(request, to)
  return html`<section class="results" aria-label="Results"><h1>${heading}</h1><p class="says">${summary}<a class="to-narrow" href="#narrow">Narrow</a></p>${filterChips}${notesHtml}${content}</section>`
}

const FILTER_LABELS: Record<keyof FindFilters, string> = {
  source: "agent",
  project: "project",
  from: "from",
  to: "until",
  file: "file",
  tool: "tool",
  in: "in",
  subagents: "with",
}

/** The active filters, each with a link that removes it. */
async function filterChipsHtml(dex: Dex, request: FindRequest, to: Addresses): Promise<Html | undefined> {
  const { source, from, to: until } = request.filters
  const names = source === undefined ? new Map<string, string>() : await agentNames(dex, [source])
  const isMonth = from !== undefined && from === until
  const chips = Object.entries(request.filters).flatMap(([name, value]) => {
    if (isMonth && name === "to") return []
    const valueText =
      name === "project"
        ? shortPath(value, dex.machine.home)
        : name === "subagents"
          ? SUBAGENTS_LABEL
          : (names.get(value) ?? SCOPE_LABELS[value] ?? value)
    const change = isMonth && name === "from" ? { from: undefined, to: undefined } : { [name]: undefined }
    const label = isMonth && name === "from" ? "month" : FILTER_LABELS[name as keyof FindFilters]
    return html`<li><a href="${addressWith(to, request, change)}" title="Remove this filter"><span class="unseen">Remove </span>${label} <b>${valueText}</b><span aria-hidden="true"> ×</span></a></li>`
  })
  return chips.length === 0 ? undefined : html`<ul class="chips" aria-label="Narrowed to">${chips}</ul>`
}

const SCOPE_LABELS: Record<string, string> = { history: "conversations", docs: "documents" }
const SUBAGENTS_LABEL = "subagents and automated runs"

function pagingHtml(request: FindRequest, { hasMore }: FoundPage, to: Addresses): Html | undefined {
  const { offset } = request
  if (offset === 0 && !hasMore) return undefined
  const previousOffset = Math.max(0, offset - ROWS_AT_ONCE)
  const link = (target: number, rel: string, label: string) =>
    html`<a rel="${rel}" href="${addressWith(to, request, { offset: target === 0 ? undefined : target })}">${label}</a>`
  return html`<nav class="paging" aria-label="More results">${offset > 0 && link(previousOffset, "prev", "← Previous")}${hasMore && link(offset + ROWS_AT_ONCE, "next", "Next →")}</nav>`
}

/** Suggestions for a search without results. */
function nothingHtml(request: FindRequest, to: Addresses): Html | undefined {
  const { words, filters, offset } = request
  const isNarrowed = Object.keys(filters).length > 0
  if (offset > 0)
    return html`<p class="none">No more results. <a href="${addressWith(to, request)}">Back to the first page</a></p>`
  if (words === "" && !isNarrowed)
    return html`<p class="none">dex has not read any conversations yet. Run <code>dex sync</code> in a terminal, or <code>dex doctor</code> if you expected some; then load this page again.</p>`
  if (words === "" && filters.in === "docs") return undefined
  const singleWords = parseQuery(words).words
  const suggestions = [
    isNarrowed && words !== "" && html`<a href="${to.find({ q: words })}">Search everything</a> for these words`,
    singleWords.length > 1 &&
      html`One word alone: ${singleWords.slice(0, 8).map((word, i) => html`${i > 0 && ", "}<a href="${addressWith(to, request, { q: word })}">${word}</a>`)}`,
    html`<a href="${to.find()}">The newest conversations</a>`,
  ]
  return html`<div class="none"><p>Nothing found.</p><ul>${suggestions.map((suggestion) => suggestion && html`<li>${suggestion}</li>`)}</ul></div>`
}

/** Marks the text between backticks in a note as a command. */
function withCommands(note: string): Html[] {
  return note.split("`").map((text, i) => (i % 2 === 1 ? html`<code>${text}</code>` : html`${text}`))
}

/** Matches query syntax, which the quick search does not understand. */
const QUERY_SYNTAX = /["]|(?:^|\s)-\p{L}|\b[a-z]+:\S/u

/**
 * The newest conversations with these words, found fast enough for each key press. Undefined if the quick search cannot handle
 * this query or finds nothing; the full search also corrects typing mistakes.
 */
async function quickRows(dex: Dex, request: FindRequest): Promise<FoundPage | undefined> {
  const { words, filters } = request
  const { source, project, from, ...others } = filters
  if (!hasSearchWords(request) || QUERY_SYNTAX.test(words) || Object.keys(others).length > 0) return undefined
  const typedQuery = {
    text: words,
    sources: source === undefined ? undefined : [source],
    project,
    after: from === undefined ? undefined : parseDate(from, "from", dex.now()),
    inside: dex.project,
    limit: ROWS_AT_ONCE,
  }
  const store = await dex.store()
  const matches = await searchAsYouType(store, await dex.index(), typedQuery, await cacheFor(store))
  if (matches.length === 0) return undefined
  const rows = matches.map(({ ref, time, project: path = "", snippet, ...row }) => ({
    ...{ ...row, id: formatRef(ref), date: time, project: path },
    snippet,
  }))
  return { rows, summary: "Newest first; ranked when you stop typing", notes: [], hasMore: false }
}

/** The rows that were read for the previous key press, by history. They are valid until something is written. */
const caches = new WeakMap<HistoryReader, { revision: string; cache: TypedSearchCache }>()

async function cacheFor(store: HistoryReader): Promise<TypedSearchCache> {
  const revision = await store.revision()
  const previous = caches.get(store)
  if (previous?.revision === revision) return previous.cache
  const cache: TypedSearchCache = new Map()
  caches.set(store, { revision, cache })
  return cache
}

/** How many rows one page contains. */
export const ROWS_AT_ONCE = 20

export type FoundPage = {
  rows: readonly ResultRow[]
  /** The text above the rows, such as `21 to 40 of 93 conversations, newest first`. */
  summary: string
  notes: readonly string[]
  /** True if there may be more rows. */
  hasMore: boolean
}

/** The newest conversations if there are no words and no filters, otherwise the results of the search. */
async function findRows(dex: Dex, request: FindRequest): Promise<FoundPage> {
  const { words, filters, offset } = request
  const limit = ROWS_AT_ONCE
  const { subagents, in: scope, ...narrowing } = filters
  const isUnfiltered = words === "" && Object.keys(narrowing).length === 0
  if (isUnfiltered && scope === "docs") return collectionRows(dex)
  if (isUnfiltered || (words === "" && subagents !== undefined && filters.tool === undefined)) {
    const listed = await runToolForPage(dex, list, {
      ...narrowing,
      all: subagents !== undefined || undefined,
      limit,
      offset,
    })
    return newestRows(listed, offset)
  }
  if (!hasSearchWords(request) && filters.tool !== undefined)
    return emptyPage(["To filter by tool, also type words to search for."])
  const among: { in?: "history" | "docs" } = scope === "history" || scope === "docs" ? { in: scope } : {}
  const query = words === "" ? {} : { query: words }
  const output = await runToolForPage(dex, search, {
    ...query,
    ...narrowing,
    ...among,
    explain: true,
    limit,
    offset,
  })
  return searchRows(output, request)
}

function emptyPage(notes: string[]): FoundPage {
  return { rows: [], summary: "", notes, hasMore: false }
}

function newestRows({ conversations, total, left_out, note }: OutputOf<typeof list>, offset: number): FoundPage {
  const others = describeOtherKinds(left_out)
  return {
    rows: conversations,
    summary: rangeText(conversations.length, offset, total),
    notes: [...(note === undefined ? [] : [note]), ...(others === "" ? [] : [`Not shown: ${others}.`])],
    hasMore: offset + conversations.length < total,
  }
}

function searchRows(output: OutputOf<typeof search>, { words, offset }: FindRequest): FoundPage {
  const { results, total, total_is_at_least, conversations, kinds = {}, degraded = [] } = output
  const notes = [...output.notes, ...degraded]
  const shownCount = results.length
  if (output.mode === "list")
    return { rows: results, summary: rangeText(shownCount, offset, total), notes, hasMore: offset + shownCount < total }
  // With several words, the total counts messages that contain any of them, which is not useful.
  const isCounted = isOneTerm(parseQuery(words)) && !total_is_at_least && conversations !== undefined
  // If subagents or other kinds were counted too, the number of rows differs.
  const hasExactTotal = isCounted && conversations >= offset + shownCount && Object.keys(kinds).length === 1
  const rows =
    offset === 0 ? many(shownCount, "result") : `Results ${grouped(offset + 1)} to ${grouped(offset + shownCount)}`
  return {
    rows: results,
    summary:
      shownCount === 0
        ? ""
        : hasExactTotal
          ? rangeText(shownCount, offset, conversations, "best")
          : `${rows}, best first`,
    notes,
    hasMore: shownCount === ROWS_AT_ONCE && !(hasExactTotal && offset + shownCount >= conversations),
  }
}

function rangeText(shownCount: number, offset: number, total: number, order = "newest"): string {
  if (shownCount === 0) return ""
  const totalText = many(total, "conversation")
  const part =
    shownCount === total ? totalText : `${grouped(offset + 1)} to ${grouped(offset + shownCount)} of ${totalText}`
  return `${part}, ${order} first`
}

/** A page with only a note that names the collections. Their documents are not listed, because they have no date to sort by. */
async function collectionRows(dex: Dex): Promise<FoundPage> {
  const { collections = [] } = await runToolForPage(dex, list, { in: "docs" })
  if (collections.length === 0) return emptyPage(["There are no documents yet. To add some: `dex docs add <folder>`"])
  const names = collections.map(({ name }) => name).join(", ")
  return emptyPage([`Type words to search these documents: ${names}.`])
}
