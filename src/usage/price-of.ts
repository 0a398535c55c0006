import priceList from "./price-list.json" with { type: "json" }

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

/** Where prices change with the size of a request. What was spent is kept apart by these, so that each part has one price. */
export const CONTEXT_STEPS = [128_000, 199_999, 200_000, 271_999, 272_000, 512_000]

/** The highest of the steps that a request of so many tokens is beyond; 0 where it is beyond none. */
export function contextStep(tokens: number): number {
  return CONTEXT_STEPS.findLast((step) => tokens > step) ?? 0
}

export type PriceBook = (model: string, at: number) => Price | undefined

/** Looks prices up: in the user's own first, then in the list. The last row that is valid at a time is the price. */
export function priceBook(own: PriceSource[] = []): PriceBook {
  const sources = [...own, ...PRICE_LIST]
  const known = new Map<string, { row: ListedPrice; from: string }[]>()
  const rowsOf = (name: string) => {
    const rows = known.get(name) ?? rowsFor(sources, name)
    known.set(name, rows)
    return rows
  }
  return (model, at) => {
    const name = plainName(model)
    const found = rowsOf(name).findLast(({ row }) => isValid(row, at))
    if (!found) return undefined
    const { match: _, hours: __, ...row } = found.row
    const fast = fastOf(sources, name)
    return { ...row, from: found.from, ...(fast && { fast }) }
  }
}

/** All rows of the first model that the name fits. */
function rowsFor(sources: PriceSource[], name: string): { row: ListedPrice; from: string }[] {
  for (const { prices = [], ...source } of sources) {
    const first = prices.find(({ match }) => new RegExp(match).test(name))
    if (!first) continue
    const same = prices.filter(({ provider, model }) => provider === first.provider && model === first.model)
    return same.map((row) => ({ row, from: sourceName(source) }))
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
