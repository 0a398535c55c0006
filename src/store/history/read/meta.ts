import type { Db } from "../../sqlite/database.ts"
import { rowQuery, valueQuery } from "../../sqlite/typed-query.ts"
import { tryParseJson } from "../rot/checked-rows.ts"
import { isIntact } from "../rot/sums.ts"
import { TABLES } from "../tables.ts"

/** Returns undefined if the value was never written, or if both the row and its copy in the index are damaged. */
export function metaValue(db: Db, key: string): string | undefined {
  const row = rowQuery(db, "select key, value, sum from meta where key = ?", TABLES.meta).get(key)
  if (row && isIntact(db, "meta", row)) return row.value
  return valueQuery(db, "select value from meta indexed by meta_copy where key = ?", "text").get(key)
}

/** Like `metaValue`, for values written as JSON. */
export function metaJson<T>(db: Db, key: string): T | undefined {
  const value = metaValue(db, key)
  return value === undefined ? undefined : (tryParseJson(value) as T | undefined)
}
