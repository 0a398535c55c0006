import { randomBytes } from "node:crypto"
import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { type Delivery, PATTERN_TYPES, type Pattern, type Subscription } from "../../core/suggestion.ts"
import { tryLock } from "../../store/sqlite/lock.ts"
import { checkUrl } from "../../suggest/deliver/address.ts"
import { newSecret } from "../../suggest/deliver/sign.ts"
import { checkPatterns } from "../../suggest/subscriptions/matching.ts"
import type { Dex } from "../context.ts"
import { currentSession, isCurrentProject, projectNamed } from "../resolve.ts"
import { allowedHosts, deliveryLockFile, deliveryParts, isPrivate } from "./delivery.ts"
import type { SubscribeInput, SubscriptionsInput, UnsubscribeInput } from "./subscriptions.ts"

const MAX_SUBSCRIPTIONS = 200

export async function runSubscribe(dex: Dex, input: SubscribeInput) {
  const patterns = input.patterns.map((text) => patternOf(text, input.priority))
  checkPatterns(patterns)
  const project = input.project === undefined ? dex.project : projectNamed(dex, input.project)
  const deliver = input.deliver ?? (input.url === undefined ? "poll" : "webhook")
  await checkDelivery(dex, project, deliver, input.url)
  const kept = await dex.suggestions()
  if (kept.subscriptions().length >= MAX_SUBSCRIPTIONS)
    throw new DexError(
      "too_many",
      `There are ${MAX_SUBSCRIPTIONS} subscriptions, which is the limit. \`dex subscribe --list --all\` lists them.`,
    )
  const session = currentSession(dex)
  const { redactName } = await import("../../redact/name.ts")
  const subscription: Subscription = {
    id: randomBytes(4).toString("hex"),
    project,
    session,
    patterns: patterns.map((one) => ({ ...one, pattern: redactName(one.pattern) })),
    deliver,
    url: input.url,
    min_relevance: input.min_relevance,
    max_per_trigger: input.max_per_trigger,
    cooldown_ms: input.cooldown_ms,
    enabled: true,
    created_at: dex.now(),
  }
  const secret = deliver === "webhook" ? newSecret() : undefined
  kept.subscribe(subscription, secret)
  return {
    ...listedSubscription(subscription, redactName),
    secret,
    notes: [howToReceive(subscription)],
  }
}

export async function runSubscriptions(dex: Dex, input: SubscriptionsInput) {
  const kept = await dex.suggestions()
  const retried = input.retry_dead ? kept.retryDead(dex.now()) : undefined
  const sent = input.send ? await sendNow(dex) : undefined
  const all = kept.subscriptions(input.all ? undefined : dex.project)
  const shown: Subscription[] = []
  for (const one of all) if (isCurrentProject(dex, one.project) || !(await isPrivate(dex, one.project))) shown.push(one)
  const { redactName } = await import("../../redact/name.ts")
  const elsewhere = kept.subscriptions().length - shown.length
  return {
    subscriptions: shown.map((one) => listedSubscription(one, redactName)),
    outbox: kept.outbox(),
    sent,
    retried,
    notes: elsewhere === 0 ? [] : [`${elsewhere} more in ${input.all ? "private" : "other"} projects are not shown.`],
  }
}

export async function runUnsubscribe(dex: Dex, input: UnsubscribeInput) {
  const kept = await dex.suggestions()
  const meant = kept.subscriptions().filter(({ id }) => id.startsWith(input.id))
  const [one] = meant
  if (meant.length !== 1 || !one)
    throw new DexError(
      "no_subscription",
      `${meant.length === 0 ? "No subscription has" : `${meant.length} subscriptions have`} an id that begins with "${input.id.slice(0, 40)}". \`dex subscribe --list --all\` lists them.`,
    )
  kept.unsubscribe(one.id)
  return { id: one.id, project: one.project }
}

async function sendNow(dex: Dex) {
  const lock = tryLock(deliveryLockFile(dex.home.suggest))
  if (!lock)
    throw new DexError(
      "busy",
      "A running `dex watch` or `dex serve --port` is already sending them. `dex subscribe --list` shows the progress.",
    )
  try {
    const { deliverDue } = await import("../../suggest/deliver/deliver.ts")
    return await deliverDue(await deliveryParts(dex), dex.signal)
  } finally {
    lock.release()
  }
}

async function checkDelivery(dex: Dex, project: string, deliver: Delivery, url: string | undefined): Promise<void> {
  if (deliver !== "webhook") {
    if (url !== undefined) throw new DexError("usage", "--url can only be used with --deliver webhook.")
  } else {
    if (url === undefined) throw new DexError("usage", "Where should the webhook be sent? --url https://…")
    const checked = checkUrl(url, allowedHosts(dex.home.config, dex.machine.env))
    if ("refused" in checked) throw new DexError("url", `That url cannot be used: ${checked.refused}`)
  }
  if (deliver !== "poll" && (await isPrivate(dex, project)))
    throw new DexError(
      "private",
      "This project is private, so nothing from it is sent. `dex subscribe` with --deliver poll works here.",
    )
}

function patternOf(text: string, priority: number): Pattern {
  const [, type, rest] = /^([a-z]+):(.*)$/is.exec(text) ?? []
  if (type === undefined) return { type: "file", pattern: text, priority }
  const known = PATTERN_TYPES.find((one) => one === type.toLowerCase())
  // A pattern of an unknown type would be a glob that matches nothing, and nobody would notice.
  if (!known)
    throw new DexError(
      "usage",
      `There is no pattern type ${type.slice(0, 40)}. The types are ${PATTERN_TYPES.join(", ")}. If it is a glob: 'file:${text.slice(0, 80)}'`,
    )
  return { type: known, pattern: rest!.trim(), priority }
}

/** Leaves out secrets: a webhook's address can contain one. */
function listedSubscription(
  { patterns, last_triggered_at, created_at: _, url, ...subscription }: Subscription,
  redact: (text: string) => string,
) {
  return {
    ...subscription,
    url: url === undefined ? undefined : redact(url),
    patterns: patterns.map(({ type, pattern }) => `${type}:${redact(pattern)}`),
    priority: Math.max(...patterns.map(({ priority }) => priority)),
    last_triggered: last_triggered_at === undefined ? undefined : isoDate(last_triggered_at),
  }
}

function howToReceive({ id, deliver }: Subscription): string {
  const made = "`dex watch` looks for changes while it runs"
  if (deliver === "poll") return `${made}; what it finds: dex suggest --list --take --subscription ${id}`
  if (deliver === "sse")
    return `${made}; \`dex serve --port 7337\` streams what it finds at /suggestions?subscription=${id}`
  return `${made} and sends what it finds; so does \`dex serve --port\`. By hand: dex subscribe --list --send`
}
