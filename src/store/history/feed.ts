import type { Db } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { metaValue } from "./read/meta.ts"
import type { Changes } from "./store.ts"

export function nextChange(db: Db): number {
  return valueQuery(
    db,
    "insert into meta (key, value) values ('change_seq', '1') on conflict (key) do update set value = value + 1 returning cast(value as integer)",
    "integer",
  ).get()!
}

/** Recounts a conversation's copied messages, gives the conversation the next number in the change feed, and returns it. */
export function refreshCounts(db: Db, id: number): number {
  const seq = nextChange(db)
  db.prepare(
    "update conversation set copied_count = (select count(*) from message where conversation_id = @id and flags & 4 and not flags & 2), change_seq = @seq where id = @id",
  ).run({ id, seq })
  return seq
}

export function revision(db: Db, historyId: string): string {
  return `${historyId}@${latestChange(db)}`
}

function latestChange(db: Db): number {
  return Number(metaValue(db, "change_seq") ?? 0)
}

/**
 * Returns the changes after a token, including deletions. If the token comes from another history, or from a later state of this
 * one, `rebuild` is true.
 */
export function changes(db: Db, historyId: string, after: string | undefined, limit: number): Changes {
  const [id, seqText] = after?.split("@") ?? [historyId, "0"]
  const seq = Number(seqText)
  if (id !== historyId || !Number.isInteger(seq) || seq > latestChange(db))
    return { changes: [], token: `${historyId}@0`, more: true, rebuild: true }
  const rows = rowQuery(
    db,
    `select change_seq, id, source, native_id, 0 as deleted from conversation where change_seq > @seq
       union all select change_seq, conversation_id, null, null, 1 from deletion where change_seq > @seq
       order by change_seq limit @limit`,
    { change_seq: "integer", id: "integer", source: "text?", native_id: "text?", deleted: "integer" },
  ).all({ seq, limit })
  return {
    changes: rows.map((row) => ({
      conversation: String(row.id),
      deleted: row.deleted === 1,
      change: row.change_seq,
      ref: row.source === null ? undefined : { source: row.source, id: row.native_id! },
    })),
    token: `${historyId}@${rows.at(-1)?.change_seq ?? seq}`,
    more: rows.length === limit,
    rebuild: false,
  }
}
