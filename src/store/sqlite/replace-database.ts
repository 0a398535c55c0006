import { existsSync, renameSync } from "node:fs"
import { DexError, isDexError } from "../../core/error.ts"
import { emptyLog, isOpenElsewhere, removeDatabase } from "./database.ts"
import { openSqlite } from "./engine.ts"
import { pragmaValue } from "./typed-query.ts"

/**
 * Replaces one database with another in a single step. Other processes may have the old one open: if the system does not allow
 * deleting an open file (Windows), the new one is copied into it in one transaction, and they continue with the new one too.
 */
export async function replaceDatabase(path: string, replacement: string): Promise<void> {
  try {
    removeDatabase(path)
    renameSync(replacement, path)
  } catch (error) {
    if (!isOpenElsewhere(isDexError(error) ? error.cause : error)) throw error
    await copyInto(path, replacement)
    removeDatabase(replacement)
  }
}

const MAX_ATTEMPTS = 20
const WAIT_MS = 250

/**
 * Copies a database into another. SQLite's copy ends without an error even if the target is locked, so the copy is marked and
 * then checked.
 */
export async function copyInto(target: string, from: string): Promise<void> {
  const source = openSqlite(from)
  try {
    const mark = 1 + Math.floor(Math.random() * 0x7ffffffe)
    source.pragma(`application_id = ${mark}`)
    for (let i = 0; i < MAX_ATTEMPTS; i++) {
      await source.backup(target, { progress: () => ALL_PAGES })
      if (readMark(target) === mark) return
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS))
    }
  } finally {
    source.close()
  }
  throw new DexError("busy", `Another program keeps ${target} locked. Try again in a moment.`)
}

/** The number of pages to copy at once: all of them, so that other writers wait until it is done. */
const ALL_PAGES = 0x7fffffff

function readMark(path: string): number {
  const db = openSqlite(path, { timeout: 30_000 })
  try {
    return pragmaValue(db, "application_id", "integer")
  } finally {
    db.close()
  }
}

/**
 * Moves the write-ahead log of each of these databases into its file, over the old pages, and empties the log. Does not wait.
 * Returns the databases for which that failed, for example because another process still reads the old pages.
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
    return false // locked or damaged; the next process that opens it reports that
  }
}
