import type { Db } from "../../sqlite/database.ts"
import { parsed, type Stored } from "../rot/sound.ts"
import { isSound } from "../rot/sums.ts"

/** Undefined where it was never written, or is damaged in its table and in the index that repeats it. */
export function metaValue(db: Db, key: string): string | undefined {
  const row = db.prepare("select key, value, sum from meta where key = ?").get(key) as Stored | undefined
  if (row && isSound("meta", row)) return row.value as string
  const copy = db.prepare("select value from meta indexed by meta_copy where key = ?").pluck().get(key)
  return copy as string | undefined
}

/** As `metaValue`, of what was written as JSON. */
export function metaJson<T>(db: Db, key: string): T | undefined {
  const value = metaValue(db, key)
  return value === undefined ? undefined : (parsed(value) as T | undefined)
}
