import { type Db, inTransaction } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { indexDamage } from "./blocks.ts"

/** The index's position in the feed. It is stored twice, because a damaged token could hide changes forever. */
export function savedToken(db: Db): string | undefined {
  const sql = "select value from meta where key in ('token', 'token_twin') order by key"
  const stored = valueQuery(db, sql, "text").all()
  if (stored.length > 1 && stored[0] !== stored[1])
    throw indexDamage("its position in the history's feed changed on disk")
  return stored[0]
}

export function saveToken(db: Db, token: string): void {
  db.prepare("insert or replace into meta (key, value) values ('token', @token), ('token_twin', @token)").run({ token })
}

/** The number of conversations that had been forgotten at the last purge. */
export function forgottenAtLastPurge(db: Db): number | undefined {
  const value = db.prepare("select value from meta where key = 'purged'").pluck().get()
  return value === undefined ? undefined : Number(value)
}

export function saveForgottenAtPurge(db: Db, forgotten: number): void {
  db.prepare("insert or replace into meta (key, value) values ('purged', ?)").run(String(forgotten))
}

export function saveTokenIfNew(db: Db, token: string): void {
  if (savedToken(db) !== token) inTransaction(db, () => saveToken(db, token))
}
