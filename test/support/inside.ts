import { onTestFinished } from "vitest"
import type { Knowledge } from "../../src/store/knowledge/knowledge.ts"
import type { Db } from "../../src/store/sqlite/database.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"

/** The file with the learned facts, over the test's own connection. */
export function openKnowledgeFile({ path }: Pick<Knowledge, "path">): Db {
  const db = openSqlite(path)
  onTestFinished(() => void db.close())
  return db
}
