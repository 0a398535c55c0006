import { localDay, localMinute } from "../../core/dates.ts"
import { grouped } from "../../core/format.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many, projectName, projectNames, shortPath } from "../../render/words.ts"
import { agentNamed } from "../../tools/resolve.ts"
import { isUngrouped } from "../../tools/usage/groups.ts"
import { USAGE_GROUPS, type UsageGroup, usage } from "../../tools/usage/usage.ts"
import { dollars, shortCount } from "../../usage/line.ts"
import { BLOCK_MS } from "../../usage/periods.ts"
import { hasNoConversations, nothingYetHtml } from "../actions.ts"
import { stackBar, swatch } from "../charts.ts"
import { dateField } from "../find/facets.ts"
import { agentNames } from "../find/rows.ts"
import { type PageRequest, runToolForPage, type ViewPage } from "../page.ts"
import { spentDays, type UsageOutput } from "./spent-days.ts"

const FILTERS = ["project", "source", "model", "from", "to"] as const
type Filters = Partial<Record<(typeof FILTERS)[number], string>>
const ALL_ROWS = 10_000

/** The output of `dex usage`, with charts. */
export async function usagePage(request: PageRequest): Promise<ViewPage> {
  const { dex, query, to } = request
  if (await hasNoConversations(dex)) return usageViewPage(nothingYetHtml(to, request.actionToken))
  const by = USAGE_GROUPS.find((group) => group === query.get("by")) ?? "day"
  const filters = readFilters(query)
  const showsAll = query.has("all")
  const output = await runToolForPage(dex, usage, { by, ...filters, limit: showsAll ? ALL_ROWS : undefined })
  if (output.total.answers === 0 && request.isLearning())
    return usageViewPage(html`<div class="usage"><header class="title"><h1>Usage</h1></header></div>`)
  const links = USAGE_GROUPS.map(
    (group) =>
      html`<a href="${to.usage({ by: group, ...filters })}"${group === by && html` aria-current="page"`}>${GROUP_NAMES[group]}</a>`,
  )
  const head = html`<header class="title"><h1>Usage</h1>${headLine(output)}</header><nav class="choices" aria-label="Sum up by">${links}</nav>${await filterForm(by, filters, output, request)}`
  if (output.total.answers === 0)
    return usageViewPage(
      html`<div class="usage">${head}<p class="none">No usage is recorded for this selection.</p>${notesHtml(output)}</div>`,
    )
  const [first, last] = [output.days[0]?.day, output.days.at(-1)?.day]
  const chart =
    first !== undefined &&
    last !== undefined &&
    html`<section>${spentDays(output, { from: first, until: last })}</section>`
  const moreNote =
    output.rows_left_out > 0 &&
    html`<p class="note">${many(output.rows_left_out, "more row")} not shown; the total counts them. <a href="${to.usage({ by, ...filters, all: 1 })}">Show all</a></p>`
  return usageViewPage(html`<div class="usage">${head}
${chart}
<section><h2>By ${GROUP_NAMES[by].toLowerCase()}</h2>${await costTable(output, by, filters, request)}${moreNote}</section>
<section><h2>Prices</h2>${pricesHtml(output)}${notesHtml(output)}</section></div>`)
}

const usageViewPage = (body: Html): ViewPage => ({ title: "Usage", section: "usage", body })

function readFilters(query: URLSearchParams): Filters {
  const values = FILTERS.map((name) => [name, (query.get(name) ?? "").trim()] as const)
  return Object.fromEntries(values.filter(([, value]) => value !== ""))
}

function headLine({ total, from, to, plan }: UsageOutput): Html {
  const [first, last] = [from, to].map((iso) => (iso === undefined ? "" : localDay(Date.parse(iso))))
  return html`<p class="line"><span><b>${dollars(total.cost)}${total.unpriced_tokens > 0 && "+"}</b>${plan !== undefined && ` list price, covered by ${plan}`}</span><span><b>${shortCount(total.tokens)}</b> tokens</span><span>${many(total.conversations, "conversation")} with usage</span>${first !== "" && html`<span>${first === last ? first : `${first} to ${last}`}</span>`}</p>`
}

/** A choice among the projects, agents and models of the history, and two dates. */
async function filterForm(
  by: UsageGroup,
  filters: Filters,
  { models }: UsageOutput,
  { dex, to }: PageRequest,
): Promise<Html> {
  const store = await dex.store()
  const spans = await store.spans({ inside: dex.project })
  const sources = [...new Set(spans.map(({ source }) => source))].sort()
  const projects = [...new Set(spans.flatMap(({ project }) => project ?? []))].sort()
  const agents = await agentNames(dex, sources)
  const nameOf = projectNames(projects)
  // A filter leaves only its own model in the answer.
  const usedModels =
    filters.model === undefined
      ? models
      : (await runToolForPage(dex, usage, { by, ...filters, model: undefined, limit: 1 })).models
  const select = (name: keyof Filters, title: string, any: string, options: [value: string, label: string][]) => {
    const chosen = filters[name]
    const nameAttribute = html` name="${name}"`
    const known = options.some(([value]) => value === chosen)
    const all = chosen === undefined || known ? options : [[chosen, chosen] as const, ...options]
    return html`<label>${title} <select${nameAttribute}><option value="">${any}</option>${all.map(([value, label]) => html`<option value="${value}"${value === chosen && html` selected`}>${label}</option>`)}</select></label>`
  }
  const modelNames = usedModels.flatMap(({ model }): [string, string][] => (model === "" ? [] : [[model, model]]))
  const clear = Object.keys(filters).length > 0 && html`<a href="${to.usage({ by })}">Show everything</a>`
  return html`<form class="filters" action="${to.usage()}"><input type="hidden" name="by" value="${by}">${select(
    "project",
    "Project",
    "All projects",
    projects.map((project) => [project, nameOf(project)]),
  )}${select(
    "source",
    "Agent",
    "All agents",
    sources.map((source) => [source, agents.get(source)!]),
  )}${select("model", "Model", "All models", modelNames)}${dateField("from", "From", filters.from, dex.now())}${dateField("to", "To", filters.to, dex.now())}<button>Apply</button>${clear}</form>`
}

/** A table of models, with the source of each price. */
function pricesHtml({ models }: UsageOutput): Html {
  const rows = models.map(({ model, tokens, cost, price_of, from, since }) => {
    const name = model === "" ? "model not recorded" : model
    const source =
      price_of !== undefined
        ? `${price_of}, ${from ?? ""}${since === undefined ? "" : `, since ${since}`}`
        : cost > 0
          ? "as the agent recorded it"
          : "no price is known"
    return html`<tr><th scope="row">${name}<span class="note">${source}</span></th><td>${grouped(tokens)}</td><td>${price_of === undefined && cost === 0 ? "no price" : dollars(cost)}</td></tr>`
  })
  const headings = ["Model", "Tokens", "Cost"].map((name) => html`<th scope="col">${name}</th>`)
  return html`<table class="figures"><thead><tr>${headings}</tr></thead><tbody>${rows}</tbody></table>`
}

function notesHtml({ notes: outputNotes, by, total }: UsageOutput): Html {
  const { cost_of } = total
  const cacheNotes =
    cost_of.cache_write_1h > 0 && cost_of.cache_write_5m > 0
      ? [
          `Of the cost of cache writes, ${dollars(cost_of.cache_write_1h)} is for entries that last an hour, and ${dollars(cost_of.cache_write_5m)} for those that last five minutes.`,
        ]
      : []
  const allNotes = [
    "Tokens are as the agents recorded them; costs are at list prices.",
    ...(by === "block"
      ? ["A block of five hours begins with the hour of its first answer, like the limits of Claude's plans."]
      : []),
    ...cacheNotes,
    ...outputNotes,
  ]
  return html`${allNotes.map((note) => html`<p class="note">${note}</p>`)}`
}

type Row = UsageOutput["rows"][number]
type CostOf = Row["cost_of"]

/** The parts of a cost, in the order of the colours. */
const COST_PARTS: [name: string, amountOf: (cost: CostOf) => number][] = [
  ["output", ({ output }) => output],
  ["input", ({ input }) => input],
  ["read from caches", ({ cache_read }) => cache_read],
  ["written to caches", ({ cache_write_5m, cache_write_1h }) => cache_write_5m + cache_write_1h],
  ["web searches", ({ web_searches }) => web_searches],
  ["recorded by the agent", ({ recorded }) => recorded],
]

/** A row for each group, with a bar of the parts of its cost, or of its tokens if nothing has a price. */
async function costTable(
  { rows, total }: UsageOutput,
  by: UsageGroup,
  filters: Record<string, string>,
  request: PageRequest,
): Promise<Html> {
  const isMoney = total.cost > 0
  const groupRows = rows.filter(({ key }) => !isUngrouped(key))
  const longest = Math.max(...(groupRows.length > 0 ? groupRows : rows).map((row) => (isMoney ? row.cost : row.tokens)))
  const isPeriod = PERIODS.includes(by)
  const orderedRows = isPeriod ? rows.toReversed() : rows
  const tableRows = await Promise.all(
    orderedRows.map(async (row) => {
      const label = await labelOf(row, by, filters, request)
      return html`<tr class="row" tabindex="-1"><th scope="row">${label}${row.subagents && " (subagents)"}</th><td>${dollars(row.cost)}${row.unpriced_tokens > 0 && "+"}</td><td>${shortCount(row.tokens)}</td><td class="more">${shortCount(row.output)}</td><td class="more">${row.conversations}</td><td class="bar">${barOf(row, longest, isMoney)}</td></tr>`
    }),
  )
  const legend = isMoney
    ? COST_PARTS.flatMap(([name, amountOf], colour) =>
        amountOf(total.cost_of) > 0
          ? [html`<li>${swatch(colour)}${name} <b>${dollars(amountOf(total.cost_of))}</b></li>`]
          : [],
      )
    : []
  const headings = html`<th scope="col">${ROW_HEADINGS[by] ?? GROUP_NAMES[by]}</th><th scope="col">Cost</th><th scope="col">Tokens</th><th scope="col" class="more">Output</th><th scope="col" class="more">Conversations</th><td class="bar"></td>`
  const totalRow = html`<tr class="total"><th scope="row">Total</th><td>${dollars(total.cost)}${total.unpriced_tokens > 0 && "+"}</td><td>${shortCount(total.tokens)}</td><td class="more">${shortCount(total.output)}</td><td class="more">${total.conversations}</td><td class="bar"></td></tr>`
  const plusNote =
    total.unpriced_tokens > 0 &&
    html`<p class="note">A + marks sums that leave out tokens without a known price, ${shortCount(total.unpriced_tokens)} in total.</p>`
  return html`${legend.length > 0 && html`<ul class="kinds">${legend}</ul>`}<table class="figures costs"><thead><tr>${headings}</tr></thead><tbody>${totalRow}${tableRows}</tbody></table>${plusNote}`
}

const PERIODS: UsageGroup[] = ["day", "week", "month", "block"]
const ROW_HEADINGS: Partial<Record<UsageGroup, string>> = { block: "Five hours from", week: "Week from" }

function barOf({ cost_of, cost, tokens }: Row, longest: number, isMoney: boolean): Html | undefined {
  if (!isMoney)
    return tokens > 0 ? stackBar([Math.min(tokens, longest)], longest, `${shortCount(tokens)} tokens`) : undefined
  if (cost === 0) return undefined
  const parts = COST_PARTS.map(([, amountOf]) => amountOf(cost_of))
  // The row of everything outside the groups may be larger than any group. Its bar is shortened to the longest bar of a group.
  const scale = Math.min(1, longest / cost)
  const label = COST_PARTS.flatMap(([name], i) => (parts[i]! > 0 ? [`${name} ${dollars(parts[i]!)}`] : [])).join(", ")
  return stackBar(
    parts.map((part) => part * scale),
    longest,
    label,
  )
}

/** A group's name, with its link. */
async function labelOf(
  { key, title }: Row,
  by: UsageGroup,
  filters: Record<string, string>,
  { to, dex }: PageRequest,
): Promise<Html> {
  if (isUngrouped(key)) return html`${key.slice(1, -1)}`
  const link = (address: string, text: string, hint?: string) =>
    html`<a class="title" href="${address}"${hint !== undefined && html` title="${hint}"`}>${text}</a>`
  const { project, source } = filters
  const findFilters = { project, source }
  switch (by) {
    case "day":
    case "month":
      return link(to.find({ ...findFilters, from: key, to: key }), key)
    case "week": {
      const sunday = new Date(`${key}T12:00:00`)
      sunday.setDate(sunday.getDate() + 6)
      return link(to.find({ ...findFilters, from: key, to: localDay(sunday.getTime()) }), key)
    }
    case "block": {
      const timeText = (ms: number) => localMinute(ms).replace(" ", "T")
      const start = Date.parse(key.replace(" ", "T"))
      return link(to.find({ ...findFilters, from: timeText(start), to: timeText(start + BLOCK_MS) }), key)
    }
    case "project":
      return link(
        to.usage({ ...filters, by: "conversation", project: key }),
        projectName(key),
        shortPath(key, dex.machine.home),
      )
    case "agent":
      return link(to.usage({ ...filters, by: "day", source: key }), (await agentNamed(dex, key))?.name ?? key)
    case "model":
      return link(to.usage({ ...filters, by: "day", model: key }), key)
    case "conversation":
      return link(to.read(key), title ?? key)
    case "ticket":
    case "branch": {
      const [, path = "", branch = key] = /^(.*) (\S+)$/s.exec(key) ?? []
      return html`<span title="${shortPath(path, dex.machine.home)}">${branch}${path !== "" && html` <span class="facts">${projectName(path)}</span>`}</span>`
    }
    case "commit":
      return html`<code>${key.slice(0, 8)}</code> ${title ?? ""}`
    case "pull_request":
      return html`${key.replace(/^https?:\/\//, "")}`
  }
}

const GROUP_NAMES: Record<UsageGroup, string> = {
  day: "Day",
  week: "Week",
  month: "Month",
  block: "Five hours",
  project: "Project",
  agent: "Agent",
  model: "Model",
  branch: "Branch",
  conversation: "Conversation",
  commit: "Commit",
  pull_request: "Pull request",
  ticket: "Ticket",
}
