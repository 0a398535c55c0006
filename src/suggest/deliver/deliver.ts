import { messageOf } from "../../core/error.ts"
import { isNetError, send } from "../../net/client.ts"
import type { DeliveryOutcome, DueDelivery } from "../../store/suggestions/outbox.ts"
import type { Suggestions } from "../../store/suggestions/suggestions.ts"
import { type DeliveryTarget, type DnsLookup, targetOf } from "./address.ts"
import { webhookBody } from "./body.ts"
import { signedHeaders } from "./sign.ts"

export type DeliveryParts = {
  suggestions: Suggestions
  now(): number
  version: string
  /** Hosts that the user allowed, whatever their address is. */
  allowedHosts(): readonly string[]
  /** False for a private project. */
  mayLeave(project: string): boolean | Promise<boolean>
  lookup?: DnsLookup
  /** A certificate authority to trust in addition to the system's. */
  ca?: string
  timeoutMs?: number
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** The delay before each attempt, counted from the previous attempt, in milliseconds. The schedule is Svix's. */
export const DELAYS_MS = [
  0,
  5_000,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  10 * HOUR_MS,
] as const
const TIMEOUT_MS = 15_000
const MAX_PARALLEL = 16
/**
 * The maximum number of messages that are sent to one receiver at the same time, so that a slow receiver does not delay others.
 */
const MAX_PER_RECEIVER = 4
const GONE = 410

export type DeliveryCounts = { delivered: number; again: number; dead: number }

/**
 * Sends everything that is due. Returns when nothing is left or, if the signal aborts, at once. Only one process at a time may do
 * this; see `keepDelivering`. A message that was not answered before this function returned, or before the process was killed, is
 * sent again later with the same id.
 */
export async function deliverDue(parts: DeliveryParts, signal?: AbortSignal): Promise<DeliveryCounts> {
  const counts: DeliveryCounts = { delivered: 0, again: 0, dead: 0 }
  const running = new Map<string, { subscription: string; done: Promise<void> }>()
  let failure: { error: unknown } | undefined
  const send = async (due: DueDelivery) => {
    try {
      const outcome = await attemptDelivery(parts, due, signal)
      if (outcome) {
        parts.suggestions.record(outcome)
        counts[outcome.ended.type]++
      }
    } catch (error) {
      failure ??= { error }
    }
    running.delete(due.id)
  }
  for (;;) {
    const due = failure || signal?.aborted ? [] : parts.suggestions.due(parts.now(), 2 * MAX_PER_RECEIVER)
    for (const delivery of due) {
      const sameReceiver = [...running.values()].filter(({ subscription }) => subscription === delivery.subscription)
      if (running.has(delivery.id) || running.size >= MAX_PARALLEL || sameReceiver.length >= MAX_PER_RECEIVER) continue
      running.set(delivery.id, { subscription: delivery.subscription, done: send(delivery) })
    }
    if (running.size === 0) break
    await Promise.race([...running.values()].map(({ done }) => done))
  }
  if (failure) throw failure.error
  return counts
}

/** Makes one attempt. Returns undefined if it was aborted before there was an answer. */
async function attemptDelivery(
  parts: DeliveryParts,
  { id, suggestion_id, subscription, url, attempts }: DueDelivery,
  signal: AbortSignal | undefined,
): Promise<DeliveryOutcome | undefined> {
  const { suggestions, now } = parts
  const outcome = (ended: DeliveryOutcome["ended"]): DeliveryOutcome => ({ id, at: now(), ended })
  const failed = (problem: string) => {
    const delay = DELAYS_MS[attempts + 1]
    return outcome(delay === undefined ? { type: "dead", problem } : { type: "again", next_at: now() + delay, problem })
  }
  const suggestion = suggestions.get(suggestion_id)
  const secret = suggestions.secretOf(subscription)
  if (!suggestion || secret === undefined)
    return outcome({ type: "dead", problem: "the suggestion or the subscription was deleted" })
  if (!(await parts.mayLeave(suggestion.moment.project)))
    return outcome({ type: "dead", problem: "the project is private" })
  // A DNS lookup cannot be cancelled, so after an abort its result is ignored.
  const target = await unlessAborted(targetOf(url, parts.allowedHosts(), parts.lookup), signal)
  if (!target) return undefined
  if ("refused" in target) return failed(target.refused)
  const body = webhookBody(suggestion)
  const headers = {
    "Content-Type": "application/json",
    "User-Agent": `dex/${parts.version}`,
    ...signedHeaders(secret, id, now(), body),
  }
  const answer = await postBody(target, headers, body, {
    timeoutMs: parts.timeoutMs ?? TIMEOUT_MS,
    ca: parts.ca,
    signal,
  })
  if (!answer) return undefined
  if ("problem" in answer) return failed(answer.problem)
  const { status } = answer
  if (status >= 200 && status < 300) return outcome({ type: "delivered" })
  if (status !== GONE) return failed(status < 400 ? `${status}: redirects are not followed` : String(status))
  const goneProblem = "The receiver answered 410 (gone), so the subscription is disabled."
  suggestions.disable(subscription, goneProblem)
  return outcome({ type: "dead", problem: goneProblem })
}

/** Sends one body to the checked address. Returns undefined if the signal aborted before there was an answer. Never throws. */
async function postBody(
  { url, address }: DeliveryTarget,
  headers: Record<string, string>,
  body: string,
  { timeoutMs, ca, signal }: { timeoutMs: number; ca: string | undefined; signal: AbortSignal | undefined },
): Promise<{ status: number } | { problem: string } | undefined> {
  try {
    const request = { url, address, headers, body, timeoutMs, ca, signal }
    const reply = await send({ ...request, isUnrepeatable: true, maxBytes: 0 })
    reply.discard()
    return { status: reply.status }
  } catch (error) {
    if (signal?.aborted) return undefined
    if (isNetError(error) && error.reason === "timeout") return { problem: `no answer within ${timeoutMs / 1000} s` }
    return { problem: isNetError(error) ? error.code : messageOf(error).slice(0, 200) }
  }
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T | undefined> {
  if (!signal) return work
  return new Promise((resolve, reject) => {
    const resolveAborted = () => resolve(undefined)
    if (signal.aborted) return resolveAborted()
    signal.addEventListener("abort", resolveAborted, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", resolveAborted))
  })
}
