import { renameSync, writeFileSync } from "node:fs"
import { DAY_MS, localDay } from "../../core/dates.ts"
import type { SpendingFile } from "../../store/spending/spending-file.ts"
import type { Budget, LineState } from "../../usage/line.ts"
import { BLOCK_MS, fiveHourBlocks, localWeek } from "../../usage/periods.ts"
import { createPayment, totalSum } from "../../usage/sums.ts"
import type { Dex } from "../context.ts"
import { type PriceSettings, priceSettings } from "./payments.ts"

/**
 * How far to look back for the beginning of the current block, in milliseconds. Each block begins after the one before it ends,
 * so blocks can be counted only from a pause of five hours, which may be days ago.
 */
const LOOKBACK_MS = 14 * DAY_MS

/**
 * Stores the values that `dex usage --line` prints, because that command has no time to open a database. They name no project or
 * conversation.
 */
export function saveStatusLine(
  dex: Dex,
  spending: SpendingFile,
  settings: PriceSettings = priceSettings(dex),
): LineState {
  const now = dex.now()
  spending.wantLine()
  const spentParts = spending.spentBetween(now - LOOKBACK_MS, now).filter(({ superseded }) => !superseded)
  const payments = spentParts.map((part) => createPayment(part, undefined, false, settings.book))
  const day = localDay(now)
  const { cost, tokens, unpriced_tokens } = totalSum(payments.filter(({ at }) => localDay(at) === day))
  const week = localWeek(now)
  const starts = fiveHourBlocks(payments.map(({ at }) => at))
  const currentStart = [...starts.values()].find((start) => now < start + BLOCK_MS)
  const block = currentStart !== undefined && {
    end: currentStart + BLOCK_MS,
    cost: totalSum(payments.filter(({ at }) => starts.get(at) === currentStart)).cost,
  }
  const state: LineState = {
    at: now,
    plan: settings.plan,
    today: { day, cost, tokens, unpriced_tokens },
    block: block || undefined,
    budgets: [
      ...budgetOf("day", day, settings.budgets.day, cost),
      ...budgetOf(
        "week",
        week,
        settings.budgets.week,
        totalSum(payments.filter(({ at }) => localWeek(at) === week)).cost,
      ),
    ],
  }
  const temporaryFile = `${dex.home.usageLine}.${process.pid}`
  writeFileSync(temporaryFile, JSON.stringify(state), { mode: 0o600 })
  renameSync(temporaryFile, dex.home.usageLine)
  return state
}

function budgetOf(period: Budget["period"], start: string, limit: number | undefined, spent: number): Budget[] {
  return limit === undefined ? [] : [{ period, start, limit, spent }]
}
