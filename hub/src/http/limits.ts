import type { Context } from "hono"
import { type Bucket, createBucket } from "../bucket.ts"
import { tokenHash } from "../store/people.ts"
import { HubProblem } from "../store/problem.ts"

/** For each token and each hub: kept in memory, so that asking costs no write. 0 is no limit. */
export type RequestLimits = {
  pushesPerMinute: number
  readsPerMinute: number
  atOnce: number
  /** Of what is pushed, unpacked. */
  pushedMbPerMinute?: number
}

/** Counts the bytes of a push, once it is unpacked, for whoever sent it. */
export type Spending = { spend?: (bytes: number) => void }

/** For each hub and everybody together: who begins a login has no token to count by. 0 is no limit. */
export type LoginLimits = { loginsPerMinute: number; loginsAtOnce: number }

/** Of tokens that nobody has, for each hub and everybody together. 0 is no limit. */
export type UnknownLimits = { unknownTokensPerMinute: number }

const MINUTE_MS = 60_000
/** More than this many are looked through for those that nobody uses. */
const MANY = 10_000
/** What was sent can be committed, however much it was. */
const CHUNKS = /^\/v1\/conversations\/.+\/chunks\//
const PUSHES = /^\/v1\/(push|conversations|consents)\//

/** Lets so many requests of a token through a minute, and so many at once. Throws a HubProblem (429) that says when to come back. */
export function limitRequests(limits: RequestLimits, now: () => number = Date.now) {
  const { pushedMbPerMinute: mb = 0 } = limits
  const rates = { push: limits.pushesPerMinute, read: limits.readsPerMinute }
  const tokens = new Map<string, { push: Bucket; read: Bucket; bytes: Bucket; use: Use; usedAt: number }>()
  const known = (key: string) => {
    const token = tokens.get(key) ?? {
      push: createBucket(rates.push, now),
      read: createBucket(rates.read, now),
      bytes: createBucket(mb * 1e6, now),
      use: { running: 0 },
      usedAt: 0,
    }
    token.usedAt = now()
    tokens.set(key, token)
    return token
  }
  const removeUnused = () => {
    for (const [key, { usedAt, use }] of tokens) if (use.running === 0 && now() - usedAt > MINUTE_MS) tokens.delete(key)
  }
  return async (c: Context<{ Variables: Spending }>, next: () => Promise<void>) => {
    if (tokens.size > MANY) removeUnused()
    const kind = PUSHES.test(c.req.path) ? "push" : "read"
    const { use, bytes, [kind]: bucket } = known(tokenHash(c.req.header("authorization") ?? "").toString("hex"))
    const seconds = CHUNKS.test(c.req.path) ? bytes.take(0) : 0
    if (seconds > 0) throw tooMany(`More than ${mb} MB a minute were pushed with this token.`, seconds)
    c.set("spend", bytes.spend)
    await within(next, use, bucket, {
      atOnce: limits.atOnce,
      busy: `This token has ${limits.atOnce} requests under way. Wait for one of them.`,
      often: `More than ${rates[kind]} requests a minute to ${kind} with this token.`,
    })
  }
}

/** The same for logins, of everybody together. Each that is begun asks the identity provider, each invitation the database. */
export function limitLogins({ loginsPerMinute, loginsAtOnce }: LoginLimits, now: () => number = Date.now) {
  const use = { running: 0 }
  const bucket = createBucket(loginsPerMinute, now)
  return (_: Context, next: () => Promise<void>) =>
    within(next, use, bucket, {
      atOnce: loginsAtOnce,
      busy: "Too many people are starting to log in at once. Try again in a moment.",
      often: `More than ${loginsPerMinute} logins a minute were started on this hub. Try again in a minute.`,
    })
}

/**
 * The same for tokens that nobody has, of everybody together: each is looked up in the database. One that was known before is always
 * looked up, so who works with the hub notices nothing while somebody guesses.
 */
export function limitUnknown<T>(
  perMinute: number,
  holderOf: (token: string) => Promise<T | undefined>,
  now: () => number = Date.now,
): (token: string) => Promise<T | undefined> {
  const bucket = createBucket(perMinute, now)
  const known = new Set<string>()
  return async (token) => {
    const key = tokenHash(token).toString("hex")
    const wasKnown = known.has(key)
    // Counted before it is looked up, since many may ask at once.
    const seconds = wasKnown ? 0 : bucket.take()
    if (seconds > 0) throw tooMany(`More than ${perMinute} tokens a minute that this hub does not know.`, seconds)
    const giveBack = () => void (wasKnown || bucket.spend(-1))
    const holder = await holderOf(token).catch((error: unknown) => {
      giveBack() // nobody knows whether it was one
      throw error
    })
    known.delete(key)
    if (holder === undefined) {
      if (wasKnown) bucket.spend(1)
      return undefined
    }
    giveBack()
    known.add(key)
    // The one that was used longest ago is first.
    if (known.size > MANY) known.delete(known.values().next().value!)
    return holder
  }
}

type Use = { running: number }

async function within(
  work: () => Promise<void>,
  use: Use,
  bucket: Bucket,
  { atOnce, busy, often }: { atOnce: number; busy: string; often: string },
): Promise<void> {
  if (atOnce > 0 && use.running >= atOnce) throw tooMany(busy, 1)
  const seconds = bucket.take()
  if (seconds > 0) throw tooMany(often, seconds)
  use.running++
  try {
    await work()
  } finally {
    use.running--
  }
}

function tooMany(message: string, afterSeconds: number): HubProblem {
  return new HubProblem(429, "too_many", message, { afterSeconds })
}
