import type { SourceId } from "../../core/conversation.ts"
import type { Ref } from "../../core/ref.ts"
import { type Db, emptyLog, inTransaction } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { packBlock, unpackBlock } from "./codec.ts"
import { conversationsSharingPrompts, recountCopies } from "./copies.ts"
import { forgetMarks } from "./marks.ts"
import type { OwnerOf } from "./store.ts"
import { markForgotten } from "./tombstones.ts"
import { deleteConversation } from "./write-conversation.ts"

const SELECT_SUBAGENTS = "select source, native_id as id from conversation where source = @source and parent_id = @id"

const SELECT_FORKS = `select source, native_id as id from conversation where source = @source and fork_of = @id and copied_count > 0
  union select f.source, f.native_id from conversation c join conversation f on f.source = c.source and f.native_id = c.fork_of
    where c.source = @source and c.native_id = @id and c.copied_count > 0`

export function withSubagents(db: Db, refs: Ref[]): Ref[] {
  return withRelated(db, refs, SELECT_SUBAGENTS)
}

/**
 * Returns these conversations and all others that may contain the same words: their subagents, and the forks and originals with
 * which they share copied messages.
 */
export function withRelatives(db: Db, refs: Ref[]): Ref[] {
  return withRelated(db, refs, `${SELECT_SUBAGENTS} union ${SELECT_FORKS}`)
}

function withRelated(db: Db, refs: Ref[], sql: string): Ref[] {
  const byName = new Map(refs.map((ref) => [`${ref.source}:${ref.id}`, ref]))
  const selectRelated = rowQuery(db, sql, { source: "text", id: "text" })
  for (const ref of byName.values()) {
    for (const relative of selectRelated.all({ source: ref.source, id: ref.id })) {
      const name = `${relative.source}:${relative.id}`
      if (!byName.has(name)) byName.set(name, relative)
    }
  }
  return [...byName.values()]
}

/**
 * Deletes conversations from the history permanently: rows, bodies, and the raw records of every unit that contained them. A unit
 * that also contains other conversations keeps their messages, and their records if each record names its conversation. Returns
 * the number of deleted conversations.
 */
export function forgetInHistory(db: Db, refs: Ref[], ownerOf?: OwnerOf): number {
  const count = inTransaction(db, () => {
    let forgotten = 0
    deleteRawRecords(db, refs, ownerOf)
    const sharingIds = conversationsSharingPrompts(db, refs)
    for (const { source, id } of refs) {
      markForgotten(db, source, id)
      forgetMarks(db, `${source}:${id}`)
      const conversation = valueQuery(
        db,
        "select id from conversation where source = ? and native_id = ?",
        "integer",
      ).get(source, id)
      if (conversation === undefined) continue
      deleteConversation(db, conversation)
      forgotten++
    }
    recountCopies(db, sharingIds)
    db.prepare("delete from file where id not in (select file_id from touch)").run()
    db.prepare(
      `delete from project where private = 0 and apart is null and id not in (select project_id from conversation where project_id is not null)
         and id not in (select project_id from project_path)`,
    ).run()
    db.prepare("delete from project_path where project_id not in (select id from project)").run()
    return forgotten
  })
  emptyLog(db)
  return count
}

function deleteRawRecords(db: Db, refs: Ref[], ownerOf: OwnerOf | undefined): void {
  const selectClaims = rowQuery(
    db,
    "select u.id, u.source, u.key from claim c join unit u on u.id = c.unit_id where u.source = ? and c.native_id = ?",
    { id: "integer", source: "text", key: "text" },
  )
  const units = new Map<number, { source: SourceId; key: string; forgotten: Set<string> }>()
  for (const ref of refs) {
    for (const { id, source, key } of selectClaims.all(ref.source, ref.id)) {
      const unit = units.get(id) ?? { source, key, forgotten: new Set() }
      units.set(id, unit)
      unit.forgotten.add(ref.id)
    }
  }
  for (const [id, { source, key, forgotten }] of units) {
    const owner = ownerOf?.(source, key)
    if (owner) filterRecords(db, id, (line) => !forgotten.has(owner(JSON.parse(line)) ?? ""))
    else {
      db.prepare("delete from raw where unit_id = ?").run(id)
      db.prepare("update unit set raw_withheld = 1 where id = ?").run(id)
    }
    db.prepare("update unit set skipped = '[]' where id = ?").run(id)
    const deleteClaim = db.prepare("delete from claim where unit_id = ? and native_id = ?")
    for (const nativeId of forgotten) deleteClaim.run(id, nativeId)
  }
}

function filterRecords(db: Db, unitId: number, shouldKeep: (line: string) => boolean): void {
  const rows = rowQuery(db, "select kind, seq, data from raw where unit_id = ?", {
    kind: "integer",
    seq: "integer",
    data: "blob",
  }).all(unitId)
  for (const { kind, seq, data } of rows) {
    const lines = unpackBlock(data).filter(shouldKeep)
    if (lines.length === 0) {
      db.prepare("delete from raw where unit_id = ? and kind = ? and seq = ?").run(unitId, kind, seq)
      continue
    }
    const block = packBlock(lines)
    db.prepare("update raw set records = ?, bytes = ?, data = ? where unit_id = ? and kind = ? and seq = ?").run(
      block.lineCount,
      block.bytes,
      block.data,
      unitId,
      kind,
      seq,
    )
  }
}
