import { existsSync, readdirSync, statSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { removeDatabase } from "./database.ts"

// Where older versions have what they derived from the history, beside ours.

/** The index that this version would have in an older format. Format 2 is version 0.1.0's. */
export function olderIndex(path: string, format: number): string {
  return join(dirname(path), format === 2 ? "index.db" : `index-${format}.db`)
}

export function olderKnowledge(path: string): string {
  return join(dirname(path), "knowledge.db")
}

// Each version of dex keeps what it derives in a file whose name says how it is kept: index-5.db. Version 0.1.0 named its
// own without a number. What another version left behind is deleted when nobody can be using it.

/** The files of other formats beside one of ours. */
function otherFormats(path: string): string[] {
  const [family] = basename(path).split(/-\d+\.db$/)
  const isOne = new RegExp(`^${family}(-\\d+)?\\.db$`)
  if (!existsSync(dirname(path))) return []
  return readdirSync(dirname(path))
    .filter((name) => isOne.test(name) && name !== basename(path))
    .map((name) => join(dirname(path), name))
}

/** Returns how many bytes were given back. `untouchedSince`: only those that nobody wrote to since then. */
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
