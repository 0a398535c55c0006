import { isRecord, parseObject } from "../core/record.ts"
import priceList from "./price-list.json" with { type: "json" }
import { CONTEXT_STEPS } from "./spending.ts"

/** Facts out of npm packages, made by `npm run prices`. */
export const PRICE_LIST = priceList as unknown as PriceSource[]

/** US dollars per million tokens; `web_search` per thousand searches. */
export type Rates = {
  input?: number
  output?: number
  cache_read?: number
  /** Kept for five minutes, or for as long as the provider keeps everything. */
  cache_write?: number
  cache_write_1h?: number
  web_search?: number
}

export type ListedPrice = {
  provider: string
  model: string
  /** A regular expression that fits the names of the model, in lower case. */
  match: string
  /** The day from which on it is valid, where the source says so. */
  since?: string
  /** Only between these hours, UTC. */
  hours?: [from: string, to: string]
  rates: Rates
  /** What the whole request costs if it is given more tokens than `over`. Rising. */
  long?: ({ over: number } & Rates)[]
}

/** What one npm package says. `fast`: the multiple of its price that a model costs in its fast mode. */
export type PriceSource = {
  package: string
  version: string
  prices?: ListedPrice[]
  fast?: Record<string, number>
}

/** `from` names the package and its version, or the user's own file. */
export type Price = Omit<ListedPrice, "match" | "hours"> & { from: string; fast?: { times: number; from: string } }

export type PriceBook = (model: string, at: number) => Price | undefined

/** Looks prices up: in the user's own first, then in the list. The last row that is valid at a time is the price. */
export function priceBook(own: PriceSource[] = []): PriceBook {
  const sources = [...own, ...PRICE_LIST]
  const known = new Map<string, { row: ListedPrice; price: Price }[]>()
  return (model, at) => {
    const rows = known.get(model) ?? rowsFor(sources, plainName(model))
    known.set(model, rows)
    return rows.findLast(({ row }) => isValid(row, at))?.price
  }
}

/** All rows of the first model that the name fits. */
function rowsFor(sources: PriceSource[], name: string): { row: ListedPrice; price: Price }[] {
  const fast = fastOf(sources, name)
  for (const { prices = [], ...source } of sources) {
    const first = prices.find(({ match }) => new RegExp(match).test(name))
    if (!first) continue
    const same = prices.filter(({ provider, model }) => provider === first.provider && model === first.model)
    return same.map((row) => {
      const { match: _, hours: __, ...said } = row
      return { row, price: { ...said, from: sourceName(source), fast } }
    })
  }
  return []
}

function fastOf(sources: PriceSource[], name: string): Price["fast"] {
  for (const { fast = {}, ...source } of sources) {
    const model = Object.keys(fast).find((one) => name === one || name.startsWith(`${one}-20`))
    if (model !== undefined) return { times: fast[model]!, from: sourceName(source) }
  }
  return undefined
}

const sourceName = ({ package: name, version }: PriceSource) => (version === "" ? name : `${name} ${version}`)

function isValid({ since, hours }: ListedPrice, at: number): boolean {
  if (since !== undefined && at < Date.parse(since)) return false
  if (!hours) return true
  const time = new Date(at).toISOString().slice(11, 16)
  return time >= hours[0] && time < hours[1]
}

/** As its maker calls it, whoever serves it: `us.anthropic.claude-opus-4-5-20251101-v1:0`, `openrouter/qwen/qwen3-coder`. */
export function plainName(model: string): string {
  return model
    .toLowerCase()
    .replace(/\[[^\]]*\]$/, "") // how Claude Code asks for a longer context
    .replace(/^.*\//, "")
    .replace(/^(?:[a-z]{2,6}\.)?anthropic\./, "")
    .replace(/-v\d+:\d+$/, "")
    .replace(/:(?:thinking|nitro|floor|exacto|online)$/, "")
}

const RATES = ["input", "output", "cache_read", "cache_write", "cache_write_1h", "web_search"]

/** The user's own prices out of the text of their file, and what of it was not understood. */
export function ownPrices(text: string, file: string): { source: PriceSource; problems: string[] } {
  const problems: string[] = []
  const source = { package: file, version: "", prices: [] as ListedPrice[], fast: {} as Record<string, number> }
  const said = parseObject(text)
  if (!said) return { source, problems: [`${file} is not a JSON object of models and their prices.`] }
  for (const [model, value] of Object.entries(said)) {
    const problem = isRecord(value) ? addOwn(source, model, value) : "has no prices"
    if (problem !== undefined) problems.push(`${file}: ${JSON.stringify(model)} ${problem}. It was ignored.`)
  }
  return { source, problems }
}

function addOwn(
  source: { prices: ListedPrice[]; fast: Record<string, number> },
  model: string,
  { fast, long = [], ...value }: Record<string, unknown>,
): string | undefined {
  const rates = ratesOf(value)
  if (typeof rates === "string") return rates
  if (rates.input === undefined || rates.output === undefined) return "needs input and output"
  const steps: ({ over: number } & Rates)[] = []
  for (const one of Array.isArray(long) ? long : [long]) {
    const { over, ...more } = isRecord(one) ? one : {}
    const above = ratesOf(more)
    if (typeof above === "string") return above
    if (!CONTEXT_STEPS.includes(over as number)) return `can have long only with over ${CONTEXT_STEPS.join(", ")}`
    steps.push({ over: over as number, ...rates, ...above })
  }
  const name = plainName(model.replace(/\*$/, ""))
  const match = `^${name.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")}${model.endsWith("*") ? "" : "$"}`
  steps.sort((a, b) => a.over - b.over)
  source.prices.push({ provider: "own", model, match, rates, long: steps.length > 0 ? steps : undefined })
  if (typeof fast === "number") source.fast[name] = fast
  return undefined
}

function ratesOf(value: Record<string, unknown>): Rates | string {
  for (const [name, rate] of Object.entries(value)) {
    if (!RATES.includes(name)) return `has ${JSON.stringify(name)}, which is not one of ${RATES.join(", ")}, long, fast`
    if (typeof rate !== "number" || !(rate >= 0)) return `has a ${name} that is not a number of dollars`
  }
  return value as Rates
}
