import { accessSync, constants, statSync } from "node:fs"
import { dirname } from "node:path"
import { codeOf, messageOf } from "../../core/error.ts"
import type { Db } from "./engine.ts"
import { pragmaValue } from "./typed-query.ts"

// SQLite believes the first bytes of its file. What they say is asked of SQLite and never read from the file: closing the
// file would take away the locks that other connections of this process hold on it.

/** What is wrong with the head of the file, before SQLite acts on it: it could cut the file, or fill pages that are in use. */
export function damagedHead(db: Db, path: string): string | undefined {
  if (db.pragma("encoding", { simple: true }) !== "UTF-8") return "its text encoding changed"
  if (db.pragma("auto_vacuum", { simple: true }) !== 0) return "its kind of pages changed"
  // Somebody may be at work between two looks; damage stays as it is.
  return hasWrongLength(db, path) && hasWrongLength(db, path) ? "its length changed" : undefined
}

/** Of an error that is the file's and not what it says: the head claims what no dex writes. */
export function isOfHead(error: unknown, path: string): boolean {
  if (codeOf(error) === "SQLITE_ERROR") return messageOf(error) === "unsupported file format"
  return codeOf(error) === "SQLITE_READONLY" && isWritable(path)
}

/** The number of pages is the file's own where no log has a later one. */
function hasWrongLength(db: Db, path: string): boolean {
  const isLogged = () => (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === undefined || isLogged()) return false
  const pages = pragmaValue(db, "page_count", "integer")
  return pages * pragmaValue(db, "page_size", "integer") !== size && !isLogged()
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    accessSync(dirname(path), constants.W_OK)
    return true
  } catch {
    return false
  }
}
