import type { Spending } from "../core/usage.ts"
import { addMoney, type Money, moneyFor, NO_MONEY, type Priced, totalMoney } from "./money.ts"
import type { PriceBook } from "./price-of.ts"
import { SPENT_COUNTS, type SpentCounts, sumOf, tokensIn } from "./spending.ts"

/** A part of what a conversation spent, with what it costs. */
export type Payment<Who> = Spending & { who: Who; isSubagent: boolean; priced: Priced }

export type Sum = SpentCounts & {
  tokens: number
  money: Money
  /** Dollars. */
  cost: number
  /** Tokens whose price nobody says: they are in `tokens` and not in `cost`. */
  unpriced_tokens: number
  subagent_tokens: number
  subagent_cost: number
}

/** Those of one group together, in the order in which the groups first came. */
export function summed<Who>(payments: Payment<Who>[], groupOf: (payment: Payment<Who>) => string): Map<string, Sum> {
  const groups = new Map<string, Sum>()
  for (const payment of payments) {
    const key = groupOf(payment)
    groups.set(key, added(groups.get(key) ?? nothing(), payment))
  }
  return groups
}

export function total<Who>(payments: Payment<Who>[]): Sum {
  return payments.reduce(added, nothing())
}

export function payment<Who>(spending: Spending, who: Who, isSubagent: boolean, book: PriceBook): Payment<Who> {
  return { ...spending, who, isSubagent, priced: moneyFor(spending, book) }
}

function nothing(): Sum {
  const counts = Object.fromEntries(SPENT_COUNTS.map((name) => [name, 0])) as SpentCounts
  return { ...counts, tokens: 0, money: NO_MONEY, cost: 0, unpriced_tokens: 0, subagent_tokens: 0, subagent_cost: 0 }
}

function added(sum: Sum, payment: Payment<unknown>): Sum {
  const { priced, isSubagent } = payment
  const tokens = tokensIn(payment)
  const cost = totalMoney(priced.money)
  return {
    ...sumOf(sum, payment),
    tokens: sum.tokens + tokens,
    money: addMoney(sum.money, priced.money),
    cost: sum.cost + cost,
    unpriced_tokens: sum.unpriced_tokens + (priced.unpriced === "tokens" ? tokens : 0),
    subagent_tokens: sum.subagent_tokens + (isSubagent ? tokens : 0),
    subagent_cost: sum.subagent_cost + (isSubagent ? cost : 0),
  }
}
