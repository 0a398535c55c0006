import { time } from "../../core/record.ts"

/** As `time`; a date without a zone, as SQLite writes it, is in UTC. */
export function utcTime(value: unknown): number | undefined {
  if (typeof value === "string" && /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?$/.test(value))
    return time(`${value.replace(" ", "T")}Z`)
  return time(value)
}

/** When a conversation began and ended, as far as anything in it has a time. */
export function spanOf(times: readonly (number | undefined)[]): { started_at?: number; ended_at?: number } {
  const known = times.filter((at) => at !== undefined)
  if (known.length === 0) return {}
  return { started_at: known.reduce((a, b) => Math.min(a, b)), ended_at: known.reduce((a, b) => Math.max(a, b)) }
}
