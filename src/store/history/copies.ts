import type { Ref } from "../../core/ref.ts"
import type { Db } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { loadLines } from "./bodies.ts"
import { usageText } from "./facts.ts"
import { refreshCounts } from "./feed.ts"
import { MESSAGE_FLAGS } from "./flags.ts"
import type { MessageWrite } from "./store.ts"
import { isForgotten } from "./tombstones.ts"

/**
 * Flags copied messages. A fork or a resumed conversation begins with a copy of another one, with the same message keys. The
 * conversation with the older file is the original. In the other one, those messages are flagged as copies, so that each
 * message is found and counted once. `uncounted` is the number of messages that counted until this call flagged them.
 */
export function flagCopies(
  db: Db,
  source: string,
  id: number,
  added: { key: Buffer; flags: number }[],
): { forkOf?: string; uncounted: number } | undefined {
  const sharers = new Set<number>()
  const find = valueQuery(
    db,
    `select m.conversation_id from message m join conversation c on c.id = m.conversation_id
     where m.key = ? and m.flags & 8 and m.conversation_id <> ? and c.source = ?`,
    "integer",
  )
  for (const { key, flags } of added) {
    if (flags & MESSAGE_FLAGS.prompt) for (const sharer of find.all(key, id, source)) sharers.add(sharer)
  }
  if (sharers.size === 0) return undefined
  let forkOf: { id: string; shared: number } | undefined
  let uncounted = 0
  for (const sharer of sharers) {
    const [original, copy] = isOlder(db, sharer, id) ? [sharer, id] : [id, sharer]
    uncounted += valueQuery(
      db,
      "select count(*) from message where conversation_id = ? and not flags & 6 and key in (select key from message where conversation_id = ?)",
      "integer",
    ).get(copy, original)!
    const shared = db
      .prepare(
        `update message set flags = flags | 4 where conversation_id = ? and key in (select key from message where conversation_id = ?)`,
      )
      .run(copy, original).changes
    if (copy === id) {
      const nativeId = valueQuery(db, "select native_id from conversation where id = ?", "text").get(original)!
      if (!forkOf || shared > forkOf.shared) forkOf = { id: nativeId, shared }
    } else {
      const nativeId = valueQuery(db, "select native_id from conversation where id = ?", "text").get(id)!
      db.prepare("update conversation set fork_of = ifnull(fork_of, ?) where id = ?").run(nativeId, sharer)
      refreshUsage(db, sharer)
      refreshCounts(db, sharer)
    }
  }
  return { forkOf: forkOf?.id, uncounted }
}

/** Returns the row ids of all conversations that share a prompt with one of `refs`, including those in `refs` with prompts. */
export function conversationsSharingPrompts(db: Db, refs: Ref[]): number[] {
  const find = valueQuery(
    db,
    `select distinct m.conversation_id from conversation c
       join message own on own.conversation_id = c.id and own.flags & 8
       join message m on m.key = own.key and m.flags & 8
       join conversation o on o.id = m.conversation_id and o.source = c.source
       where c.source = ? and c.native_id = ?`,
    "integer",
  )
  return [...new Set(refs.flatMap(({ source, id }) => find.all(source, id)))]
}

/**
 * Flags the copied messages of these conversations again. Call this after an original conversation was forgotten: the oldest
 * remaining copy of a message becomes the original, and `fork_of` no longer names the forgotten conversation. Ignores ids that no
 * longer exist.
 */
export function recountCopies(db: Db, ids: number[]): void {
  const find = rowQuery(db, "select source, fork_of from conversation where id = ?", {
    source: "text",
    fork_of: "text?",
  })
  const remaining = ids.flatMap((id) => {
    const row = find.get(id)
    return row ? [{ id, ...row }] : []
  })
  for (const { id, source, fork_of } of remaining) {
    db.prepare("update message set flags = flags & ~4 where conversation_id = ? and flags & 4").run(id)
    if (fork_of !== null && isForgotten(db, source, fork_of))
      db.prepare("update conversation set fork_of = null where id = ?").run(id)
  }
  const selectMessages = rowQuery(db, "select key, flags from message where conversation_id = ?", {
    key: "blob",
    flags: "integer",
  })
  for (const { id, source } of remaining) {
    const copies = flagCopies(db, source, id, selectMessages.all(id))
    db.prepare("update conversation set fork_of = ifnull(fork_of, ?) where id = ?").run(copies?.forkOf ?? null, id)
    refreshUsage(db, id)
    refreshCounts(db, id)
  }
}

export function copiedNumbers(db: Db, id: number): Set<number> {
  return new Set(
    valueQuery(db, "select number from message where conversation_id = ? and flags & 4", "integer").all(id),
  )
}

/** Updates the usage of a conversation whose messages turned out to be copies: their tokens count only in the original. */
function refreshUsage(db: Db, id: number): void {
  const counted = valueQuery(
    db,
    "select number from message where conversation_id = ? and not flags & 6 order by number",
    "integer",
  ).all(id)
  const lines = loadLines(db, id)
  const bodies = counted.flatMap((number) => lines.get(number) ?? []).map((line) => JSON.parse(line) as MessageWrite)
  db.prepare("update conversation set usage = ? where id = ?").run(usageText(bodies), id)
}

function isOlder(db: Db, a: number, b: number): boolean {
  const startQuery = rowQuery(
    db,
    "select u.born_at, c.native_id from conversation c join unit u on u.id = c.unit_id where c.id = ?",
    { born_at: "integer", native_id: "text" },
  )
  const startA = startQuery.get(a)!
  const startB = startQuery.get(b)!
  return startA.born_at === startB.born_at ? startA.native_id < startB.native_id : startA.born_at < startB.born_at
}
