import type { Spending } from "../core/usage.ts"
import { type Money, moneyFor, NO_MONEY, type PricedUsage, totalMoney } from "./money.ts"
import type { PriceBook } from "./price-of.ts"
import { countTokens, SPENT_COUNTS, type SpentCounts } from "./spending.ts"

/** A part of a conversation's spending, with its cost. */
export type Payment<Who> = Spending & { who: Who; isSubagent: boolean; priced: PricedUsage }

export type Sum = SpentCounts & {
  tokens: number
  money: Money
  /** In dollars. */
  cost: number
  /** Tokens without a known price. They are included in `tokens`, but not in `cost`. */
  unpriced_tokens: number
  subagent_tokens: number
  subagent_cost: number
}

/** Returns one sum for each group, in the order in which the groups first appeared. */
export function sumByGroup<Who>(
  payments: Payment<Who>[],
  groupOf: (payment: Payment<Who>) => string,
): Map<string, Sum> {
  const groups = new Map<string, Sum>()
  for (const payment of payments) {
    const key = groupOf(payment)
    const sum = groups.get(key) ?? emptySum()
    groups.set(key, sum)
    addPayment(sum, payment)
  }
  return groups
}

export function totalSum(payments: Payment<unknown>[]): Sum {
  const sum = emptySum()
  for (const payment of payments) addPayment(sum, payment)
  return sum
}

export function createPayment<Who>(spending: Spending, who: Who, isSubagent: boolean, book: PriceBook): Payment<Who> {
  return { ...spending, who, isSubagent, priced: moneyFor(spending, book) }
}

function emptySum(): Sum {
  const counts = Object.fromEntries(SPENT_COUNTS.map((name) => [name, 0])) as SpentCounts
  const money = { ...NO_MONEY }
  return { ...counts, tokens: 0, money, cost: 0, unpriced_tokens: 0, subagent_tokens: 0, subagent_cost: 0 }
}

/** Adds in place and field by field, because there may be a hundred thousand payments. */
function addPayment(sum: Sum, payment: Payment<unknown>): void {
  const { priced, isSubagent } = payment
  addCounts(sum, payment)
  const cost = addMoney(sum.money, priced.money)
  const tokens = countTokens(payment)
  sum.tokens += tokens
  sum.cost += cost
  if (priced.unpriced === "tokens") sum.unpriced_tokens += tokens
  if (!isSubagent) return
  sum.subagent_tokens += tokens
  sum.subagent_cost += cost
}

function addCounts(sum: SpentCounts, more: SpentCounts): void {
  sum.answers += more.answers
  sum.input += more.input
  sum.output += more.output
  sum.reasoning += more.reasoning
  sum.cache_read += more.cache_read
  sum.cache_write_5m += more.cache_write_5m
  sum.cache_write_1h += more.cache_write_1h
  sum.cache_write_other += more.cache_write_other
  sum.web_searches += more.web_searches
  sum.web_fetches += more.web_fetches
  sum.recorded += more.recorded
}

/** Adds `more` to `sum`, and returns the total of `more`. */
function addMoney(sum: Money, more: Money): number {
  sum.input += more.input
  sum.output += more.output
  sum.cache_read += more.cache_read
  sum.cache_write_5m += more.cache_write_5m
  sum.cache_write_1h += more.cache_write_1h
  sum.web_searches += more.web_searches
  sum.recorded += more.recorded
  return totalMoney(more)
}

/** A commit or a pull request, one of the conversations that it came from, and when that conversation made it. */
type Contribution = { name: string; conversation: number; at: number }

/**
 * Maps each row of spending to the next commit or pull request that its conversation made. Rows after the last one are mapped to
 * undefined or, with `afterwards`, to the last one, as is usual for a pull request. The caller decides
 * which conversations a commit or pull request came from: those that ran the commit, or those that wrote its lines.
 */
export function attributeSpending<Row extends { conversation: number; at: number }>(
  rows: Row[],
  contributions: Contribution[],
  { afterwards }: { afterwards: boolean },
): Map<Row, string | undefined> {
  const byConversation = Map.groupBy(
    contributions.toSorted((a, b) => a.at - b.at),
    ({ conversation }) => conversation,
  )
  return new Map(
    rows.map((row) => {
      const ownContributions = byConversation.get(row.conversation) ?? []
      const next = ownContributions.find(({ at }) => at >= row.at) ?? (afterwards ? ownContributions.at(-1) : undefined)
      return [row, next?.name]
    }),
  )
}
