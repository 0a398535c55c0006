import { isSamePath } from "../../core/path-key.ts"
import type { Subscription } from "../../core/suggestion.ts"
import type { Db } from "../sqlite/database.ts"
import { type RowOf, rowQuery, valueQuery } from "../sqlite/typed-query.ts"

// Stores who wants to be notified about what. These functions work on an open suggest.db; see suggestions.ts.

type SubscriptionRow = RowOf<typeof SUBSCRIPTION_ROW>
const SUBSCRIPTION_ROW = {
  id: "text",
  project: "text",
  session: "text?",
  patterns: "text",
  deliver: ["poll", "sse", "webhook"],
  url: "text?",
  min_relevance: "real",
  max_per_trigger: "integer",
  cooldown_ms: "integer",
  last_triggered_at: "integer?",
  enabled: "integer",
  disabled_because: "text?",
  created_at: "integer",
} as const

export function add(db: Db, subscription: Subscription, secret?: string): void {
  db.prepare(
    `insert into subscription (id, project, session, patterns, deliver, url, secret, min_relevance, max_per_trigger,
       cooldown_ms, last_triggered_at, enabled, created_at)
     values (@id, @project, @session, @patterns, @deliver, @url, @secret, @min_relevance, @max_per_trigger,
       @cooldown_ms, @last_triggered_at, @enabled, @created_at)`,
  ).run({
    ...subscription,
    session: subscription.session ?? null,
    patterns: JSON.stringify(subscription.patterns),
    url: subscription.url ?? null,
    secret: secret ?? null,
    last_triggered_at: subscription.last_triggered_at ?? null,
    enabled: Number(subscription.enabled),
  })
}

/** Deletes a subscription and its pending deliveries. Suggestions that were made stay. */
export function remove(db: Db, id: string): boolean {
  db.prepare("delete from outbox where subscription = ?").run(id)
  return db.prepare("delete from subscription where id = ?").run(id).changes > 0
}

export function all(db: Db, project?: string): Subscription[] {
  const rows = rowQuery(db, "select * from subscription order by created_at, id", SUBSCRIPTION_ROW).all()
  const matching = project === undefined ? rows : rows.filter((row) => isSamePath(row.project, project))
  return matching.map(subscriptionOf)
}

export function secretOf(db: Db, id: string): string | undefined {
  return valueQuery(db, "select secret from subscription where id = ?", "text?").get(id) ?? undefined
}

/** Disables a subscription. Its pending deliveries will not be sent. */
export function disable(db: Db, id: string, because: string): void {
  db.prepare("update subscription set enabled = 0, disabled_because = ? where id = ?").run(because, id)
  db.prepare("update outbox set state = 'dead', last_problem = ? where subscription = ? and state = 'waiting'").run(
    because,
    id,
  )
}

/**
 * Marks the subscription as triggered, or returns the reason why it is not notified now. Call this in the transaction that saves
 * the suggestion.
 */
export function trigger(db: Db, id: string, at: number): string | undefined {
  const row = rowQuery(db, "select enabled, cooldown_ms, last_triggered_at from subscription where id = ?", {
    enabled: "integer",
    cooldown_ms: "integer",
    last_triggered_at: "integer?",
  }).get(id)
  if (!row) return `The subscription ${id} no longer exists.`
  if (row.enabled === 0) return `The subscription ${id} is disabled.`
  if (row.last_triggered_at !== null && at - row.last_triggered_at < row.cooldown_ms)
    return `The subscription ${id} was notified less than ${row.cooldown_ms} ms ago.`
  db.prepare("update subscription set last_triggered_at = ? where id = ?").run(at, id)
  return undefined
}

function subscriptionOf(row: SubscriptionRow): Subscription {
  return {
    id: row.id,
    project: row.project,
    session: row.session ?? undefined,
    patterns: JSON.parse(row.patterns),
    deliver: row.deliver,
    url: row.url ?? undefined,
    min_relevance: row.min_relevance,
    max_per_trigger: row.max_per_trigger,
    cooldown_ms: row.cooldown_ms,
    last_triggered_at: row.last_triggered_at ?? undefined,
    enabled: row.enabled === 1,
    disabled_because: row.disabled_because ?? undefined,
    created_at: row.created_at,
  }
}
