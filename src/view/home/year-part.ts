import { localDay } from "../../core/dates.ts"
import { grouped } from "../../core/format.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many } from "../../render/words.ts"
import { usage } from "../../tools/usage/usage.ts"
import { dollars, shortCount } from "../../usage/line.ts"
import { type HeatDay, heatMap, heatMapStart } from "../charts.ts"
import type { Addresses } from "../page.ts"
import { type PageRequest, runToolForPage, type ViewPage } from "../page.ts"
import type { UsageOutput } from "../usage/spent-days.ts"
import { choiceLinks, emptySection, sectionPage } from "./late-section.ts"

/** The amounts that the colours of the map can show. */
const AMOUNTS = ["tokens", "cost", "conversations"] as const
const TITLES = { tokens: "Tokens by day", cost: "Cost by day", conversations: "Conversations by day" }

/** A map of the last year, in which each day is coloured by an amount. */
export async function yearPart(request: PageRequest): Promise<ViewPage> {
  const { dex, query, to } = request
  const amount = AMOUNTS.find((name) => name === query.get("amount")) ?? "tokens"
  if (!dex.hasHistory()) return emptySection(request, TITLES[amount], "No conversations have been read yet.")
  const today = localDay(dex.now())
  const { days, notes } = await runToolForPage(dex, usage, { by: "month", from: heatMapStart(today), limit: 1 })
  const heat = days.map(
    (day): HeatDay => ({
      day: day.day,
      amount: day[amount],
      tooltip: `${day.day}: ${many(day.conversations, "conversation")}, ${shortCount(day.tokens)} tokens, ${dollars(day.cost)}`,
      address: to.find({ from: day.day, to: day.day }),
    }),
  )
  if (days.length === 0)
    return emptySection(
      request,
      TITLES[amount],
      `No tokens are recorded for the last year. ${notes[0] ?? "Some agents do not record them."}`,
    )
  const links = choiceLinks(
    AMOUNTS.map((amount) => [amount, amount] as const),
    amount,
    (year) => to.path("", { year }),
    "Meaning of a day's colour",
  )
  const label = `${TITLES[amount]} from ${heatMapStart(today)} to ${today}. The table below has the numbers.`
  return sectionPage(
    request,
    TITLES[amount],
    html`${heatMap(heat, today, label)}<p class="note narrow-only">The last half of the year; the table has all of it.</p>${daysTable(days, to)}`,
    links,
  )
}

function daysTable(days: UsageOutput["days"], to: Addresses): Html {
  const rows = days
    .toReversed()
    .map(
      ({ day, conversations, tokens, cost }) =>
        html`<tr><th scope="row"><a href="${to.find({ from: day, to: day })}">${day}</a></th><td>${grouped(conversations)}</td><td>${shortCount(tokens)}</td><td>${dollars(cost)}</td></tr>`,
    )
  const headings = ["Day", "Conversations", "Tokens", "Cost"].map((name) => html`<th scope="col">${name}</th>`)
  return html`<details class="numbers"><summary>As a table</summary><table class="figures"><thead><tr>${headings}</tr></thead><tbody>${rows}</tbody></table><p class="note">Counted from what agents recorded: a conversation whose agent records no tokens is not in it.</p></details>`
}
