import { DexError } from "./error.ts"

export const DAY_MS = 86_400_000
const UNIT_MS: Record<string, number> = { m: 60_000, h: 3_600_000, d: DAY_MS, w: 7 * DAY_MS }

/** Examples of the accepted date formats, for messages. */
export const DATE_EXAMPLES =
  "a day (2026-11-03, today, yesterday), a month (2026-11), a date with a time (2026-11-03T10:00), or how long ago (30m, 12h, 7d, 2w)"

/**
 * Parses a date as people write it: `2026-11-03`, `2026-11-03T10:00`, `2026-11`, `7d`, `12h`, `2w`, `today`, `yesterday`. A day
 * or a month is in local time. As the end of a range, it includes the whole day or month.
 */
export function parseDate(text: string, edge: "from" | "to", now: number): number {
  const typed = text.trim().toLowerCase()
  const ago = /^(\d{1,5})([mhdw])$/.exec(typed)
  if (ago) return now - Number(ago[1]) * UNIT_MS[ago[2]!]!
  if (typed === "now") return now
  if (typed === "today" || typed === "yesterday") {
    const day = new Date(now)
    return dayEdge(day.getFullYear(), day.getMonth(), day.getDate() - (typed === "yesterday" ? 1 : 0), edge)
  }
  const date = /^(\d{4})-(\d{2})(?:-(\d{2})(t.*)?)?$/.exec(typed)
  if (date) {
    const [year, month, day] = [Number(date[1]), Number(date[2]) - 1, Number(date[3] ?? 1)]
    const exists = new Date(year, month, day).getMonth() === month // 31 February becomes 3 March
    const dayOrMonth = () => (date[3] === undefined ? monthEdge(year, month, edge) : dayEdge(year, month, day, edge))
    const at = date[4] === undefined ? dayOrMonth() : Date.parse(text.trim())
    if (exists && !Number.isNaN(at)) return at
  }
  throw new DexError("bad_date", `"${text}" is not a date that dex understands. Write ${DATE_EXAMPLES}.`)
}

function dayEdge(year: number, month: number, day: number, edge: "from" | "to"): number {
  return edge === "from" ? new Date(year, month, day).getTime() : new Date(year, month, day + 1).getTime() - 1
}

function monthEdge(year: number, month: number, edge: "from" | "to"): number {
  return edge === "from" ? new Date(year, month, 1).getTime() : new Date(year, month + 1, 1).getTime() - 1
}

/** Formats a time as 2026-11-03T09:12:00.000Z. */
export function isoDate(at: number): string {
  return new Date(at).toISOString()
}

/** Formats a time as 2026-11-03, in local time. */
export function localDay(at: number): string {
  return localMinute(at).slice(0, 10)
}

/** Formats a time as 2026-11-03 09:12, in local time. */
export function localMinute(at: number): string {
  const date = new Date(at)
  const [month, day, hour, minute] = [date.getMonth() + 1, date.getDate(), date.getHours(), date.getMinutes()].map(
    (n) => String(n).padStart(2, "0"),
  )
  return `${date.getFullYear()}-${month}-${day} ${hour}:${minute}`
}
