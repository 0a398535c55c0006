import { localDay, localMinute } from "../../core/dates.ts"
import { type Html, html } from "../../render/html/html.ts"
import { projectName, shortPath } from "../../render/words.ts"
import { agentNamed } from "../../tools/resolve.ts"
import type { UsageGroup } from "../../tools/usage/usage.ts"
import { dollars, shortCount } from "../../usage/line.ts"
import { BLOCK_MS } from "../../usage/periods.ts"
import { stackBar, swatch } from "../charts/stack-bar.ts"
import type { PageRequest } from "../page.ts"
import { GROUP_NAMES } from "./group-names.ts"
import type { UsageOutput } from "./spent-days.ts"

type Row = UsageOutput["rows"][number]
type CostOf = Row["cost_of"]

/** What a cost is made of, in the order of the colours. */
const KINDS: [name: string, of: (cost: CostOf) => number][] = [
  ["output", ({ output }) => output],
  ["input", ({ input }) => input],
  ["read from caches", ({ cache_read }) => cache_read],
  ["written to caches", ({ cache_write_5m, cache_write_1h }) => cache_write_5m + cache_write_1h],
  ["web searches", ({ web_searches }) => web_searches],
  ["recorded by the agent", ({ recorded }) => recorded],
]

/** A row for each group, with a bar of what its cost is made of; of tokens, where nothing has a price. */
export async function costTable(
  { rows, total }: UsageOutput,
  by: UsageGroup,
  filters: Record<string, string>,
  request: PageRequest,
): Promise<Html> {
  const isMoney = total.cost > 0
  const named = rows.filter(({ key }) => !key.startsWith("("))
  const most = Math.max(...(named.length > 0 ? named : rows).map((row) => (isMoney ? row.cost : row.tokens)))
  const isPeriod = PERIODS.includes(by)
  const shown = isPeriod ? rows.toReversed() : rows
  const lines = await Promise.all(
    shown.map(async (row) => {
      const label = await labelOf(row, by, filters, request)
      return html`<tr class="row" tabindex="-1"><th scope="row">${label}${row.subagents && " (subagents)"}</th><td>${dollars(row.cost)}${row.unpriced_tokens > 0 && "+"}</td><td>${shortCount(row.tokens)}</td><td class="more">${shortCount(row.output)}</td><td class="more">${row.conversations}</td><td class="bar">${barOf(row, most, isMoney)}</td></tr>`
    }),
  )
  const legend = isMoney
    ? KINDS.flatMap(([name, of], colour) =>
        of(total.cost_of) > 0 ? [html`<li>${swatch(colour)}${name} <b>${dollars(of(total.cost_of))}</b></li>`] : [],
      )
    : []
  const heads = html`<th scope="col">${HEADS[by] ?? GROUP_NAMES[by]}</th><th scope="col">Cost</th><th scope="col">Tokens</th><th scope="col" class="more">Output</th><th scope="col" class="more">Conversations</th><td class="bar"></td>`
  const sum = html`<tr class="total"><th scope="row">Total</th><td>${dollars(total.cost)}${total.unpriced_tokens > 0 && "+"}</td><td>${shortCount(total.tokens)}</td><td class="more">${shortCount(total.output)}</td><td class="more">${total.conversations}</td><td class="bar"></td></tr>`
  const plus =
    total.unpriced_tokens > 0 &&
    html`<p class="note">A + stands where ${shortCount(total.unpriced_tokens)} tokens in all have no known price: they are in no sum of money.</p>`
  return html`${legend.length > 0 && html`<ul class="kinds">${legend}</ul>`}<table class="figures costs"><thead><tr>${heads}</tr></thead><tbody>${sum}${lines}</tbody></table>${plus}`
}

const PERIODS: UsageGroup[] = ["day", "week", "month", "block"]
const HEADS: Partial<Record<UsageGroup, string>> = { block: "Five hours from", week: "Week from" }

function barOf({ cost_of, cost, tokens }: Row, most: number, isMoney: boolean): Html | undefined {
  if (!isMoney) return tokens > 0 ? stackBar([Math.min(tokens, most)], most, `${shortCount(tokens)} tokens`) : undefined
  if (cost === 0) return undefined
  const parts = KINDS.map(([, of]) => of(cost_of))
  // What is in no group may be more than any group: its bar ends where the longest does.
  const scale = Math.min(1, most / cost)
  const said = KINDS.flatMap(([name], i) => (parts[i]! > 0 ? [`${name} ${dollars(parts[i]!)}`] : [])).join(", ")
  return stackBar(
    parts.map((part) => part * scale),
    most,
    said,
  )
}

/** What a group is called, and where it leads. */
async function labelOf(
  { key, title }: Row,
  by: UsageGroup,
  filters: Record<string, string>,
  { to, dex }: PageRequest,
): Promise<Html> {
  if (key.startsWith("(")) return html`${key.slice(1, -1)}`
  const link = (address: string, text: string, hint?: string) =>
    html`<a class="title" href="${address}"${hint !== undefined && html` title="${hint}"`}>${text}</a>`
  const { project, source } = filters
  const found = { ...(project !== undefined && { project }), ...(source !== undefined && { source }) }
  switch (by) {
    case "day":
    case "month":
      return link(to.find({ ...found, from: key, to: key }), key)
    case "week": {
      const sunday = new Date(`${key}T12:00:00`)
      sunday.setDate(sunday.getDate() + 6)
      return link(to.find({ ...found, from: key, to: localDay(sunday.getTime()) }), key)
    }
    case "block": {
      const at = (ms: number) => localMinute(ms).replace(" ", "T")
      const start = Date.parse(key.replace(" ", "T"))
      return link(to.find({ ...found, from: at(start), to: at(start + BLOCK_MS) }), key)
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
