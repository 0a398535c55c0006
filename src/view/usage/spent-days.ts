import type { OutputOf } from "../../core/tool.ts"
import { type Html, html } from "../../render/html/html.ts"
import type { usage } from "../../tools/usage/usage.ts"
import { dollars, shortCount } from "../../usage/line.ts"
import { daysBetween, localMonth, localWeek } from "../../usage/periods.ts"
import { dayBars, swatch } from "../charts.ts"

export type UsageOutput = OutputOf<typeof usage>
type Day = UsageOutput["days"][number]
type ModelSum = { model: string; tokens: number; cost: number }

/** How many models have their own colour. All other models share one colour. */
const COLOURED_MODELS = 5
/** The maximum number of columns of a chart. For a longer period, a column is a week or a month. */
const MAX_COLUMNS = 95

export type SpentRange = { from: string; until: string }

/** Charts of cost and tokens in a period, stacked by model, with a legend, and the same numbers as a table. */
export function spentDays({ days, models }: Pick<UsageOutput, "days" | "models">, range: SpentRange): Html {
  const shownDays = days.filter(({ day }) => day >= range.from && day <= range.until)
  const sums = modelSums(shownDays)
  const total = { tokens: sumOf(sums, "tokens"), cost: sumOf(sums, "cost") }
  if (total.tokens === 0)
    return html`<p class="none">No tokens are recorded from ${range.from} to ${range.until}. Some agents do not record them.</p>`
  const unpriced = new Set(models.filter(({ price_of, cost }) => price_of === undefined && cost === 0).map(modelName))
  const colouredModels = sums.slice(0, sums.length > COLOURED_MODELS + 1 ? COLOURED_MODELS : COLOURED_MODELS + 1)
  const { unit, columns } = columnsOf(shownDays, range)
  const chart = (field: "cost" | "tokens", title: string, format: (amount: number) => string) => {
    const bars = columns.map(({ key, models: columnModels }) => {
      const amounts = colouredModels.map(
        ({ model }) => columnModels.find((candidate) => candidate.model === model)?.[field] ?? 0,
      )
      const columnTotal = sumOf(columnModels, field)
      const otherAmount = Math.max(0, columnTotal - amounts.reduce((sum, part) => sum + part, 0))
      const tooltip = [
        `${key}: ${format(columnTotal)}`,
        ...columnModels.map((model) => `${modelName(model)} ${format(model[field])}`),
      ].join("\n")
      return {
        day: key,
        parts: sums.length > colouredModels.length ? [...amounts, otherAmount] : amounts,
        tooltip,
      }
    })
    return html`<figure><figcaption>${title} <b>${format(total[field])}</b></figcaption>${dayBars(bars, `${title} by ${unit} from ${range.from} to ${range.until}, ${format(total[field])} in total. The table below has the numbers.`, format)}</figure>`
  }
  const charts = [...(total.cost > 0 ? [chart("cost", "Cost", dollars)] : []), chart("tokens", "Tokens", shortCount)]
  return html`<div class="charts">${charts}</div>${legendHtml(sums, colouredModels.length, unpriced)}<details class="numbers"><summary>As a table</summary>${tableHtml(columns, unit)}</details>`
}

const modelName = ({ model }: { model: string }) => (model === "" ? "model not recorded" : model)
const sumOf = (sums: { tokens: number; cost: number }[], field: "tokens" | "cost") =>
  sums.reduce((sum, summand) => sum + summand[field], 0)

function modelSums(days: Pick<Day, "models">[]): ModelSum[] {
  const groups = Map.groupBy(
    days.flatMap(({ models }) => models),
    ({ model }) => model,
  )
  return [...groups]
    .map(([model, sums]) => ({ model, tokens: sumOf(sums, "tokens"), cost: sumOf(sums, "cost") }))
    .sort((a, b) => b.cost - a.cost || b.tokens - a.tokens)
}

type Column = { key: string; models: ModelSum[] }

/** A column for each day, week or month of the period, including those without use. */
function columnsOf(days: Day[], { from, until }: SpentRange): { unit: string; columns: Column[] } {
  const allDays = daysBetween(from, until)
  const noonOf = (day: string) => Date.parse(`${day}T12:00:00`)
  const [unit, keyOf]: [string, (day: string) => string] =
    allDays.length <= MAX_COLUMNS
      ? ["day", (day) => day]
      : allDays.length <= MAX_COLUMNS * 7
        ? ["week", (day) => localWeek(noonOf(day))]
        : ["month", (day) => localMonth(noonOf(day))]
  const byKey = Map.groupBy(days, ({ day }) => keyOf(day))
  const keys = [...new Set(allDays.map(keyOf))]
  return { unit, columns: keys.map((key) => ({ key, models: modelSums(byKey.get(key) ?? []) })) }
}

function legendHtml(sums: ModelSum[], colouredCount: number, unpriced: Set<string>): Html {
  const row = (colour: number, name: string, { tokens, cost }: { tokens: number; cost: number }) =>
    html`<tr><th scope="row">${swatch(colour)}${name}</th><td>${shortCount(tokens)}</td><td>${unpriced.has(name) ? "no price" : dollars(cost)}</td></tr>`
  const others = sums.slice(colouredCount)
  const rest =
    others.length > 0 &&
    row(colouredCount, `${others.length} other models`, {
      tokens: sumOf(others, "tokens"),
      cost: sumOf(others, "cost"),
    })
  return html`<table class="figures legend"><thead><tr><th scope="col">Model</th><th scope="col">Tokens</th><th scope="col">Cost</th></tr></thead><tbody>${sums.slice(0, colouredCount).map((model, i) => row(i, modelName(model), model))}${rest}</tbody></table>`
}

function tableHtml(columns: Column[], unit: string): Html {
  const usedColumns = columns.filter(({ models }) => models.length > 0)
  const rows = usedColumns.map(({ key, models }) => {
    const modelTexts = models
      .map((model) => `${modelName(model)} ${dollars(model.cost)}, ${shortCount(model.tokens)}`)
      .join(" · ")
    return html`<tr><th scope="row">${key}</th><td>${dollars(sumOf(models, "cost"))}</td><td>${shortCount(sumOf(models, "tokens"))}</td><td class="words">${modelTexts}</td></tr>`
  })
  const headings = [unit, "Cost", "Tokens"].map((name) => html`<th scope="col">${name}</th>`)
  return html`<table class="figures"><thead><tr>${headings}<th scope="col" class="words">By model</th></tr></thead><tbody>${rows}</tbody></table>`
}
