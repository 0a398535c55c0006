import { localDay } from "../../core/dates.ts"
import { html } from "../../render/html/html.ts"
import { dateRange } from "../../tools/fields.ts"
import { usage } from "../../tools/usage/usage.ts"
import { askTool, type PageRequest, type ViewPage } from "../page.ts"
import { spentDays } from "../usage/spent-days.ts"
import { choices } from "./choices.ts"
import { rangeGiven, sectionPage } from "./late-section.ts"

const LENGTHS = [30, 90]
const TITLE = "Money and tokens"

/** How many days the home page is about. */
export function daysAsked(query: URLSearchParams): number {
  return LENGTHS.find((days) => String(days) === query.get("days")) ?? LENGTHS[0]!
}

/** Money and tokens by day and model. */
export async function spentPart(request: PageRequest): Promise<ViewPage> {
  const { dex, query, to } = request
  const range = rangeGiven(query)
  if (!dex.hasHistory()) return sectionPage(request, TITLE, html`<p class="none">No conversation was read yet.</p>`)
  const spent = await askTool(dex, usage, { by: "month", limit: 1, ...range })
  if (spent.total.answers === 0 && request.isLearning()) return sectionPage(request, TITLE, html``)
  const today = localDay(dex.now())
  const { from, to: until } = dateRange(range, dex.now())
  const shown = {
    from: from === undefined ? (spent.days[0]?.day ?? today) : localDay(from),
    until: until === undefined ? today : localDay(until),
  }
  const links = choices(
    LENGTHS.map((days) => [String(days), `${days} days`] as const),
    String(daysAsked(query)),
    (days) => to.to("", { days }),
    "How many days",
  )
  const notes = [
    ...(spent.plan === undefined ? [] : [`Money is the list price, covered by your plan (${spent.plan}).`]),
    ...spent.notes,
  ]
  return sectionPage(
    request,
    TITLE,
    html`<p class="note">${shown.from} to ${shown.until}</p>${spentDays(spent, shown)}${notes.map((note) => html`<p class="note">${note}</p>`)}`,
    links,
  )
}
