import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { DexError, messageOf } from "../../core/error.ts"
import { tryLock } from "./lock.ts"

// Temporary files of dex, above all unredacted copies of other programs' databases. They are in dex's own folder, where only its
// owner can read them, and never in the system's temporary folder. Each process removes its own files; those of a process that
// died are removed by the next one.

/**
 * The folder for the copies that this process's sync makes. It is created when needed, and used only by the process that has
 * sync.lock. All threads of a process share it, so that finding sessions and reading them use the same copy.
 */
export function syncScratch(dexDir: string): string {
  return join(folderOf(dexDir), `${SYNC_PREFIX}${process.pid}`)
}

export function removeSyncScratch(dexDir: string): void {
  removeFolder(syncScratch(dexDir))
}

/**
 * Removes files left by syncs that died. The caller must have sync.lock, so that nobody else's copies are in use. This process's
 * own folder stays: a sync that is too long for one thread continues in another, which uses it.
 */
export function removeLeftovers(dexDir: string): void {
  const ownFolder = syncScratch(dexDir)
  for (const name of namesIn(folderOf(dexDir))) {
    const folder = join(folderOf(dexDir), name)
    if (folder === ownFolder) continue
    if (name.startsWith(SYNC_PREFIX) || (name.startsWith(WORK_PREFIX) && isAbandoned(folder))) removeFolder(folder)
  }
}

/** Removes files left by syncs, unless a sync is running, which will remove its own files. */
export function clearScratch(home: { dir: string; lock: string }): void {
  if (namesIn(folderOf(home.dir)).length === 0) return
  const lock = tryLock(home.lock)
  if (!lock) return
  try {
    removeLeftovers(home.dir)
    removeSyncScratch(home.dir)
  } finally {
    lock.release()
  }
}

/** Creates a folder for temporary files, with a lock of its own. `close` removes it. */
export function openScratch(dexDir: string): { folder: string; close(): void } {
  const folder = makeFolder(dexDir)
  const lock = tryLock(join(folder, LOCK_NAME))
  return {
    folder,
    close: () => {
      lock?.release()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function makeFolder(dexDir: string): string {
  try {
    mkdirSync(folderOf(dexDir), { recursive: true, mode: 0o700 })
    return mkdtempSync(join(folderOf(dexDir), WORK_PREFIX))
  } catch (error) {
    const problem = `No temporary folder could be created in ${dexDir} (${messageOf(error)}).`
    throw new DexError("no_temp", `${problem} Make it writable, or set DEX_HOME to another folder.`, { cause: error })
  }
}

const SYNC_PREFIX = "sync-"
const WORK_PREFIX = "work-"
const LOCK_NAME = "lock"
/** The maximum time between creating a folder and locking it, in milliseconds. */
const MAX_LOCK_DELAY_MS = 60_000

/** Whether the process that created the folder is gone. */
function isAbandoned(folder: string): boolean {
  try {
    const isNew =
      !existsSync(join(folder, LOCK_NAME)) && Math.abs(Date.now() - statSync(folder).mtimeMs) < MAX_LOCK_DELAY_MS
    if (isNew) return false
    const lock = tryLock(join(folder, LOCK_NAME))
    lock?.release()
    return lock !== undefined
  } catch {
    return false // it was deleted meanwhile
  }
}

function folderOf(dexDir: string): string {
  return join(dexDir, "tmp")
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return [] // the folder does not exist, because it was never needed
  }
}

/** Removes a folder. If that fails, the next sync retries. */
function removeFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {}
}
