import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { DexError, messageOf } from "../../core/error.ts"
import { formatRef, type Ref } from "../../core/ref.ts"
import { hashOf } from "./data.ts"

/**
 * A cached answer in ~/.dex/map. Each answer has its own small file, named after a hash of the question; a file is complete or
 * absent. `refs` are the conversations that the answer is about: it is deleted when one of them is forgotten.
 */
export type CacheEntry = { refs: string[]; value: unknown }

export type Cache = {
  has(key: string): boolean
  get(key: string): unknown
  put(key: string, entry: CacheEntry): void
  /** Deletes incomplete files of killed runs. */
  sweep(): void
}

/** After this time, an incomplete file was left by a run that was killed. */
const STALE_FILE_MS = 600_000

export function openCache(dexDir: string): Cache {
  const folder = folderOf(dexDir)
  const path = (key: string) => join(folder, `${key}.json`)
  return {
    has: (key) => existsSync(path(key)),
    get(key) {
      try {
        return (JSON.parse(readFileSync(path(key), "utf8")) as CacheEntry | null)?.value
      } catch {
        return undefined // missing or damaged: the model is asked again
      }
    },
    sweep() {
      for (const name of existsSync(folder) ? readdirSync(folder) : []) {
        const file = join(folder, name)
        if (
          name.endsWith(".new") &&
          Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) > STALE_FILE_MS
        )
          rmSync(file, { force: true })
      }
    },
    put(key, entry) {
      const temporaryPath = `${path(key)}.${process.pid}.new`
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 })
        const fd = openSync(temporaryPath, "w", 0o600)
        try {
          writeFileSync(fd, JSON.stringify(entry)) // writes everything or throws; writeSync may write only a part
          fsyncSync(fd)
        } finally {
          closeSync(fd)
        }
        renameSync(temporaryPath, path(key))
      } catch (error) {
        rmSync(temporaryPath, { force: true })
        throw new DexError(
          "map_cache",
          `${folder} cannot be written (${messageOf(error)}), so paid answers could not be stored. Free some space, or fix the permissions.`,
          { cause: error },
        )
      }
    },
  }
}

export function cacheKey(...parts: string[]): string {
  return hashOf(JSON.stringify(parts))
}

/** Deletes every answer that was made from one of these conversations. Returns the number of deleted answers. */
export function forgetMapAnswers(dexDir: string, refs: Ref[]): number {
  const forgotten = new Set(refs.map(formatRef))
  return dropMapAnswers(dexDir, (text) => (JSON.parse(text) as CacheEntry).refs.some((ref) => forgotten.has(ref)))
}

/** Deletes every answer whose text matches. Returns the number of deleted answers. */
export function dropMapAnswers(dexDir: string, matches: (text: string) => boolean): number {
  const folder = folderOf(dexDir)
  if (!existsSync(folder)) return 0
  const files = readdirSync(folder).filter((name) => {
    try {
      return matches(readFileSync(join(folder, name), "utf8"))
    } catch {
      return true // damaged, so its contents are unknown
    }
  })
  for (const name of files) rmSync(join(folder, name), { force: true })
  return files.length
}

function folderOf(dexDir: string): string {
  return join(dexDir, "map")
}
