import { renameSync, writeFileSync } from "node:fs"
import { DAY_MS, localDay } from "../../core/dates.ts"
import type { SpendingFile } from "../../store/spending/spending-file.ts"
import type { LineState } from "../../usage/line.ts"
import { BLOCK_MS, fiveHourBlocks } from "../../usage/periods.ts"
import { createPayment, totalSum } from "../../usage/sums.ts"
import type { Dex } from "../context.ts"
import { type PriceSettings, priceSettings } from "./payments.ts"

/** How far to look back for a pause of five hours, from which the blocks are counted, in milliseconds. */
const LOOKS_BACK_MS = 14 * DAY_MS

/** Stores the text of `dex usage --line`, which has no time to open a database. The text names no project or conversation. */
export function saveStatusLine(
  dex: Dex,
  spending: SpendingFile,
  settings: PriceSettings = priceSettings(dex),
): LineState {
  const now = dex.now()
  spending.wantLine()
  const spent = spending.spentBetween(now - LOOKS_BACK_MS, now).filter(({ superseded }) => !superseded)
  const paid = spent.map((part) => createPayment(part, undefined, false, settings.book))
  const day = localDay(now)
  const { cost, tokens, unpriced_tokens } = totalSum(paid.filter(({ at }) => localDay(at) === day))
  const starts = fiveHourBlocks(paid.map(({ at }) => at))
  const running = [...starts.values()].find((start) => now < start + BLOCK_MS)
  const block = running !== undefined && {
    end: running + BLOCK_MS,
    cost: totalSum(paid.filter(({ at }) => starts.get(at) === running)).cost,
  }
  const state: LineState = {
    at: now,
    plan: settings.plan,
    today: { day, cost, tokens, unpriced_tokens },
    block: block || undefined,
  }
  const written = `${dex.home.usageLine}.${process.pid}`
  writeFileSync(written, JSON.stringify(state), { mode: 0o600 })
  renameSync(written, dex.home.usageLine)
  return state
}
