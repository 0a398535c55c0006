const MINUTE_MS = 60_000

/**
 * A rate limit. `take` returns 0, or the seconds to wait if nothing is left. `spend` subtracts an amount that is known only
 * later.
 */
export type Bucket = { take(amount?: number): number; spend(amount: number): void }

/** The amount for one minute may be used at once; then the bucket refills gradually. 0 means no limit. */
export function createBucket(perMinute: number, now: () => number): Bucket {
  let [remaining, updatedAt] = [perMinute, now()]
  return {
    take: (amount = 1) => {
      if (perMinute === 0) return 0
      remaining = Math.min(perMinute, remaining + (Math.max(0, now() - updatedAt) / MINUTE_MS) * perMinute)
      updatedAt = now()
      if (remaining < 1) return Math.ceil(((1 - remaining) * 60) / perMinute)
      remaining -= amount
      return 0
    },
    spend: (amount) => {
      remaining -= amount
    },
  }
}
