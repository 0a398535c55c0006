import { existsSync } from "node:fs"
import { emptyLog } from "./database.ts"
import { openSqlite } from "./engine.ts"

/**
 * Brings what was written into each of these databases into its file, over the pages that it replaces, and empties the
 * log. Waits for nobody. Returns those whose old pages somebody still reads: their bytes stay until that ends.
 */
export function clearLogs(paths: readonly string[]): string[] {
  return paths.filter((path) => existsSync(path) && !isCleared(path))
}

function isCleared(path: string): boolean {
  try {
    const db = openSqlite(path, { timeout: 0, fileMustExist: true })
    try {
      return emptyLog(db, 0)
    } finally {
      db.close()
    }
  } catch {
    return false // locked, or damaged: whoever opens it next says so
  }
}
