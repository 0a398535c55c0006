import type { IncomingHttpHeaders } from "node:http"

const FIRST_WAIT_MS = 1_000
export const LONGEST_WAIT_MS = 30_000

/** How long to wait before the next try: what the server asks for, else 1 s, 2 s, 4 s, … */
export function waitMs(retries: number, headers: IncomingHttpHeaders | undefined, now: number): number {
  return retryAfter(headers, now) ?? Math.min(FIRST_WAIT_MS * 2 ** retries, LONGEST_WAIT_MS)
}

/** `Retry-After`: seconds, or a date. */
function retryAfter(headers: IncomingHttpHeaders | undefined, now: number): number | undefined {
  const value = headers?.["retry-after"]?.trim() ?? ""
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1000
  const date = /^[a-z]{3}/i.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
