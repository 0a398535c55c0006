import type { Spending } from "../core/usage.ts"
import type { Price, PriceBook, Rates } from "./price-of.ts"

/** US dollars by kind of use. `recorded` is the cost that the agent itself recorded, used if no price is known for the model. */
export type Money = {
  input: number
  output: number
  cache_read: number
  cache_write_5m: number
  cache_write_1h: number
  web_searches: number
  recorded: number
}

export const NO_MONEY: Money = {
  input: 0,
  output: 0,
  cache_read: 0,
  cache_write_5m: 0,
  cache_write_1h: 0,
  web_searches: 0,
  recorded: 0,
}

export type PricedUsage = {
  money: Money
  price?: Price
  /** Set if there is no price, so that these tokens or searches are not included in the cost. */
  unpriced?: "tokens" | "searches"
  /** A fast mode or service tier whose price is not known. The standard price is used for it. */
  unknown?: string
}

/** Computes the cost of spending at list prices. If no price is known, uses the cost that the agent recorded. */
export function moneyFor(spending: Spending, book: PriceBook): PricedUsage {
  const price = spending.model === undefined ? undefined : book(spending.model, spending.at)
  if (!price) {
    const { recorded } = spending
    return recorded > 0 ? { money: { ...NO_MONEY, recorded } } : { money: NO_MONEY, unpriced: "tokens" }
  }
  const rates = ratesFor(price, spending.context)
  const { times, unknown } = speedFactor(spending, price)
  const costOf = (tokens: number, rate: number) => (tokens * rate * times) / 1e6
  const inputRate = rates.input ?? 0
  const writeRate = rates.cache_write ?? inputRate
  return {
    price,
    money: {
      input: costOf(spending.input, inputRate),
      output: costOf(spending.output, rates.output ?? 0),
      cache_read: costOf(spending.cache_read, rates.cache_read ?? inputRate),
      cache_write_5m: costOf(spending.cache_write_5m + spending.cache_write_other, writeRate),
      cache_write_1h: costOf(spending.cache_write_1h, rates.cache_write_1h ?? writeRate),
      web_searches: (spending.web_searches * (rates.web_search ?? 0)) / 1e3,
      recorded: 0,
    },
    unpriced: spending.web_searches > 0 && rates.web_search === undefined ? "searches" : undefined,
    unknown,
  }
}

function ratesFor({ rates, long = [] }: Price, context: number): Rates {
  return long.findLast(({ over }) => context >= over) ?? rates
}

const STANDARD_TIERS = ["standard", "default", "auto"]

function speedFactor({ speed, service_tier }: Spending, { fast }: Price): { times: number; unknown?: string } {
  if (speed === "fast") return fast ? { times: fast.times } : { times: 1, unknown: "speed fast" }
  if (service_tier !== undefined && !STANDARD_TIERS.includes(service_tier))
    return { times: 1, unknown: `service tier ${service_tier}` }
  return { times: 1 }
}

export function totalMoney({
  input,
  output,
  cache_read,
  cache_write_5m,
  cache_write_1h,
  web_searches,
  recorded,
}: Money): number {
  return input + output + cache_read + cache_write_5m + cache_write_1h + web_searches + recorded
}
