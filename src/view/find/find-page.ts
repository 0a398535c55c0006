import { parseDate } from "../../core/dates.ts"
import { grouped } from "../../core/format.ts"
import { formatRef } from "../../core/ref.ts"
import type { OutputOf } from "../../core/tool.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many, shortPath } from "../../render/words.ts"
import { isOneTerm, parseQuery } from "../../search/query.ts"
import { searchAsTyped, type TypedSearchCache } from "../../search/typing.ts"
import type { HistoryReader } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { describeOtherKinds } from "../../tools/kinds.ts"
import { list } from "../../tools/list/list.ts"
import { search } from "../../tools/search/search.ts"
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
export async function findPage({ query, to, dex }: PageRequest): Promise<ViewPage> {
  const question = readFindRequest(query)
  const isQuick = query.has("quick")
  const found = isQuick ? await quickRows(dex, question) : await findRows(dex, question)
  const title = question.words === "" ? "Find" : question.words
  if (!found) return { title, isPart: true, body: html`` }
  // A listing is updated while agents write; search results are not.
  const isListing = question.words === "" && question.offset === 0
  const body = html`<div class="finding"${isListing && html` data-live="${to.find({ ...question.narrowed, part: 1 })}"`}>${await resultsHtml(dex, question, found, to)}${await facetsHtml(dex, question, to)}</div>`
  return {
    title,
    section: "find",
    words: question.words,
    hiddenFields: question.narrowed,
    body,
    isPart: isQuick || query.has("part"),
  }
}

async function resultsHtml(dex: Dex, question: FindRequest, found: FoundPage, to: Addresses): Promise<Html> {
  const { rows, says, notes } = found
  const narrowed = await narrowedHtml(dex, question, to)
  const heading = question.words === "" ? "Conversations" : `“${question.words}”`
  const notesHtml = notes.map((note) => html`<p class="note">${withCommands(note)}</p>`)
  const content =
    rows.length > 0
      ? html`${await rowsHtml(dex, rows, to, question.offset + 1)}${paging(question, found, to)}`
      : nothingHtml(question, to)
  return html`<section class="results" aria-label="Results"><h1>${heading}</h1><p class="says">${says}<a class="to-narrow" href="#narrow">Narrow</a></p>${narrowed}${notesHtml}${content}</section>`
}

const FILTER_LABELS: Record<keyof FindFilters, string> = {
  source: "agent",
  project: "project",
  from: "from",
  to: "until",
  file: "file",
  tool: "tool",
  in: "in",
}

/** The active filters, each with a link that removes it. */
async function narrowedHtml(dex: Dex, question: FindRequest, to: Addresses): Promise<Html | undefined> {
  const { source, from, to: until } = question.narrowed
  const names = source === undefined ? new Map<string, string>() : await agentNames(dex, [source])
  const isMonth = from !== undefined && from === until
  const chips = Object.entries(question.narrowed).flatMap(([name, value]) => {
    if (isMonth && name === "to") return []
    const says =
      name === "project" ? shortPath(value, dex.machine.home) : (names.get(value) ?? SCOPE_LABELS[value] ?? value)
    const change = isMonth && name === "from" ? { from: undefined, to: undefined } : { [name]: undefined }
    const label = isMonth && name === "from" ? "month" : FILTER_LABELS[name as keyof FindFilters]
    return html`<li><a href="${addressWith(to, question, change)}" title="Remove this filter"><span class="unseen">Remove </span>${label} <b>${says}</b><span aria-hidden="true"> ×</span></a></li>`
  })
  return chips.length === 0 ? undefined : html`<ul class="chips" aria-label="Narrowed to">${chips}</ul>`
}

const SCOPE_LABELS: Record<string, string> = { history: "conversations", docs: "documents" }

function paging(question: FindRequest, { hasMore }: FoundPage, to: Addresses): Html | undefined {
  const { offset } = question
  if (offset === 0 && !hasMore) return undefined
  const before = Math.max(0, offset - ROWS_AT_ONCE)
  const link = (at: number, rel: string, says: string) =>
    html`<a rel="${rel}" href="${addressWith(to, question, { offset: at === 0 ? undefined : at })}">${says}</a>`
  return html`<nav class="paging" aria-label="More results">${offset > 0 && link(before, "prev", "← Previous")}${hasMore && link(offset + ROWS_AT_ONCE, "next", "Next →")}</nav>`
}

/** Suggestions for a search without results. */
function nothingHtml(question: FindRequest, to: Addresses): Html | undefined {
  const { words, narrowed, offset } = question
  const isNarrowed = Object.keys(narrowed).length > 0
  if (offset > 0)
    return html`<p class="none">No more results. <a href="${addressWith(to, question)}">Back to the first page</a></p>`
  if (words === "" && !isNarrowed)
    return html`<p class="none">dex has read no conversation yet. Run <code>dex sync</code> in a terminal, or <code>dex doctor</code> if you expected some; then load this page again.</p>`
  if (words === "" && narrowed.in === "docs") return undefined
  const single = parseQuery(words).words
  const ways = [
    isNarrowed && words !== "" && html`<a href="${to.find({ q: words })}">Search everything</a> for these words`,
    single.length > 1 &&
      html`One word alone: ${single.slice(0, 8).map((word, i) => html`${i > 0 && ", "}<a href="${addressWith(to, question, { q: word })}">${word}</a>`)}`,
    html`<a href="${to.find()}">The newest conversations</a>`,
  ]
  return html`<div class="none"><p>Nothing found.</p><ul>${ways.map((way) => way && html`<li>${way}</li>`)}</ul></div>`
}

/** The note with the text between backticks marked as a command. */
function withCommands(note: string): Html[] {
  return note.split("`").map((text, i) => (i % 2 === 1 ? html`<code>${text}</code>` : html`${text}`))
}

/** Query syntax, which the quick search does not understand. */
const QUERY_SYNTAX = /["]|(?:^|\s)-\p{L}|\b[a-z]+:\S/u

/**
 * The newest conversations with these words, found before the next key press. Undefined if the quick search cannot handle this
 * query or finds nothing; the full search also corrects mistakes.
 */
async function quickRows(dex: Dex, question: FindRequest): Promise<FoundPage | undefined> {
  const { words, narrowed } = question
  const { source, project, from, ...others } = narrowed
  if (!hasSearchWords(question) || QUERY_SYNTAX.test(words) || Object.keys(others).length > 0) return undefined
  const typed = {
    text: words,
    sources: source === undefined ? undefined : [source],
    project,
    after: from === undefined ? undefined : parseDate(from, "from", dex.now()),
    inside: dex.project,
    limit: ROWS_AT_ONCE,
  }
  const store = await dex.store()
  const found = await searchAsTyped(store, await dex.index(), typed, await readBefore(store))
  if (found.length === 0) return undefined
  const rows = found.map(({ ref, time, project: path = "", snippet, ...row }) => ({
    ...{ ...row, id: formatRef(ref), date: time, project: path },
    snippet,
  }))
  return { rows, says: "Newest first, until you pause", notes: [], hasMore: false }
}

/** The rows that were read for the previous key press, by history. They are valid until something is written. */
const readOf = new WeakMap<HistoryReader, { revision: string; read: TypedSearchCache }>()

async function readBefore(store: HistoryReader): Promise<TypedSearchCache> {
  const revision = await store.revision()
  const previous = readOf.get(store)
  if (previous?.revision === revision) return previous.read
  const read: TypedSearchCache = new Map()
  readOf.set(store, { revision, read })
  return read
}

/** How many rows one page contains. */
export const ROWS_AT_ONCE = 20

export type FoundPage = {
  rows: readonly ResultRow[]
  /** The text above the rows: how many of how many, and in which order. */
  says: string
  notes: readonly string[]
  /** True if there may be more rows. */
  hasMore: boolean
}

/** The newest conversations if there is nothing to search for, otherwise the results of the search. */
async function findRows(dex: Dex, question: FindRequest): Promise<FoundPage> {
  const { words, narrowed, offset } = question
  const limit = ROWS_AT_ONCE
  const isOpen = words === "" && Object.keys(narrowed).every((name) => name === "in")
  if (isOpen && narrowed.in === "docs") return collectionRows(dex)
  if (isOpen) return newestRows(await runToolForPage(dex, list, { limit, offset }), offset)
  if (!hasSearchWords(question) && narrowed.tool !== undefined)
    return nothing(["To filter by tool, also type words to search for."])
  const { in: where, ...filters } = narrowed
  const among: { in?: "history" | "docs" } = where === "history" || where === "docs" ? { in: where } : {}
  const query = words === "" ? {} : { query: words }
  const output = await runToolForPage(dex, search, { ...query, ...filters, ...among, explain: true, limit, offset })
  return searchRows(output, question)
}

function nothing(notes: string[]): FoundPage {
  return { rows: [], says: "", notes, hasMore: false }
}

function newestRows({ conversations, total, left_out, note }: OutputOf<typeof list>, offset: number): FoundPage {
  const others = describeOtherKinds(left_out)
  return {
    rows: conversations,
    says: range(conversations.length, offset, total),
    notes: [...(note === undefined ? [] : [note]), ...(others === "" ? [] : [`Not shown: ${others}.`])],
    hasMore: offset + conversations.length < total,
  }
}

function searchRows(output: OutputOf<typeof search>, { words, offset }: FindRequest): FoundPage {
  const { results, total, total_is_at_least, conversations, kinds = {}, degraded = [] } = output
  const notes = [...output.notes, ...degraded]
  const shown = results.length
  if (output.mode === "list")
    return { rows: results, says: range(shown, offset, total), notes, hasMore: offset + shown < total }
  // With several words, the total counts messages that contain any of them, which is not useful.
  const isCounted = isOneTerm(parseQuery(words)) && !total_is_at_least && conversations !== undefined
  // If subagents or other kinds were counted too, the number of rows differs.
  const isAll = isCounted && conversations >= offset + shown && Object.keys(kinds).length === 1
  const rows = offset === 0 ? many(shown, "result") : `Results ${grouped(offset + 1)} to ${grouped(offset + shown)}`
  return {
    rows: results,
    says: shown === 0 ? "" : isAll ? range(shown, offset, conversations, "best") : `${rows}, best first`,
    notes,
    hasMore: shown === ROWS_AT_ONCE && !(isAll && offset + shown >= conversations),
  }
}

function range(shown: number, offset: number, total: number, order = "newest"): string {
  if (shown === 0) return ""
  const all = many(total, "conversation")
  const part = shown === total ? all : `${grouped(offset + 1)} to ${grouped(offset + shown)} of ${all}`
  return `${part}, ${order} first`
}

/** Documents are not listed, because they have no date to sort by. */
async function collectionRows(dex: Dex): Promise<FoundPage> {
  const { collections = [] } = await runToolForPage(dex, list, { in: "docs" })
  if (collections.length === 0) return nothing(["There are no documents yet. To add some: `dex docs add <folder>`"])
  const names = collections.map(({ name }) => name).join(", ")
  return nothing([`Type words to search these documents: ${names}.`])
}
