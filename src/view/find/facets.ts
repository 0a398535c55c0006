import { CONVERSATION_KINDS, LISTED_KINDS } from "../../core/conversation.ts"
import { localDay, parseDate } from "../../core/dates.ts"
import { grouped } from "../../core/format.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many, projectNames, shortPath } from "../../render/words.ts"
import { parseQuery } from "../../search/query.ts"
import { intersectRefs, projectsHiddenFrom, projectsNamed } from "../../search/scope.ts"
import { conversationsContaining } from "../../search/typing.ts"
import type { ConversationSpan, ProjectRow } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { type MonthBar, monthBars } from "../charts.ts"
import type { Addresses } from "../page.ts"
import { agentNames } from "./rows.ts"

/** How many choices of a filter are visible. Further choices are folded. */
const MAX_CHOICES = 8
/** The minimum number of months in the chart, so that their bars are not too wide. */
const MIN_MONTHS = 12
const MAX_MONTHS = 24

/** The maximum number of conversations with the searched words that are counted. */
const MAX_COUNTED = 2_000

/**
 * The filters at the side. Each number counts conversations, and equals the number on the linked page. In a search, it counts
 * those in which one message contains all the words.
 */
export async function facetsHtml(dex: Dex, request: FindRequest, to: Addresses): Promise<Html> {
  const store = await dex.store()
  const { file, subagents } = request.filters
  const index = hasSearchWords(request) ? await dex.index() : undefined
  const query = parseQuery(request.words)
  const matching =
    index && (await conversationsContaining(store, index, query, { inside: dex.project, limit: MAX_COUNTED }))
  const lists = [
    ...(file === undefined ? [] : [await store.touching(file)]),
    ...(matching === undefined ? [] : [matching]),
  ]
  const spans = await store.spans({
    kinds: subagents === undefined ? LISTED_KINDS : CONVERSATION_KINDS.filter((kind) => kind !== "document"),
    inside: dex.project,
    ...(lists.length > 0 && { among: intersectRefs(lists) }),
  })
  const isCounted = !hasSearchWords(request) || (matching !== undefined && matching.length > 0)
  const notes = [
    ...(isCounted && query.words.length + query.required.length > 1
      ? ["Counts conversations in which one message contains all these words."]
      : []),
    ...(matching?.length === MAX_COUNTED ? [`Counts only the newest ${grouped(MAX_COUNTED)} of them.`] : []),
  ]
  const names = await agentNames(
    dex,
    spans.map(({ source }) => source),
  )
  const matches = filterBy(request.filters, await store.projects(), dex.now())
  const spansWithout = (...ignored: (keyof FindFilters)[]) => spans.filter((span) => matches(span, ignored))
  const agents = tally(spansWithout("source").map(({ source }) => source))
  const inProjects = spansWithout("project")
  const projects = tally(inProjects.flatMap(({ project }) => project ?? []))
  const path = (project: string) => shortPath(project, dex.machine.home)
  const choices = (name: "source" | "project", values: string[], labelOf: (value: string) => string, counts: CountOf) =>
    values.map((value) => ({
      label: labelOf(value),
      title: name === "project" ? path(value) : "",
      count: isCounted ? counts(value) : undefined,
      isChosen: request.filters[name]?.toLowerCase() === value.toLowerCase(),
      address: addressWith(to, request, { [name]: request.filters[name] === value ? undefined : value }),
    }))
  // A project's path may be a part of another project's path. The link finds both, so both are counted.
  const countInProject: CountOf = (name) =>
    inProjects.filter(({ project }) => project?.toLowerCase().includes(name.toLowerCase())).length
  const agentChoices = choices(
    "source",
    [...agents.keys()],
    (source) => names.get(source)!,
    (source) => agents.get(source)!,
  )
  const nameOf = projectNames([...projects.keys()])
  return html`<aside class="narrow" id="narrow" aria-label="Narrow">
${groupHtml("Time", isCounted ? monthsHtml(request, spansWithout("from", "to"), dex.now(), to) : undefined)}
${notes.map((note) => html`<p class="note">${note}</p>`)}
${groupHtml("Agent", listHtml(agentChoices))}
${groupHtml("Project", listHtml(choices("project", [...projects.keys()], nameOf, countInProject)))}
${groupHtml("Kind", listHtml(await kindChoices(dex, request, to)))}
${groupHtml("Dates, file and tool", filterForm(request, dex.now(), to))}
</aside>`
}

type CountOf = (value: string) => number
type FilterChoice = { label: string; title: string; count?: number; isChosen: boolean; address: string }

function groupHtml(title: string, content: Html | undefined): Html | undefined {
  return content && html`<section><h2>${title}</h2>${content}</section>`
}

/** A list of links. Undefined if there is nothing to choose. */
function listHtml(choices: FilterChoice[]): Html | undefined {
  if (choices.length < 2 && !choices.some(({ isChosen }) => isChosen)) return undefined
  const item = ({ label, title, count, isChosen, address }: FilterChoice) =>
    html`<li><a href="${address}"${title !== "" && html` title="${title}"`}${isChosen && html` class="chosen" aria-current="true"`}><span>${label}</span>${count !== undefined && html`<span class="number">${grouped(count)}</span>`}</a></li>`
  const foldedChoices = choices.slice(MAX_CHOICES)
  return html`<ul>${choices.slice(0, MAX_CHOICES).map(item)}</ul>${foldedChoices.length > 0 && html`<details${foldedChoices.some(({ isChosen }) => isChosen) && html` open`}><summary>${foldedChoices.length} more</summary><ul>${foldedChoices.map(item)}</ul></details>`}`
}

function tally(values: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return new Map([...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)))
}

/** Returns a function that filters as `dex list` does: by a part of a project's folder or remote, and by overlap with the period. */
function filterBy({ source, project, from, to }: FindFilters, projects: readonly ProjectRow[], now: number) {
  const wantedProjects = project === undefined ? undefined : projectsNamed(projects, project)
  const start = from === undefined ? undefined : parseDate(from, "from", now)
  const end = to === undefined ? undefined : parseDate(to, "to", now)
  return (span: ConversationSpan, ignored: readonly (keyof FindFilters)[]) =>
    (source === undefined || ignored.includes("source") || span.source === source) &&
    (wantedProjects === undefined ||
      ignored.includes("project") ||
      (span.project !== undefined && wantedProjects.includes(span.project))) &&
    (start === undefined || ignored.includes("from") || (span.ended_at ?? -1) >= start) &&
    (end === undefined || ignored.includes("to") || (span.started_at ?? end + 1) <= end)
}

function monthsHtml(request: FindRequest, spans: ConversationSpan[], now: number, to: Addresses): Html | undefined {
  const counts = countMonths(spans)
  const last = [...counts.keys()].sort().at(-1)
  if (last === undefined) return undefined
  const yearAgo = monthOf(new Date(Number(last.slice(0, 4)), Number(last.slice(5)) - MIN_MONTHS, 1).getTime())
  const [first = last] = [...counts.keys(), yearAgo].sort()
  const months = monthsBetween(first, last)
  const { from, to: until } = request.filters
  const bars = months.slice(-MAX_MONTHS).map((month): MonthBar => {
    const isOnly = from === month && until === month
    const isChosen = (from !== undefined || until !== undefined) && overlapsPeriod(month, from, until, now)
    const change = isOnly ? { from: undefined, to: undefined } : { from: month, to: month }
    return { month, count: counts.get(month) ?? 0, isChosen, address: addressWith(to, request, change) }
  })
  const tooltipOf = ({ month, count }: MonthBar) => `${month}: ${many(count, "conversation")}`
  const hiddenMonths = months.length - bars.length
  const items = bars.filter(({ count }) => count > 0).toReversed()
  return html`${monthBars(bars, "Conversations by month", tooltipOf)}${hiddenMonths > 0 && html`<p class="note">${many(hiddenMonths, "earlier month")} not drawn: <a href="${addressWith(to, request, { from: undefined, to: months[hiddenMonths - 1]! })}">before ${bars[0]!.month}</a></p>`}<details><summary>As a list</summary><ul>${items.map(({ month, count, isChosen, address }) => html`<li><a href="${address}"${isChosen && html` class="chosen"`}><span>${month}</span><span class="number">${grouped(count)}</span></a></li>`)}</ul></details>`
}

/** A conversation that continued into the next month counts in both months, as in their listings. */
function countMonths(spans: ConversationSpan[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { started_at, ended_at } of spans) {
    if (started_at === undefined || ended_at === undefined) continue
    for (const month of monthsBetween(monthOf(started_at), monthOf(ended_at)))
      counts.set(month, (counts.get(month) ?? 0) + 1)
  }
  return counts
}

function monthOf(timestamp: number): string {
  return localDay(timestamp).slice(0, 7)
}

/** The maximum number of months between two dates, in case a wrong clock produced absurd dates. */
const MAX_MONTHS_BETWEEN = 600

function monthsBetween(first: string, last: string): string[] {
  const months: string[] = []
  let [year, month] = first.split("-").map(Number) as [number, number]
  for (let n = 0; n < MAX_MONTHS_BETWEEN; n++) {
    const name = `${year}-${String(month).padStart(2, "0")}`
    if (name > last) break
    months.push(name)
    if (month === 12) year++
    month = (month % 12) + 1
  }
  return months
}

function overlapsPeriod(month: string, from: string | undefined, until: string | undefined, now: number): boolean {
  const start = parseDate(month, "from", now)
  const end = parseDate(month, "to", now)
  return (
    (from === undefined || end >= parseDate(from, "from", now)) &&
    (until === undefined || start <= parseDate(until, "to", now))
  )
}

const KINDS = [
  ["Both", undefined],
  ["Conversations", "history"],
  ["Documents", "docs"],
] as const

async function kindChoices(dex: Dex, request: FindRequest, to: Addresses): Promise<FilterChoice[]> {
  const store = await dex.store()
  const hiddenProjects = projectsHiddenFrom(await store.projects(), dex.project, dex.machine.platform)
  const visibleCollections = (await store.collections()).filter(
    ({ project }) => project === undefined || !hiddenProjects.includes(project),
  )
  if (visibleCollections.length === 0 && request.filters.in === undefined) return []
  return KINDS.map(([label, value]) => ({
    label,
    title: "",
    isChosen: request.filters.in === value,
    address: addressWith(to, request, { in: value }),
  }))
}

function filterForm(request: FindRequest, now: number, to: Addresses): Html {
  const { file, tool, from, to: until, subagents, ...others } = request.filters
  const hiddenFields = Object.entries({ ...(request.words !== "" && { q: request.words }), ...others })
  const field = (name: string, value: string | undefined, label: string, hint: string) =>
    html`<label><span>${label}</span><input type="text" name="${name}" value="${value ?? ""}" placeholder="${hint}" autocomplete="off" spellcheck="false"></label>`
  // A search always includes subagents: what they found is shown as part of the conversation that started them.
  const subagentSwitch =
    request.words === "" &&
    html`<label class="switch"><input type="checkbox" name="subagents" value="1"${subagents !== undefined && html` checked`}><span>Subagents and automated runs</span></label>`
  return html`<form action="${to.find()}">${hiddenFields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}${dateField("from", "From", from, now)}${dateField("to", "To", until, now)}${field("file", file, "A file it touched", "a part of its path")}${field("tool", tool, "A tool it used", "Bash, Edit, …")}${subagentSwitch}<button>Narrow</button></form>`
}

/** A date to choose. A month or a number of days in the address is shown as its first or last day. */
export function dateField(name: "from" | "to", label: string, value: string | undefined, now: number): Html {
  const day = value === undefined ? "" : localDay(parseDate(value, name, now))
  return html`<label><span>${label}</span><input type="date" name="${name}" value="${day}"></label>`
}

/** The filters, by their names in the search tool, and whether subagents are listed. */
const FILTER_NAMES = ["source", "project", "from", "to", "file", "tool", "in", "subagents"] as const

export type FindFilters = Partial<Record<(typeof FILTER_NAMES)[number], string>>

/** The search in a page's address. */
export type FindRequest = { words: string; filters: FindFilters; offset: number }

export function readFindRequest(query: URLSearchParams): FindRequest {
  const values = FILTER_NAMES.map((name) => [name, (query.get(name) ?? "").trim()])
  const offset = Number(query.get("offset"))
  return {
    words: (query.get("q") ?? "").trim(),
    filters: Object.fromEntries(values.filter(([, value]) => value !== "")),
    offset: Number.isSafeInteger(offset) && offset > 0 ? offset : 0,
  }
}

/** True if there are words to search for in messages; `project:api` alone is only a filter. */
export function hasSearchWords({ words }: FindRequest): boolean {
  return parseQuery(words).terms.length > 0
}

/** The address of the same search with some filters changed, starting at the first row. `undefined` removes a filter. */
export function addressWith(
  to: Addresses,
  { words, filters }: FindRequest,
  change: { [Name in keyof FindFilters]?: string | undefined } & { q?: string; offset?: number | undefined } = {},
): string {
  return to.find({ q: words === "" ? undefined : words, ...filters, ...change })
}
