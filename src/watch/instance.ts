import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import type { Home } from "../config/home.ts"
import { readAs } from "../core/schema.ts"
import { tryLock } from "../store/sqlite/lock.ts"
import { stateShape, type WatchState } from "./state.ts"

type HomeFolder = Pick<Home, "dir">

const MAX_ATTEMPTS = 4
const RETRY_DELAY_MS = 60

/**
 * Takes the lock that prevents a second `dex watch`. Returns undefined if another one is running. The system releases the lock,
 * however the process ends.
 */
export async function takeInstance(home: HomeFolder): Promise<{ release(): void } | undefined> {
  // Try several times, because a process that checks whether dex watch is running takes the lock for a moment.
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    if (attempt > 0) await pause(RETRY_DELAY_MS)
    const lock = tryLock(lockFile(home))
    if (lock) return lock
  }
  return undefined
}

export function isRunning(home: HomeFolder): boolean {
  if (!existsSync(lockFile(home))) return false
  const lock = tryLock(lockFile(home))
  lock?.release()
  return lock === undefined
}

/** Returns the last written state, which is current only while dex watch is running. */
export function readState(home: HomeFolder): WatchState | undefined {
  try {
    const state = readAs(stateShape, JSON.parse(readFileSync(stateFile(home), "utf8")) as unknown)
    return "ok" in state ? state.ok : undefined
  } catch {
    return undefined // there is no state yet, or another version of dex wrote it
  }
}

/** Writes the state. Never throws: if writing fails, readers see an older state. */
export function writeState(home: HomeFolder, state: WatchState): void {
  try {
    writeFileSync(`${stateFile(home)}.new`, `${JSON.stringify(state)}\n`, { mode: 0o600 })
    renameSync(`${stateFile(home)}.new`, stateFile(home))
  } catch {
    // The disk is full or the folder is read-only; the sync reports the problem and what to do about it.
  }
}

function lockFile({ dir }: HomeFolder): string {
  return join(dir, "watch.lock")
}

function stateFile({ dir }: HomeFolder): string {
  return join(dir, "watch.json")
}
