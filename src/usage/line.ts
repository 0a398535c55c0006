import { localDay, localMinute } from "../core/dates.ts"
import { localWeek } from "./periods.ts"

/** The content of a status line, as the last sync wrote it. */
export type LineState = {
  at: number
  plan?: string
  today: { day: string; cost: number; tokens: number; unpriced_tokens: number }
  /** The five-hour block that was running at that time. */
  block?: { end: number; cost: number }
  budgets?: Budget[]
}

/** A budget in dollars, and the spending in the period that began on this day. */
export type Budget = { period: "day" | "week"; start: string; limit: number; spent: number }

/** The share of a budget from which dex warns. */
const WARNING_SHARE = 0.8

/** Warns of the budgets of the current day and week that are nearly or completely spent. */
export function budgetWarnings(budgets: readonly Budget[], now: number): string[] {
  return budgets
    .filter(({ period, start }) => start === (period === "day" ? localDay(now) : localWeek(now)))
    .filter(({ limit, spent }) => spent >= limit * WARNING_SHARE)
    .map(({ period, limit, spent }) => {
      const state = spent >= limit ? "OVER BUDGET" : "budget"
      return `${state} of the ${period}: ${dollars(spent)} of ${dollars(limit)}`
    })
}

/** Formats the status line, with its age. A block that has ended is not shown. */
export function usageLine({ at, plan, today, block, budgets = [] }: LineState, now: number): string {
  const unpricedMark = today.unpriced_tokens > 0 ? "+" : ""
  return [
    ...budgetWarnings(budgets, now),
    `${today.day === localDay(now) ? "today" : today.day} ${dollars(today.cost)}${unpricedMark}`,
    `${shortCount(today.tokens)} tokens`,
    ...(block && block.end > now ? [`block ${dollars(block.cost)} until ${localMinute(block.end).slice(11)}`] : []),
    ...(plan === undefined ? [] : ["list price"]),
    `${formatAge(now - at)} old`,
  ].join(" · ")
}

/** Formats an amount in dollars: $0.00, $1.23, $1,234.56, $12,345. */
export function dollars(amount: number): string {
  if (amount > 0 && amount < 0.005) return "<$0.01"
  const digits = amount >= 10_000 ? 0 : 2
  return `$${amount.toFixed(digits).replace(/\B(?=(\d{3})+(?!\d))/g, ",")}`
}

/** Formats a count in a short form: 950, 12.3 k, 4.56 M, 1.37 B. */
export function shortCount(count: number): string {
  const [unit, size] = count >= 1e9 ? ["B", 1e9] : count >= 1e6 ? ["M", 1e6] : count >= 1e3 ? ["k", 1e3] : ["", 1]
  if (size === 1) return String(count)
  const value = count / size
  return `${value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)} ${unit}`
}

function formatAge(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / 60_000))
  if (minutes < 60) return `${minutes} min`
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1_440)} days`
}
