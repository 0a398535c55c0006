import { type Db, inTransaction } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import type { Collection } from "./store.ts"
import { conversationsOnlyIn, deleteConversation } from "./write-conversation.ts"

export function saveCollection(db: Db, collection: Collection): void {
  inTransaction(db, () =>
    db
      .prepare(
        `insert or replace into collection (name, kind, origin, root, only, project, version, added_at, synced_at, problems)
         values (@name, @kind, @origin, @root, @only, @project, @version, @added_at, @synced_at, @problems)`,
      )
      .run({
        only: null,
        project: null,
        version: null,
        synced_at: null,
        ...collection,
        problems: JSON.stringify(collection.problems),
      }),
  )
}

export function removeCollection(db: Db, name: string): boolean {
  return inTransaction(db, () => {
    const units = valueQuery(db, "select id from unit where source = 'docs' and key >= ? and key < ?", "integer").all(
      `${name}/`,
      `${name}0`,
    )
    for (const unit of units) removeUnit(db, unit)
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
