import { existsSync, readdirSync, statSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { removeDatabase } from "./database.ts"

// The paths of the files that older versions derived from the history.

/** The path of the index in an older format. Version 0.1.0 used format 2. */
export function olderIndexPath(path: string, format: number): string {
  return join(dirname(path), format === 2 ? "index.db" : `index-${format}.db`)
}

export function olderKnowledge(path: string): string {
  return join(dirname(path), "knowledge.db")
}

// Each version of dex stores derived data in a file whose name includes its format: index-5.db. Version 0.1.0 used names without
// a number. Files of other versions are deleted when nobody can be using them.

/** Returns the files of other formats in the same folder. */
function otherFormats(path: string): string[] {
  const [family] = basename(path).split(/-\d+\.db$/)
  const sameFamily = new RegExp(`^${family}(-\\d+)?\\.db$`)
  if (!existsSync(dirname(path))) return []
  return readdirSync(dirname(path))
    .filter((name) => sameFamily.test(name) && name !== basename(path))
    .map((name) => join(dirname(path), name))
}

/**
 * Deletes files of other formats and returns the number of freed bytes. With `untouchedSince`, deletes only files that nobody has
 * written to since then.
 */
export function removeOtherFormats(path: string, untouchedSince = Number.POSITIVE_INFINITY): number {
  let bytes = 0
  for (const file of otherFormats(path)) {
    const parts = [file, `${file}-wal`].flatMap((part) => statSync(part, { throwIfNoEntry: false }) ?? [])
    if (parts.some(({ mtimeMs }) => mtimeMs > untouchedSince)) continue
    bytes += parts.reduce((sum, { size }) => sum + size, 0)
    removeDatabase(file)
  }
  return bytes
}
