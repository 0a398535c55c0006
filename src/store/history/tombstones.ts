import { createHash, randomBytes } from "node:crypto"
import type { Db } from "../sqlite/database.ts"
import { metaValue } from "./read/meta.ts"

/**
 * True if the conversation was forgotten, so that it must not be read again. Only a salted hash of its name is stored, so that
 * the name is not revealed.
 */
export function isForgotten(db: Db, source: string, nativeId: string): boolean {
  const hash = tombstoneOf(db, source, nativeId)
  if (db.prepare("select 1 from tombstone where hash = ?").get(hash) !== undefined) return true
  // Query the index, which contains a second copy, because the row itself may be damaged.
  return db.prepare("select 1 from tombstone indexed by tombstone_copy where hash = ?").get(hash) !== undefined
}

export function forgottenAmong(db: Db, source: string, ids: Set<string>): Set<string> {
  if (db.prepare("select 1 from tombstone limit 1").get() === undefined) return new Set()
  return new Set([...ids].filter((id) => isForgotten(db, source, id)))
}

export function markForgotten(db: Db, source: string, nativeId: string): void {
  db.prepare("insert or ignore into tombstone (hash) values (?)").run(tombstoneOf(db, source, nativeId))
}

function tombstoneOf(db: Db, source: string, nativeId: string): Buffer {
  let salt = metaValue(db, "salt")
  if (salt === undefined) {
    db.prepare("insert or ignore into meta (key, value) values ('salt', ?)").run(randomBytes(16).toString("hex"))
    salt = metaValue(db, "salt")
  }
  return createHash("sha256").update(`${salt}\n${source}\n${nativeId}`).digest()
}
