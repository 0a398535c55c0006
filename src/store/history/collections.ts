import { type Db, inTransaction } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { tryParseJson } from "./rot/checked-rows.ts"
import { isIntact } from "./rot/sums.ts"
import type { Collection } from "./store.ts"
import { TABLES } from "./tables.ts"
import { conversationsOnlyIn, deleteConversation } from "./write-conversation.ts"

/**
 * Saves a collection, and a copy of it in `meta`, because a damaged row could not be restored from anything else. The values in
 * `meta` are themselves stored twice.
 */
export function saveCollection(db: Db, collection: Collection): void {
  inTransaction(db, () => {
    db.prepare(
      `insert or replace into collection (name, kind, origin, root, only, project, version, added_at, synced_at, problems)
         values (@name, @kind, @origin, @root, @only, @project, @version, @added_at, @synced_at, @problems)`,
    ).run({
      only: null,
      project: null,
      version: null,
      synced_at: null,
      ...collection,
      problems: JSON.stringify(collection.problems),
    })
    const sql = "insert or replace into meta (key, value) values (?, ?)"
    db.prepare(sql).run(COPY_PREFIX + collection.name, JSON.stringify(collection))
  })
}

const COPY_PREFIX = "collection:"

/** Restores collections whose rows are damaged or missing from their copies in `meta`, and returns their number. */
export function restoreCollections(db: Db): number {
  const rows = rowQuery(db, "select * from collection", TABLES.collection).all()
  const intact = new Set(rows.filter((row) => isIntact(db, "collection", row)).map(({ name }) => name))
  const selectCopies = valueQuery(db, "select value from meta where substr(key, 1, length(@copy)) = @copy", "text")
  const lost = selectCopies
    .all({ copy: COPY_PREFIX })
    .flatMap((value) => (tryParseJson(value) as Collection | undefined) ?? [])
    .filter(({ name }) => !intact.has(name))
  for (const collection of lost) saveCollection(db, collection)
  return lost.length
}

export function removeCollection(db: Db, name: string): boolean {
  return inTransaction(db, () => {
    const units = valueQuery(db, "select id from unit where source = 'docs' and key >= ? and key < ?", "integer").all(
      `${name}/`,
      `${name}0`,
    )
    for (const unit of units) removeUnit(db, unit)
    db.prepare("delete from meta where key = ?").run(COPY_PREFIX + name)
    return db.prepare("delete from collection where name = ?").run(name).changes > 0
  })
}

export function removeDocuments(db: Db, keys: string[]): number {
  return inTransaction(db, () => {
    const find = valueQuery(db, "select id from unit where source = 'docs' and key = ?", "integer")
    const units = keys.flatMap((key) => find.get(key) ?? [])
    for (const unit of units) removeUnit(db, unit)
    return units.length
  })
}

function removeUnit(db: Db, unit: number): void {
  for (const id of conversationsOnlyIn(db, unit)) deleteConversation(db, id)
  db.prepare("delete from claim where unit_id = ?").run(unit)
  db.prepare("delete from raw where unit_id = ?").run(unit)
  db.prepare("delete from unit where id = ?").run(unit)
}
