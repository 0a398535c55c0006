import type { Due, Outcome } from "../store/outbox.ts"
import type { Suggestions } from "../store/suggestions.ts"
import { type Lookup, targetOf } from "./address.ts"
import { messageOf } from "./body.ts"
import { post } from "./post.ts"
import { signedHeaders } from "./sign.ts"

export type DeliverParts = {
  suggestions: Suggestions
  now(): number
  version: string
  /** Hosts that the user allowed, whatever their address. */
  allowedHosts(): readonly string[]
  /** False for a project that is answered only inside itself. */
  mayLeave(project: string): boolean
  lookup?: Lookup
  /** Whom to trust beside the system's authorities. */
  ca?: string
  timeoutMs?: number
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** Svix's schedule: how long after the attempt before. */
export const DELAYS_MS = [0, 5_000, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR] as const
const TIMEOUT_MS = 15_000
const AT_ONCE = 8
const GONE = 410

export type Delivered = { delivered: number; again: number; dead: number }

/**
 * Sends what is due, until nothing is or the signal says so. One process at a time may do this (see `keepDelivering`).
 * What is sent and not recorded, because the process was killed in between, is sent again under the same id.
 */
export async function deliverDue(parts: DeliverParts, signal?: AbortSignal): Promise<Delivered> {
  const sum: Delivered = { delivered: 0, again: 0, dead: 0 }
  for (;;) {
    const due = parts.suggestions.due(parts.now(), AT_ONCE)
    if (due.length === 0 || signal?.aborted) return sum
    await Promise.all(
      due.map(async (one) => {
        const outcome = await attempt(parts, one)
        parts.suggestions.record(outcome)
        sum[outcome.ended.type]++
      }),
    )
  }
}

async function attempt(parts: DeliverParts, { id, suggestion_id, subscription, url, attempts }: Due): Promise<Outcome> {
  const { suggestions, now } = parts
  const ended = (ended: Outcome["ended"]): Outcome => ({ id, at: now(), ended })
  const failed = (problem: string) => {
    const delay = DELAYS_MS[attempts + 1]
    return ended(delay === undefined ? { type: "dead", problem } : { type: "again", next_at: now() + delay, problem })
  }
  const suggestion = suggestions.get(suggestion_id)
  const secret = suggestions.secretOf(subscription)
  if (!suggestion || secret === undefined) return ended({ type: "dead", problem: "it is not kept any more" })
  if (!parts.mayLeave(suggestion.moment.project)) return ended({ type: "dead", problem: "the project is private" })
  const target = await targetOf(url, parts.allowedHosts(), parts.lookup)
  if ("refused" in target) return failed(target.refused)
  const body = messageOf(suggestion)
  const headers = {
    "Content-Type": "application/json",
    "User-Agent": `dex/${parts.version}`,
    ...signedHeaders(secret, id, now(), body),
  }
  const answer = await post(target, headers, body, {
    timeoutMs: parts.timeoutMs ?? TIMEOUT_MS,
    ...(parts.ca !== undefined && { ca: parts.ca }),
  })
  if ("problem" in answer) return failed(answer.problem)
  const { status } = answer
  if (status >= 200 && status < 300) return ended({ type: "delivered" })
  if (status !== GONE) return failed(status < 400 ? `${status}: redirects are not followed` : String(status))
  const gone = "The receiver answered 410: it does not want any more."
  suggestions.disable(subscription, gone)
  return ended({ type: "dead", problem: gone })
}
