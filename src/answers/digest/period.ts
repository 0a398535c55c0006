import { DAY_MS, localDay, parseDate } from "../../core/dates.ts"
import { withoutUndefined } from "../../core/defined.ts"
import { DexError } from "../../core/error.ts"

export const PERIODS = ["today", "yesterday", "week"] as const
export type PeriodInput = { period?: (typeof PERIODS)[number]; from?: string; to?: string }
type Period = {
  /** `today`, `yesterday`, `week`, or `dates` if a range was given. */
  name: string
  from: number
  to: number
  /** Filters for `dex map`, with days instead of times, so that a repeated digest finds its cached answers. */
  filters: { from: string; to?: string }
}

const DAYS_BEFORE = { today: 0, yesterday: 1, week: 6 }

/** The period that the input describes. The default is the day so far. */
export function periodOf({ period, from, to }: PeriodInput, now: number): Period {
  if (from === undefined && to === undefined) return namedPeriod(period ?? "today", now)
  if (period !== undefined) throw new DexError("usage", "Use either --period, or --from and --to.")
  if (from === undefined) throw new DexError("usage", "--to needs --from, such as --from 7d.")
  const range = { from: parseDate(from, "from", now), to: to === undefined ? now : parseDate(to, "to", now) }
  if (range.from > range.to)
    throw new DexError(
      "usage",
      `The period would end before it starts: ${localDay(range.from)} is after ${localDay(range.to)}.`,
    )
  return { name: "dates", ...range, filters: withoutUndefined({ from, to }) }
}

function namedPeriod(name: (typeof PERIODS)[number], now: number): Period {
  const day = new Date(now)
  // Computed from noon, because days on which summer time begins or ends do not have 24 hours.
  const noon = new Date(day.getFullYear(), day.getMonth(), day.getDate(), 12).getTime()
  const first = localDay(noon - DAYS_BEFORE[name] * DAY_MS)
  const from = parseDate(first, "from", now)
  if (name !== "yesterday") return { name, from, to: now, filters: { from: first } }
  return { name, from, to: parseDate(first, "to", now), filters: { from: first, to: first } }
}
