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
 * A cached answer in ~/.dex/map. Each answer has its own small file, named after a hash of the prompt; a file is complete or
 * absent. `refs` are the conversations that the answer is about: the file is deleted when one of them is forgotten.
 */
export type CacheEntry = { refs: string[]; value: unknown }

export type MapCache = {
  has(key: string): boolean
  get(key: string): unknown
  put(key: string, entry: CacheEntry): void
  /** Deletes incomplete files of killed runs. */
  sweep(): void
}

/** An incomplete file that is older than this was left by a run that was killed. */
const STALE_FILE_MS = 600_000

export function openCache(dexDir: string): MapCache {
  const folder = folderOf(dexDir)
  const pathOf = (key: string) => join(folder, `${key}.json`)
  return {
    has: (key) => existsSync(pathOf(key)),
    get(key) {
      try {
        return (JSON.parse(readFileSync(pathOf(key), "utf8")) as CacheEntry | null)?.value
      } catch {
        return undefined // The file is missing or damaged, so the model is asked again.
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
      const temporaryPath = `${pathOf(key)}.${process.pid}.new`
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 })
        const fd = openSync(temporaryPath, "w", 0o600)
        try {
          writeFileSync(fd, JSON.stringify(entry)) // This writes everything or throws; writeSync may write only a part.
          fsyncSync(fd)
        } finally {
          closeSync(fd)
        }
        renameSync(temporaryPath, pathOf(key))
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

/** Deletes every answer that was made from one of these conversations, and every damaged one. Returns how many were deleted. */
export function forgetMapAnswers(dexDir: string, refs: Ref[]): number {
  const forgotten = new Set(refs.map(formatRef))
  return dropMapAnswers(dexDir, (text) => (JSON.parse(text) as CacheEntry).refs.some((ref) => forgotten.has(ref)))
}

/** Deletes every answer whose text matches, and every one for which `matches` throws. Returns how many were deleted. */
export function dropMapAnswers(dexDir: string, matches: (text: string) => boolean): number {
  const folder = folderOf(dexDir)
  if (!existsSync(folder)) return 0
  const files = readdirSync(folder).filter((name) => {
    try {
      return matches(readFileSync(join(folder, name), "utf8"))
    } catch {
      return true // The file is damaged, so it may contain what must be deleted.
    }
  })
  for (const name of files) rmSync(join(folder, name), { force: true })
  return files.length
}

function folderOf(dexDir: string): string {
  return join(dexDir, "map")
}
