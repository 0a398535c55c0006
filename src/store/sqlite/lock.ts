import { closeSync, existsSync, mkdirSync, openSync } from "node:fs"
import { dirname } from "node:path"
import { codeOf } from "../../core/error.ts"
import { explainError } from "./database.ts"
import { openSqlite } from "./engine.ts"

/**
 * Takes a lock that only one process can have, or returns undefined if another process has it. The lock is an open transaction
 * on its own database: the operating system releases it when the process ends in any way. A pid file has no such guarantee.
 */
export function tryLock(path: string): { release(): void } | undefined {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    if (!existsSync(path)) closeSync(openSync(path, "a", 0o600))
    const db = openSqlite(path, { timeout: 0 })
    try {
      db.exec("begin exclusive")
    } catch (error) {
      db.close()
      if (codeOf(error).startsWith("SQLITE_BUSY")) return undefined
      throw error
    }
    return { release: () => db.close() }
  } catch (error) {
    throw explainError(error, path)
  }
}
