import { randomBytes } from "node:crypto"
import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { type Delivery, PATTERN_TYPES, type Pattern, type Subscription } from "../../core/suggestion.ts"
import { many } from "../../render/words.ts"
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
  const suggestions = await dex.suggestions()
  if (suggestions.subscriptions().length >= MAX_SUBSCRIPTIONS)
    throw new DexError(
      "too_many",
      `There are ${MAX_SUBSCRIPTIONS} subscriptions, which is the limit. Remove one: dex subscribe --off ID. \`dex subscribe --list --all\` lists them.`,
    )
  const session = currentSession(dex)
  const { redactName } = await import("../../redact/redact.ts")
  const subscription: Subscription = {
    id: randomBytes(4).toString("hex"),
    project,
    session,
    patterns: patterns.map((pattern) => ({ ...pattern, pattern: redactName(pattern.pattern) })),
    deliver,
    url: input.url,
    min_relevance: input.min_relevance,
    max_per_trigger: input.max_per_trigger,
    cooldown_ms: input.cooldown_ms,
    enabled: true,
    created_at: dex.now(),
  }
  const secret = deliver === "webhook" ? newSecret() : undefined
  suggestions.subscribe(subscription, secret)
  return {
    ...describeSubscription(subscription, redactName),
    secret,
    notes: [howToReceive(subscription)],
  }
}

export async function runSubscriptions(dex: Dex, input: SubscriptionsInput) {
  const suggestions = await dex.suggestions()
  const retried = input.retry_dead ? suggestions.retryDead(dex.now()) : undefined
  const sent = input.send ? await sendNow(dex) : undefined
  const allSubscriptions = suggestions.subscriptions(input.all ? undefined : dex.project)
  const visible: Subscription[] = []
  for (const subscription of allSubscriptions)
    if (isCurrentProject(dex, subscription.project) || !(await isPrivate(dex, subscription.project)))
      visible.push(subscription)
  const { redactName } = await import("../../redact/redact.ts")
  const hiddenCount = suggestions.subscriptions().length - visible.length
  return {
    subscriptions: visible.map((subscription) => describeSubscription(subscription, redactName)),
    outbox: suggestions.outbox(),
    sent,
    retried,
    notes:
      hiddenCount === 0
        ? []
        : [`Not shown: ${many(hiddenCount, "subscription")} in ${input.all ? "private" : "other"} projects.`],
  }
}

export async function runUnsubscribe(dex: Dex, input: UnsubscribeInput) {
  const suggestions = await dex.suggestions()
  const matching = suggestions.subscriptions().filter(({ id }) => id.startsWith(input.id))
  const [subscription] = matching
  if (matching.length !== 1 || !subscription)
    throw new DexError(
      "no_subscription",
      `${matching.length === 0 ? "No subscription has" : `${matching.length} subscriptions have`} an id that begins with "${input.id.slice(0, 40)}". \`dex subscribe --list --all\` lists them.`,
    )
  suggestions.unsubscribe(subscription.id)
  return { id: subscription.id, project: subscription.project }
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
    const urlCheck = checkUrl(url, allowedHosts(dex.home.config, dex.machine.env))
    if ("refused" in urlCheck) throw new DexError("url", `That URL cannot be used: ${urlCheck.refused}`)
  }
  if (deliver !== "poll" && (await isPrivate(dex, project)))
    throw new DexError(
      "private",
      "This project is private, so nothing from it is sent. `dex subscribe` with --deliver poll works here.",
    )
}

function patternOf(text: string, priority: number): Pattern {
  const [, type, pattern] = /^([a-z]+):(.*)$/is.exec(text) ?? []
  if (type === undefined) return { type: "file", pattern: text, priority }
  const knownType = PATTERN_TYPES.find((name) => name === type.toLowerCase())
  // If an unknown type were taken for a part of a glob, the pattern would match nothing, and nobody would notice.
  if (!knownType)
    throw new DexError(
      "usage",
      `There is no pattern type ${type.slice(0, 40)}. The types are ${PATTERN_TYPES.join(", ")}. If it is a glob: 'file:${text.slice(0, 80)}'`,
    )
  return { type: knownType, pattern: pattern!.trim(), priority }
}

/** A subscription as tools list it. Redacted, because a webhook's address can contain a secret. */
function describeSubscription(
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
  const prefix = "`dex watch` looks for changes while it runs"
  if (deliver === "poll") return `${prefix}. To see what it finds: dex suggest --list --take --subscription ${id}`
  if (deliver === "sse")
    return `${prefix}; \`dex serve --port 7337\` streams what it finds at /suggestions?subscription=${id}`
  return `${prefix} and sends what it finds; so does \`dex serve --port\`. By hand: dex subscribe --list --send`
}
