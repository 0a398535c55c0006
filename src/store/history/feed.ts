import type { Db } from "../sqlite/database.ts"

export function nextChange(db: Db): number {
  return db
    .prepare(
      "insert into meta (key, value) values ('change_seq', '1') on conflict (key) do update set value = value + 1 returning cast(value as integer)",
    )
    .pluck()
    .get() as number
}

/** Counts the copies, and takes the next place in the feed of changes. */
export function refreshCounts(db: Db, id: number): void {
  db.prepare(
    "update conversation set copied_count = (select count(*) from message where conversation_id = @id and flags & 4 and not flags & 2), change_seq = @seq where id = @id",
  ).run({ id, seq: nextChange(db) })
}
