import type { Db } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"

// Pending webhook deliveries. These functions work on an open suggest.db; see suggestions.ts.

/** A message to a webhook. Its id is the same for every attempt. */
export type DueDelivery = { id: string; suggestion_id: string; subscription: string; url: string; attempts: number }

export type DeliveryOutcome = {
  id: string
  at: number
  /** `again`: retried at `next_at`; `dead`: kept, but not retried automatically. */
  ended: { type: "delivered" } | { type: "again"; next_at: number; problem: string } | { type: "dead"; problem: string }
}

export type OutboxCounts = { waiting: number; delivered: number; dead: number; last_problem?: string }

/** The maximum number of waiting deliveries. With so many, the receiver must be gone, and more would only fill the disk. */
export const MAX_WAITING = 10_000

/** Adds a webhook delivery. Polling and streaming clients read the suggestions themselves. */
export function enqueueDelivery(db: Db, seq: number, suggestionId: string, subscription: string, at: number): void {
  const deliver = db.prepare("select deliver from subscription where id = ?").pluck().get(subscription)
  if (deliver !== "webhook") return
  const waitingCount = valueQuery(db, "select count(*) from outbox where state = 'waiting'", "integer").get()!
  const isFull = waitingCount >= MAX_WAITING
  db.prepare(
    `insert into outbox (suggestion, id, subscription, state, attempts, next_at, last_problem, ended_at)
     values (?, ?, ?, ?, 0, ?, ?, ?)`,
  ).run(
    seq,
    `msg_${suggestionId}`,
    subscription,
    isFull ? "dead" : "waiting",
    at,
    isFull ? `${MAX_WAITING} other deliveries were already waiting` : null,
    isFull ? at : null,
  )
}

/** Returns the deliveries that are due, with a maximum per subscription, so that one with a backlog does not hide the others. */
export function dueDeliveries(db: Db, now: number, perSubscription: number): DueDelivery[] {
  const subscriptions = rowQuery(
    db,
    "select id, url from subscription where deliver = 'webhook' and enabled = 1 order by id",
    { id: "text", url: "text" },
  ).all()
  const selectWaiting = rowQuery(
    db,
    `select o.id, s.id as suggestion_id, o.attempts from outbox o join suggestion s on s.seq = o.suggestion
     where o.subscription = ? and o.state = 'waiting' and o.next_at <= ? order by o.next_at, o.suggestion limit ?`,
    { id: "text", suggestion_id: "text", attempts: "integer" },
  )
  return subscriptions.flatMap(({ id, url }) =>
    selectWaiting.all(id, now, perSubscription).map((delivery) => ({
      ...delivery,
      subscription: id,
      url,
    })),
  )
}

export function recordDelivery(db: Db, { id, at, ended }: DeliveryOutcome): void {
  const update = db.prepare(
    `update outbox set state = @state, attempts = attempts + 1, next_at = @next_at, last_problem = @problem,
       ended_at = @ended_at where id = @id`,
  )
  if (ended.type === "again")
    return void update.run({ id, state: "waiting", next_at: ended.next_at, problem: ended.problem, ended_at: null })
  const isDead = ended.type === "dead"
  update.run({ id, state: ended.type, next_at: at, problem: isDead ? ended.problem : null, ended_at: at })
  if (isDead) return
  const seq = db.prepare("select suggestion from outbox where id = ?").pluck().get(id)
  db.prepare("update suggestion set status = 'shown' where status = 'pending' and seq = ?").run(seq)
  db.prepare("update item set status = 'shown' where status = 'pending' and suggestion = ?").run(seq)
}

/** Schedules dead deliveries again from their first attempt. Returns their number. */
export function retryDeadDeliveries(db: Db, now: number): number {
  return db
    .prepare(
      `update outbox set state = 'waiting', attempts = 0, next_at = ?, ended_at = null
       where state = 'dead' and subscription in (select id from subscription where enabled = 1)`,
    )
    .run(now).changes
}

export function outboxCounts(db: Db): OutboxCounts {
  const rows = rowQuery(db, "select state, count(*) as n from outbox group by state", {
    state: ["waiting", "delivered", "dead"],
    n: "integer",
  }).all()
  const countIn = (state: string) => rows.find((row) => row.state === state)?.n ?? 0
  const problem = valueQuery(
    db,
    "select last_problem from outbox where last_problem is not null order by next_at desc, suggestion desc limit 1",
    "text",
  ).get()
  return {
    waiting: countIn("waiting"),
    delivered: countIn("delivered"),
    dead: countIn("dead"),
    last_problem: problem,
  }
}
