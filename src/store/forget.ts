import type { Ref } from "../core/ref.ts"
import { type Db, inTransaction } from "./database.ts"
import { markForgotten } from "./tombstones.ts"
import { deleteConversation } from "./write-conversation.ts"

/** The conversations that hold the same words: subagents of these, and forks that copied their messages. */
export function family(db: Db, refs: Ref[]): Ref[] {
  const found = new Map(refs.map((ref) => [`${ref.source}:${ref.id}`, ref]))
  const related = db.prepare(
    `select source, native_id as id from conversation where source = @source and parent_id = @id
     union select source, native_id from conversation where source = @source and fork_of = @id and copied_count > 0
     union select f.source, f.native_id from conversation c join conversation f on f.source = c.source and f.native_id = c.fork_of
       where c.source = @source and c.native_id = @id and c.copied_count > 0`,
  )
  for (const ref of found.values()) {
    for (const relative of related.all({ source: ref.source, id: ref.id }) as Ref[]) {
      const name = `${relative.source}:${relative.id}`
      if (!found.has(name)) found.set(name, relative)
    }
  }
  return [...found.values()]
}

/**
 * Takes conversations out of the history for good: rows, bodies, and the raw records of every unit that told of them.
 * A unit that also tells of others keeps their messages but no longer its raw records. Returns how many there were.
 */
export function forget(db: Db, refs: Ref[]): number {
  const count = inTransaction(db, () => {
    let forgotten = 0
    for (const { source, id } of refs) {
      markForgotten(db, source, id)
      const row = db
        .prepare("select id from conversation where source = ? and native_id = ?")
        .pluck()
        .get(source, id) as number | undefined
      if (row === undefined) continue
      withholdRaw(db, source, id)
      deleteConversation(db, row)
      forgotten++
    }
    db.prepare("delete from file where id not in (select file_id from touch)").run()
    db.prepare(
      "delete from project where private = 0 and id not in (select project_id from conversation where project_id is not null)",
    ).run()
    return forgotten
  })
  db.pragma("wal_checkpoint(truncate)")
  return count
}

function withholdRaw(db: Db, source: string, nativeId: string): void {
  const units = db
    .prepare("select c.unit_id from claim c join unit u on u.id = c.unit_id where u.source = ? and c.native_id = ?")
    .pluck()
    .all(source, nativeId) as number[]
  for (const unit of units) {
    db.prepare("delete from raw where unit_id = ?").run(unit)
    db.prepare("update unit set raw_withheld = 1, skipped = '[]' where id = ?").run(unit)
    db.prepare("delete from claim where unit_id = ? and native_id = ?").run(unit, nativeId)
  }
}
