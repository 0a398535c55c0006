import { DAY_MS, localDay } from "../core/dates.ts"

const HOUR_MS = 3_600_000
export const BLOCK_MS = 5 * HOUR_MS

/** Returns the Monday of the week that contains this time, in local time. */
export function localWeek(at: number): string {
  const noon = new Date(at)
  noon.setHours(12, 0, 0, 0) // noon, because a day may have 23 hours
  return localDay(noon.getTime() - ((noon.getDay() + 6) % 7) * DAY_MS)
}

export function localMonth(at: number): string {
  return localDay(at).slice(0, 7)
}

/**
 * Maps each time to the start of its five-hour block. A block begins with the hour of the first answer after the previous
 * block, and lasts five hours, like the limits of Claude's plans.
 */
export function fiveHourBlocks(times: number[]): Map<number, number> {
  const starts = new Map<number, number>()
  let start = Number.NEGATIVE_INFINITY
  for (const at of times.toSorted((a, b) => a - b)) {
    if (at >= start + BLOCK_MS) start = Math.floor(at / HOUR_MS) * HOUR_MS
    starts.set(at, start)
  }
  return starts
}

/** Returns all days from `from` to `to`, both included. */
export function daysBetween(from: string, to: string): string[] {
  const days: string[] = []
  for (let at = Date.parse(`${from}T12:00:00`); localDay(at) <= to; at += DAY_MS) days.push(localDay(at))
  return days
}
