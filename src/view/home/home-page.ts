import { agentsIn } from "../../agents/registry.ts"
import { DAY_MS, localDay } from "../../core/dates.ts"
import { grouped } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many } from "../../render/words.ts"
import { stats } from "../../tools/stats/stats.ts"
import { message } from "../layout.ts"
import { askTool, type PageRequest, type ViewPage } from "../page.ts"
import type { SpentRange } from "../usage/spent-days.ts"
import { lateSection } from "./late-section.ts"
import { newestSection } from "./newest.ts"
import { daysAsked } from "./spent-part.ts"

/** What happened lately: a year at a glance, the newest conversations, money, projects, and what is open. */
export async function homePage(request: PageRequest): Promise<ViewPage> {
  const { dex, to, query } = request
  if (!dex.hasHistory()) return nothingYet()
  const kept = await askTool(dex, stats, { summary: true })
  if (Object.keys(kept.kinds).length === 0) return nothingYet()
  const days = daysAsked(query)
  const { from, until } = rangeOf(days, kept, dex.now())
  const range = { from, to: until }
  const body = html`<div class="home">
<header class="title"><h1>What happened lately</h1>${keptLine(kept)}</header>
${lateSection("A year", to.to("year", { amount: query.get("year") ?? undefined }), "tall")}
<div class="beside">
${await newestSection(request)}
<div>${lateSection("Left open", to.to("left-open"))}${lateSection("Deleted soon", to.to("deleted-soon"))}</div>
</div>
${lateSection("Money and tokens", to.to("spent", { days, ...range }), "tall")}
${lateSection("Projects", to.to("projects", range))}
</div>`
  return { title: "Home", section: "home", body }
}

function nothingYet(): ViewPage {
  const text =
    "dex has not read a conversation yet. Run `dex sync` in a terminal: it reads what your coding agents wrote on this machine. Then open this page again."
  return { title: "Home", section: "home", body: message("Nothing yet", text) }
}

function keptLine({ kinds, total_messages, sources, date_range, sync }: OutputOf<typeof stats>): Html {
  const { earliest } = date_range
  const { person = 0, note = 0, ...others } = kinds
  const unattended = Object.values(others).reduce((sum, count) => sum + count, 0)
  const facts = [
    many(person, "conversation"),
    ...(unattended > 0 ? [`${grouped(unattended)} by subagents and scripts`] : []),
    ...(note > 0 ? [many(note, "note")] : []),
    many(total_messages, "message"),
    many(Object.keys(agentsIn(sources)).length, "agent"),
    ...(earliest === undefined ? [] : [`since ${localDay(Date.parse(earliest))}`]),
    ...(sync ? [`${grouped(sync.done)} of ${grouped(sync.total)} read so far`] : []),
  ]
  return html`<p class="line">${facts.map((fact) => html`<span>${fact}</span>`)}</p>`
}

/** As many days as were asked for, until today; where nothing is in them, until the last day on which something was done. */
function rangeOf(days: number, { date_range }: OutputOf<typeof stats>, now: number): SpentRange {
  const today = localDay(now)
  const newest = date_range.latest === undefined ? today : localDay(Date.parse(date_range.latest))
  const until = newest >= daysBefore(today, days - 1) ? today : newest
  return { from: daysBefore(until, days - 1), until }
}

const daysBefore = (day: string, count: number) => localDay(Date.parse(`${day}T12:00:00`) - count * DAY_MS)
