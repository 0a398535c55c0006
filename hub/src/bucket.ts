const MINUTE_MS = 60_000

/** `take` says 0, or that there is none left for so many seconds. `spend` takes what was used, once that is known: more than there is, too. */
export type Bucket = { take(amount?: number): number; spend(amount: number): void }

/** A minute's worth may be used in one go; then it fills up again little by little. 0 is no limit. */
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
