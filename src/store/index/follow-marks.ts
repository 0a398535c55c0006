import { type Db, inTransaction } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { indexDamage } from "./blocks.ts"

/** Where in the history's changes it stands: kept twice, because with a damaged one changes would be missed for good. */
export function tokenOf(db: Db): string | undefined {
  const sql = "select value from meta where key in ('token', 'token_twin') order by key"
  const kept = valueQuery(db, sql, "text").all()
  if (kept.length > 1 && kept[0] !== kept[1]) throw indexDamage("where it stands is not what was written")
  return kept[0]
}

export function saveToken(db: Db, token: string): void {
  db.prepare("insert or replace into meta (key, value) values ('token', @token), ('token_twin', @token)").run({ token })
}

/** How many had been forgotten when it was last purged. */
export function purgedOf(db: Db): number | undefined {
  const value = db.prepare("select value from meta where key = 'purged'").pluck().get()
  return value === undefined ? undefined : Number(value)
}

export function savePurged(db: Db, forgotten: number): void {
  db.prepare("insert or replace into meta (key, value) values ('purged', ?)").run(String(forgotten))
}

export function saveTokenIfNew(db: Db, token: string): void {
  if (tokenOf(db) !== token) inTransaction(db, () => saveToken(db, token))
}
