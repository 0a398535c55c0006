import { onlyAgents } from "../../agents/registry.ts"
import { DAY_MS, localDay } from "../../core/dates.ts"
import { grouped } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many, projectNames, shortDate, shortPath, when } from "../../render/words.ts"
import type { Dex } from "../../tools/context.ts"
import { dateRange } from "../../tools/fields.ts"
import { list } from "../../tools/list/list.ts"
import { agentNamed } from "../../tools/resolve.ts"
import { stats } from "../../tools/stats/stats.ts"
import { usage } from "../../tools/usage/usage.ts"
import { nothingYetHtml } from "../actions.ts"
import { type PageRequest, runToolForPage, type ViewPage } from "../page.ts"
import { type SpentRange, spentDays } from "../usage/spent-days.ts"
import { choiceLinks, emptySection, lateSection, requestedRange, sectionPage } from "./late-section.ts"

/** The home page: a year at a glance, the newest conversations, unfinished work, cost and projects. */
export async function homePage(request: PageRequest): Promise<ViewPage> {
  const { dex, to, query } = request
  const nothingYet: ViewPage = { title: "Home", section: "home", body: nothingYetHtml(to, request.actionToken) }
  if (!dex.hasHistory()) return nothingYet
  const statistics = await runToolForPage(dex, stats, { summary: true })
  if (Object.keys(statistics.kinds).length === 0) return nothingYet
  const days = requestedDays(query)
  const { from, until } = rangeOf(days, statistics, dex.now())
  const range = { from, to: until }
  const body = html`<div class="home">
<header class="title"><h1>What happened lately</h1>${storedLine(statistics, await countAgents(dex, statistics))}</header>
${lateSection("A year", to.path("year", { amount: query.get("year") ?? undefined }), "tall")}
<div class="beside">
${await newestSection(request)}
<div>${lateSection("Left open", to.path("left-open"))}${lateSection("Deleted soon", to.path("deleted-soon"))}</div>
</div>
${lateSection("Money and tokens", to.path("spent", { days, ...range }), "tall")}
${lateSection("Projects", to.path("projects", range))}
</div>`
  return { title: "Home", section: "home", body }
}

/** The number of agents that somebody used. An agent that only dex ran, as a model, is not counted. */
async function countAgents(dex: Dex, { sources, kinds }: OutputOf<typeof stats>): Promise<number> {
  const names = Object.keys(onlyAgents(sources))
  if ((kinds.dex ?? 0) === 0) return names.length
  const store = await dex.store()
  const spans = await store.spans({ kinds: ["person", "subagent", "automation"], inside: dex.project })
  const used = new Set(spans.map(({ source }) => source))
  return names.filter((name) => used.has(name)).length
}

function storedLine({ kinds, total_messages, date_range, sync }: OutputOf<typeof stats>, agents: number): Html {
  const { earliest } = date_range
  const { person = 0, note = 0, subagent = 0, automation = 0 } = kinds
  const unattended = subagent + automation
  const facts = [
    many(person, "conversation"),
    ...(unattended > 0 ? [`${grouped(unattended)} by subagents and scripts`] : []),
    ...(note > 0 ? [many(note, "note")] : []),
    many(total_messages, "message"),
    many(agents, "agent"),
    ...(earliest === undefined ? [] : [`since ${localDay(Date.parse(earliest))}`]),
    ...(sync ? [`${grouped(sync.done)} of ${grouped(sync.total)} read so far`] : []),
  ]
  return html`<p class="line">${facts.map((fact) => html`<span>${fact}</span>`)}</p>`
}

/** The last `days` days until today or, if nothing happened in them, until the last day with activity. */
function rangeOf(days: number, { date_range }: OutputOf<typeof stats>, now: number): SpentRange {
  const today = localDay(now)
  const newest = date_range.latest === undefined ? today : localDay(Date.parse(date_range.latest))
  const until = newest >= daysBefore(today, days - 1) ? today : newest
  return { from: daysBefore(until, days - 1), until }
}

const daysBefore = (day: string, count: number) => localDay(Date.parse(`${day}T12:00:00`) - count * DAY_MS)

const MAX_NEWEST = 10

/** The newest conversations. The section is updated while agents write. */
async function newestSection({ dex, to }: PageRequest): Promise<Html> {
  const { conversations, total } = await runToolForPage(dex, list, { limit: MAX_NEWEST })
  const nameOf = projectNames(conversations.map(({ project }) => project))
  const rows = await Promise.all(
    conversations.map(async ({ id, title, project, source, date, message_count, commits, ...work }) => {
      const agent = (await agentNamed(dex, source))?.name ?? source
      return html`<li class="row" tabindex="-1"><a class="title" href="${to.read(id)}">${title}</a><p class="line"><time datetime="${date}" title="${when(date)}">${shortDate(date, dex.now())}</time><span title="${shortPath(project, dex.machine.home)}">${nameOf(project)}</span><span>${agent}</span><span>${many(message_count, "message")}</span>${work.lines_added + work.lines_removed > 0 && html`<span><span class="added">+${work.lines_added}</span> <span class="removed">−${work.lines_removed}</span></span>`}${commits > 0 && html`<span>${many(commits, "commit")}</span>`}</p></li>`
    }),
  )
  const moreLink =
    total > MAX_NEWEST && html`<p class="note"><a href="${to.find()}">All ${many(total, "conversation")}</a></p>`
  return html`<section class="newest" data-live="${to.path("newest")}"><h2>Newest</h2>${rows.length === 0 ? html`<p class="none">No conversations by a person.</p>` : html`<ol class="rows">${rows}</ol>`}${moreLink}</section>`
}

export async function newestPart(request: PageRequest): Promise<ViewPage> {
  return { title: "Newest", isPart: true, body: await newestSection(request) }
}

const PERIOD_DAYS = [30, 90]
const TITLE = "Money and tokens"

/** The number of days that the home page covers. */
function requestedDays(query: URLSearchParams): number {
  return PERIOD_DAYS.find((days) => String(days) === query.get("days")) ?? PERIOD_DAYS[0]!
}

/** Cost and tokens by day and model. */
export async function spentPart(request: PageRequest): Promise<ViewPage> {
  const { dex, query, to } = request
  const range = requestedRange(query)
  if (!dex.hasHistory()) return emptySection(request, TITLE, "No conversations have been read yet.")
  const usageOutput = await runToolForPage(dex, usage, { by: "month", limit: 1, ...range })
  if (usageOutput.total.answers === 0 && request.isLearning()) return sectionPage(request, TITLE, html``)
  if (usageOutput.total.answers === 0) return emptySection(request, TITLE, "No tokens are recorded in these days.")
  const today = localDay(dex.now())
  const { from, to: until } = dateRange(range, dex.now())
  const shownRange = {
    from: from === undefined ? (usageOutput.days[0]?.day ?? today) : localDay(from),
    until: until === undefined ? today : localDay(until),
  }
  const links = choiceLinks(
    PERIOD_DAYS.map((days) => [String(days), `${days} days`] as const),
    String(requestedDays(query)),
    (days) => to.path("", { days }),
    "How many days",
  )
  const notes = [
    ...(usageOutput.plan === undefined ? [] : [`Money is the list price, covered by your plan (${usageOutput.plan}).`]),
    ...usageOutput.notes,
  ]
  return sectionPage(
    request,
    TITLE,
    html`<p class="note">${shownRange.from} to ${shownRange.until}</p>${spentDays(usageOutput, shownRange)}${notes.map((note) => html`<p class="note">${note}</p>`)}`,
    links,
  )
}
