import type { Context } from "hono"
import { type Bucket, createBucket } from "../bucket.ts"
import { tokenHash } from "../store/people.ts"
import { HubProblem } from "../store/problem.ts"

/**
 * Limits for each token. Each hub process counts requests on its own, in memory, so that a check writes nothing to the database.
 * 0 means no limit.
 */
export type RequestLimits = {
  pushesPerMinute: number
  readsPerMinute: number
  atOnce: number
  /** Megabytes of uncompressed text. */
  pushedMbPerMinute?: number
}

/** `spend` counts the uncompressed bytes of a chunk towards the limit of the token that sent it. */
export type ByteCounter = { spend?: (bytes: number) => void }

/** Limits for all clients of a hub together, because a client that starts to log in has no token yet. 0 means no limit. */
export type LoginLimits = { loginsPerMinute: number; loginsAtOnce: number }

/** The limit for unknown tokens, for all clients of a hub together. 0 means no limit. */
export type UnknownLimits = { unknownTokensPerMinute: number }

const MINUTE_MS = 60_000
/** The number of remembered tokens above which old ones are forgotten. */
const MAX_ENTRIES = 10_000
/**
 * Matches the route of chunks. Only chunks count towards the limit in megabytes, so that a push whose chunks have all arrived can
 * be committed.
 */
const CHUNK_ROUTE = /^\/v1\/conversations\/.+\/chunks\//
const PUSH_ROUTES = /^\/v1\/(push|conversations|consents)\//

/** Limits a token's requests per minute and its parallel requests. Throws a HubProblem (429) that says when to retry. */
export function limitRequests(limits: RequestLimits, now: () => number = Date.now) {
  const { pushedMbPerMinute: mb = 0 } = limits
  const rates = { push: limits.pushesPerMinute, read: limits.readsPerMinute }
  const tokens = new Map<string, { push: Bucket; read: Bucket; bytes: Bucket; use: TokenUse; usedAt: number }>()
  const entryOf = (key: string) => {
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
  return async (c: Context<{ Variables: ByteCounter }>, next: () => Promise<void>) => {
    if (tokens.size > MAX_ENTRIES) removeUnused()
    const kind = PUSH_ROUTES.test(c.req.path) ? "push" : "read"
    const { use, bytes, [kind]: bucket } = entryOf(tokenHash(c.req.header("authorization") ?? "").toString("hex"))
    const seconds = CHUNK_ROUTE.test(c.req.path) ? bytes.take(0) : 0
    if (seconds > 0)
      throw tooManyProblem(`This token has pushed more than ${mb} MB in a minute. Try again later.`, seconds)
    c.set("spend", bytes.spend)
    await runLimited(next, use, bucket, {
      atOnce: limits.atOnce,
      busyMessage: `This token has ${limits.atOnce} requests in progress. Wait until one of them is done.`,
      rateMessage: `This token has sent more than ${rates[kind]} requests to ${kind} in a minute. Try again later.`,
    })
  }
}

/** Limits the logins of all clients together, because each one calls the identity provider or reads the database. */
export function limitLogins({ loginsPerMinute, loginsAtOnce }: LoginLimits, now: () => number = Date.now) {
  const use = { running: 0 }
  const bucket = createBucket(loginsPerMinute, now)
  return (_: Context, next: () => Promise<void>) =>
    runLimited(next, use, bucket, {
      atOnce: loginsAtOnce,
      busyMessage: "Too many people are starting to log in at once. Try again in a moment.",
      rateMessage: `More than ${loginsPerMinute} logins were started on this hub in a minute. Try again in a minute.`,
    })
}

/**
 * Limits unknown tokens of all clients together, because each is looked up in the database. A token that was valid before is
 * always looked up, so that guessed tokens of others do not lock members out.
 */
export function limitUnknown<T>(
  perMinute: number,
  holderOf: (token: string) => Promise<T | undefined>,
  now: () => number = Date.now,
): (token: string) => Promise<T | undefined> {
  const bucket = createBucket(perMinute, now)
  const validTokens = new Set<string>()
  return async (token) => {
    const key = tokenHash(token).toString("hex")
    const wasKnown = validTokens.has(key)
    // Counted before the lookup, because more requests may arrive while it runs.
    const seconds = wasKnown ? 0 : bucket.take()
    if (seconds > 0)
      throw tooManyProblem(
        `This hub received more than ${perMinute} unknown tokens in a minute. Try again later.`,
        seconds,
      )
    const refund = () => void (wasKnown || bucket.spend(-1))
    const holder = await holderOf(token).catch((error: unknown) => {
      refund() // the lookup failed, so the token may be valid
      throw error
    })
    validTokens.delete(key)
    if (holder === undefined) {
      if (wasKnown) bucket.spend(1)
      return undefined
    }
    refund()
    validTokens.add(key)
    // A Set keeps its order, so the first entry is the least recently used one.
    if (validTokens.size > MAX_ENTRIES) validTokens.delete(validTokens.values().next().value!)
    return holder
  }
}

type TokenUse = { running: number }

async function runLimited(
  work: () => Promise<void>,
  use: TokenUse,
  bucket: Bucket,
  { atOnce, busyMessage, rateMessage }: { atOnce: number; busyMessage: string; rateMessage: string },
): Promise<void> {
  if (atOnce > 0 && use.running >= atOnce) throw tooManyProblem(busyMessage, 1)
  const seconds = bucket.take()
  if (seconds > 0) throw tooManyProblem(rateMessage, seconds)
  use.running++
  try {
    await work()
  } finally {
    use.running--
  }
}

function tooManyProblem(message: string, afterSeconds: number): HubProblem {
  return new HubProblem(429, "too_many", message, { afterSeconds })
}
