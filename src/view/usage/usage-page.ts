import { localDay } from "../../core/dates.ts"
import { grouped } from "../../core/format.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many } from "../../render/words.ts"
import { USAGE_GROUPS, type UsageGroup, usage } from "../../tools/usage/usage.ts"
import { dollars, shortCount } from "../../usage/line.ts"
import { message } from "../layout.ts"
import { askTool, type PageRequest, type ViewPage } from "../page.ts"
import { costTable } from "./cost-table.ts"
import { GROUP_NAMES } from "./group-names.ts"
import { spentDays, type UsageOutput } from "./spent-days.ts"

const FILTERS = ["project", "source", "model", "from", "to"] as const
type Filters = Partial<Record<(typeof FILTERS)[number], string>>
const ALL_ROWS = 10_000

/** What agents used, in tokens and money: what `dex usage` answers, with plots. */
export async function usagePage(request: PageRequest): Promise<ViewPage> {
  const { dex, query, to } = request
  if (!dex.hasHistory())
    return page(
      message("Nothing yet", "dex has not read a conversation yet, so no use is known. Run `dex sync` in a terminal."),
    )
  const by = USAGE_GROUPS.find((one) => one === query.get("by")) ?? "day"
  const filters = filtersIn(query)
  const isAll = query.has("all")
  const output = await askTool(dex, usage, { by, ...filters, ...(isAll && { limit: ALL_ROWS }) })
  if (output.total.answers === 0 && request.isLearning())
    return page(html`<div class="usage"><header class="title"><h1>Usage</h1></header></div>`)
  const links = USAGE_GROUPS.map(
    (one) =>
      html`<a href="${to.usage({ by: one, ...filters })}"${one === by && html` aria-current="page"`}>${GROUP_NAMES[one]}</a>`,
  )
  const head = html`<header class="title"><h1>Usage</h1>${headLine(output)}</header><nav class="choices" aria-label="Sum up by">${links}</nav>${filterForm(by, filters, request)}`
  if (output.total.answers === 0)
    return page(
      html`<div class="usage">${head}<p class="none">No use of any agent is known for this.</p>${notes(output)}</div>`,
    )
  const [first, last] = [output.days[0]?.day, output.days.at(-1)?.day]
  const chart =
    first !== undefined &&
    last !== undefined &&
    html`<section>${spentDays(output, { from: first, until: last })}</section>`
  const more =
    output.rows_left_out > 0 &&
    html`<p class="note">${many(output.rows_left_out, "more row")} not shown; the total counts them. <a href="${to.usage({ by, ...filters, all: 1 })}">Show all</a></p>`
  return page(html`<div class="usage">${head}
${chart}
<section><h2>By ${GROUP_NAMES[by].toLowerCase()}</h2>${await costTable(output, by, filters, request)}${more}</section>
<section><h2>Prices</h2>${prices(output)}${notes(output)}</section></div>`)
}

const page = (body: Html): ViewPage => ({ title: "Usage", section: "usage", body })

function filtersIn(query: URLSearchParams): Filters {
  const given = FILTERS.map((name) => [name, (query.get(name) ?? "").trim()] as const)
  return Object.fromEntries(given.filter(([, value]) => value !== ""))
}

function headLine({ total, from, to, plan }: UsageOutput): Html {
  const [first, last] = [from, to].map((iso) => (iso === undefined ? "" : localDay(Date.parse(iso))))
  return html`<p class="line"><span><b>${dollars(total.cost)}${total.unpriced_tokens > 0 && "+"}</b>${plan !== undefined && ` list price, covered by ${plan}`}</span><span><b>${shortCount(total.tokens)}</b> tokens</span><span>${many(total.conversations, "conversation")} with usage</span>${first !== "" && html`<span>${first === last ? first : `${first} to ${last}`}</span>`}</p>`
}

function filterForm(by: UsageGroup, filters: Filters, { to }: PageRequest): Html {
  const field = (name: (typeof FILTERS)[number], title: string, hint: string) =>
    html`<label>${title} <input type="text" name="${name}" value="${filters[name] ?? ""}" placeholder="${hint}" autocomplete="off" spellcheck="false"></label>`
  const clear = Object.keys(filters).length > 0 && html`<a href="${to.usage({ by })}">Show everything</a>`
  return html`<form class="filters" action="${to.usage()}"><input type="hidden" name="by" value="${by}">${field("project", "Project", "part of its path")}${field("source", "Agent", "claude_code")}${field("model", "Model", "part of its name")}${field("from", "From", "2026-11-03, 7d")}${field("to", "To", "2026-11-03")}<button>Apply</button>${clear}</form>`
}

/** Where each model's price is from, and which have none. */
function prices({ models }: UsageOutput): Html {
  const rows = models.map(({ model, tokens, cost, price_of, from, since }) => {
    const name = model === "" ? "model not recorded" : model
    const said =
      price_of !== undefined
        ? `${price_of}, ${from ?? ""}${since === undefined ? "" : `, since ${since}`}`
        : cost > 0
          ? "as the agent recorded it"
          : "no price is known"
    return html`<tr><th scope="row">${name}<span class="note">${said}</span></th><td>${grouped(tokens)}</td><td>${price_of === undefined && cost === 0 ? "no price" : dollars(cost)}</td></tr>`
  })
  const heads = ["Model", "Tokens", "Cost"].map((name) => html`<th scope="col">${name}</th>`)
  return html`<table class="figures"><thead><tr>${heads}</tr></thead><tbody>${rows}</tbody></table>`
}

function notes({ notes: said, by, total }: UsageOutput): Html {
  const { cost_of } = total
  const writes =
    cost_of.cache_write_1h > 0 && cost_of.cache_write_5m > 0
      ? [
          `Of what was written to caches, ${dollars(cost_of.cache_write_1h)} was kept for an hour and ${dollars(cost_of.cache_write_5m)} for five minutes.`,
        ]
      : []
  const all = [
    "Tokens are as agents recorded them; money is the list price.",
    ...(by === "block"
      ? ["Five hours begin with the hour of the first answer, like the limits of Claude's plans."]
      : []),
    ...writes,
    ...said,
  ]
  return html`${all.map((note) => html`<p class="note">${note}</p>`)}`
}
