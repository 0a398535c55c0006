import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import type { Home } from "../config/home.ts"
import { readAs } from "../core/schema.ts"
import { tryLock } from "../store/sqlite/lock.ts"
import { stateShape, type WatchState } from "./state.ts"

type Place = Pick<Home, "dir">

const MAX_TRIES = 4
const RETRY_AFTER_MS = 60

/**
 * Takes the lock that prevents a second `dex watch`. Undefined if another one is running. The system releases the
 * lock, however the process ends.
 */
export async function takeInstance(home: Place): Promise<{ release(): void } | undefined> {
  // A process that checks whether dex watch is running takes the lock for a moment.
  for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
    if (attempt > 0) await pause(RETRY_AFTER_MS)
    const lock = tryLock(lockFile(home))
    if (lock) return lock
  }
  return undefined
}

export function isRunning(home: Place): boolean {
  if (!existsSync(lockFile(home))) return false
  const lock = tryLock(lockFile(home))
  lock?.release()
  return lock === undefined
}

/** The last written state, which is current only while dex watch is running. */
export function readState(home: Place): WatchState | undefined {
  try {
    const state = readAs(stateShape, JSON.parse(readFileSync(stateFile(home), "utf8")) as unknown)
    return "ok" in state ? state.ok : undefined
  } catch {
    return undefined // no state yet, or one of another version
  }
}

/** Writes the state. Never fails; readers then see an older state. */
export function writeState(home: Place, state: WatchState): void {
  try {
    writeFileSync(`${stateFile(home)}.new`, `${JSON.stringify(state)}\n`, { mode: 0o600 })
    renameSync(`${stateFile(home)}.new`, stateFile(home))
  } catch {
    // The disk is full or the folder is read-only; the sync reports that and says what to do.
  }
}

function lockFile({ dir }: Place): string {
  return join(dir, "watch.lock")
}

function stateFile({ dir }: Place): string {
  return join(dir, "watch.json")
}
