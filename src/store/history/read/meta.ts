import type { Db } from "../../sqlite/database.ts"
import { rowQuery, valueQuery } from "../../sqlite/typed-query.ts"
import { parsed } from "../rot/checked-rows.ts"
import { isIntact } from "../rot/sums.ts"
import { TABLES } from "../tables.ts"

/** Returns undefined if the value was never written, or is damaged both in the table and in the index with its copy. */
export function metaValue(db: Db, key: string): string | undefined {
  const row = rowQuery(db, "select key, value, sum from meta where key = ?", TABLES.meta).get(key)
  if (row && isIntact(db, "meta", row)) return row.value
  return valueQuery(db, "select value from meta indexed by meta_copy where key = ?", "text").get(key)
}

/** Like `metaValue`, for values written as JSON. */
export function metaJson<T>(db: Db, key: string): T | undefined {
  const value = metaValue(db, key)
  return value === undefined ? undefined : (parsed(value) as T | undefined)
}
