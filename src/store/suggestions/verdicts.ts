import { type Item, STATUSES, type Status } from "../../core/suggestion.ts"
import type { Db } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"

// Stores the verdicts on suggestions, item by item, and the weights that they change.

export type StoredItem = Item & { number: number; status: Status }

/** Returns new values of the weights that a verdict changes. `before` is the verdict that was counted for this item so far. */
export type LearnWeights = (
  item: Item,
  before: number | undefined,
  after: number,
  weight: (name: string) => number,
) => Record<string, number>

const VERDICTS: Partial<Record<Status, number>> = { used: 1, dismissed: 0 }

/** Records a verdict on all items, or on one. Returns false if there is no such item. */
export function recordVerdict(
  db: Db,
  { seq, items }: { seq: number; items: StoredItem[] },
  status: Status,
  number: number | undefined,
  learn: LearnWeights | undefined,
): boolean {
  if (number !== undefined && !items.some((item) => item.number === number)) return false
  // Which of several items was used is unknown unless the user named it; a dismissal applies to all of them.
  const isOneOfMany = number === undefined && status === "used" && items.length > 1
  if (isOneOfMany) for (const item of items) if (item.status === "dismissed") undoDismissal(db, seq, item, learn)
  for (const item of isOneOfMany ? [] : items) {
    if (number !== undefined && item.number !== number) continue
    db.prepare("update item set status = ? where suggestion = ? and number = ?").run(status, seq, item.number)
    const verdict = VERDICTS[status]
    if (learn && verdict !== undefined) applyVerdict(db, seq, item, verdict, learn)
  }
  const statuses = valueQuery(db, "select status from item where suggestion = ?", STATUSES).all(seq)
  const hasStatus = (searched: Status) => statuses.includes(searched)
  const isUniform = number === undefined || statuses.every((itemStatus) => itemStatus === status)
  const overall: Status = hasStatus("used")
    ? "used"
    : isUniform
      ? status
      : hasStatus("shown") || hasStatus("dismissed")
        ? "shown"
        : "pending"
  db.prepare("update suggestion set status = ? where seq = ?").run(overall, seq)
  return true
}

function applyVerdict(db: Db, seq: number, item: StoredItem, verdict: number, learn: LearnWeights): void {
  const before =
    valueQuery(db, "select counted from item where suggestion = ? and number = ?", "real?").get(seq, item.number) ??
    null
  if (before === verdict) return
  const weight = (name: string) => valueQuery(db, "select value from weight where name = ?", "real").get(name) ?? 0
  for (const [name, value] of Object.entries(learn(item, before ?? undefined, verdict, weight)))
    db.prepare("insert or replace into weight (name, value) values (?, ?)").run(name, value)
  db.prepare("update item set counted = ? where suggestion = ? and number = ?").run(verdict, seq, item.number)
}

/** If a suggestion was dismissed and then used, its items no longer count as dismissed. */
function undoDismissal(db: Db, seq: number, item: StoredItem, learn: LearnWeights | undefined): void {
  if (learn) applyVerdict(db, seq, item, item.relevance, learn)
  db.prepare("update item set status = 'shown', counted = null where suggestion = ? and number = ?").run(
    seq,
    item.number,
  )
}

export function learnedWeights(db: Db): Record<string, number> {
  return Object.fromEntries(
    rowQuery(db, "select name, value from weight", { name: "text", value: "real" })
      .all()
      .map(({ name, value }) => [name, value]),
  )
}

/** Deletes the learned weights and returns their number. */
export function resetWeights(db: Db): number {
  db.prepare("update item set counted = null where counted is not null").run()
  return db.prepare("delete from weight").run().changes
}
