import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { DexError, messageOf } from "../../core/error.ts"
import { tryLock } from "./lock.ts"

// What dex needs for a while and keeps nowhere: copies of other programs' databases, unredacted, above all. It lies below
// dex's own folder, where only its owner can read it, and never in the system's temporary folder. Whoever makes something
// there removes it; what a process that died left is removed by the next one.

/**
 * Where this process's sync puts copies. Made by whoever needs it, used only while sync.lock is held; all threads of a
 * process share it, so that one copy does for those that find and those that read.
 */
export function syncScratch(dexDir: string): string {
  return join(folderOf(dexDir), `${SYNC}${process.pid}`)
}

export function removeSyncScratch(dexDir: string): void {
  remove(syncScratch(dexDir))
}

/**
 * Removes what syncs that died left. To be called by the holder of sync.lock: nobody else's copies are in use then. This
 * process's own stay: a sync that is too long for one thread goes on in another, and finds them.
 */
export function removeLeftovers(dexDir: string): void {
  const own = syncScratch(dexDir)
  for (const name of namesIn(folderOf(dexDir))) {
    const folder = join(folderOf(dexDir), name)
    if (folder === own) continue
    if (name.startsWith(SYNC) || (name.startsWith(WORK) && isLeft(folder))) remove(folder)
  }
}

/** Removes what is left of syncs, unless one is running: that one removes its own. */
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

/** A folder for work that takes no lock of anybody's. */
export function openScratch(dexDir: string): { folder: string; close(): void } {
  const folder = makeFolder(dexDir)
  const lock = tryLock(join(folder, LOCK))
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
    return mkdtempSync(join(folderOf(dexDir), WORK))
  } catch (error) {
    const why = `No temporary folder could be made in ${dexDir} (${messageOf(error)}).`
    throw new DexError("no_temp", `${why} Make it writable, or set DEX_HOME.`, { cause: error })
  }
}

const SYNC = "sync-"
const WORK = "work-"
const LOCK = "lock"
/** From making a folder to locking it takes a moment. */
const MAKING_MS = 60_000

/** True where the process that made it is gone. */
function isLeft(folder: string): boolean {
  try {
    const isBeingMade = !existsSync(join(folder, LOCK)) && Math.abs(Date.now() - statSync(folder).mtimeMs) < MAKING_MS
    if (isBeingMade) return false
    const lock = tryLock(join(folder, LOCK))
    lock?.release()
    return lock !== undefined
  } catch {
    return false // gone meanwhile
  }
}

function folderOf(dexDir: string): string {
  return join(dexDir, "tmp")
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return [] // nothing was ever needed
  }
}

/** What cannot be removed now is tried again by the next sync. */
function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {}
}
