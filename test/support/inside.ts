import { onTestFinished } from "vitest"
import type { Knowledge } from "../../src/store/knowledge/knowledge.ts"
import type { Db } from "../../src/store/sqlite/database.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"

/** The file behind what was learned, over a connection of the test's own. */
export function inside({ path }: Pick<Knowledge, "path">): Db {
  const db = openSqlite(path)
  onTestFinished(() => void db.close())
  return db
}
