import type { Context } from "hono"
import { tokenHash } from "../store/people.ts"
import { HubProblem } from "../store/problem.ts"

/** For each token and each hub: kept in memory, so that asking costs no write. 0 is no limit. */
export type RequestLimits = { pushesPerMinute: number; readsPerMinute: number; atOnce: number }

type Kind = "push" | "read"
type Bucket = { left: Record<Kind, number>; at: number; running: number }

const MINUTE_MS = 60_000
/** More than this many are looked through for those that nobody uses. */
const MANY = 10_000
const PUSHES = /^\/v1\/(push|conversations|consents)\//

/**
 * Lets so many requests a minute through, and so many at once. A token may use a minute's worth in one go; then it fills up again little
 * by little. Throws a HubProblem (429) that says when to come back.
 */
export function limitRequests(limits: RequestLimits, now: () => number = Date.now) {
  const rates = { push: limits.pushesPerMinute, read: limits.readsPerMinute }
  const buckets = new Map<string, Bucket>()
  const bucketOf = (key: string): Bucket => {
    const bucket = buckets.get(key) ?? { left: { ...rates }, at: now(), running: 0 }
    const passed = Math.max(0, now() - bucket.at) / MINUTE_MS
    for (const kind of ["push", "read"] as const)
      bucket.left[kind] = Math.min(rates[kind], bucket.left[kind] + passed * rates[kind])
    bucket.at = now()
    buckets.set(key, bucket)
    return bucket
  }
  const removeUnused = () => {
    for (const [key, { at, running }] of buckets) if (running === 0 && now() - at > MINUTE_MS) buckets.delete(key)
  }
  return async (c: Context, next: () => Promise<void>) => {
    if (buckets.size > MANY) removeUnused()
    const kind = PUSHES.test(c.req.path) ? "push" : "read"
    const bucket = bucketOf(tokenHash(c.req.header("authorization") ?? "").toString("hex"))
    if (limits.atOnce > 0 && bucket.running >= limits.atOnce)
      throw tooMany(`This token has ${limits.atOnce} requests under way. Wait for one of them.`, 1)
    if (rates[kind] > 0) {
      const missing = 1 - bucket.left[kind]
      if (missing > 0)
        throw tooMany(
          `More than ${rates[kind]} requests a minute to ${kind} with this token.`,
          Math.ceil((missing * 60) / rates[kind]),
        )
      bucket.left[kind]--
    }
    bucket.running++
    try {
      await next()
    } finally {
      bucket.running--
    }
  }
}

function tooMany(message: string, afterSeconds: number): HubProblem {
  return new HubProblem(429, "too_many", message, { afterSeconds })
}
