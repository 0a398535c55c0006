const MINUTE_MS = 60_000

/**
 * A rate limit. `take` returns 0, or the seconds to wait if nothing is left. `spend` subtracts an amount that is known only
 * later.
 */
export type Bucket = { take(amount?: number): number; spend(amount: number): void }

/** A minute's worth may be used at once; then the bucket refills gradually. 0 means no limit. */
export function createBucket(perMinute: number, now: () => number): Bucket {
  let [left, at] = [perMinute, now()]
  return {
    take: (amount = 1) => {
      if (perMinute === 0) return 0
      left = Math.min(perMinute, left + (Math.max(0, now() - at) / MINUTE_MS) * perMinute)
      at = now()
      if (left < 1) return Math.ceil(((1 - left) * 60) / perMinute)
      left -= amount
      return 0
    },
    spend: (amount) => {
      left -= amount
    },
  }
}
