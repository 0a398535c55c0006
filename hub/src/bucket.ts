const MINUTE_MS = 60_000

/** Says 0, or that there is none left for so many seconds. */
export type Bucket = { take(): number }

/** A minute's worth may be used in one go; then it fills up again little by little. 0 is no limit. */
export function createBucket(perMinute: number, now: () => number): Bucket {
  let [left, at] = [perMinute, now()]
  return {
    take: () => {
      if (perMinute === 0) return 0
      left = Math.min(perMinute, left + (Math.max(0, now() - at) / MINUTE_MS) * perMinute)
      at = now()
      if (left < 1) return Math.ceil(((1 - left) * 60) / perMinute)
      left--
      return 0
    },
  }
}
