import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import type { Home } from "../config/home.ts"
import { readAs } from "../core/schema.ts"
import { tryLock } from "../store/sqlite/lock.ts"
import { stateShape, type WatchState } from "./state.ts"

type Place = Pick<Home, "dir">

const TRIES = 4
const BETWEEN_MS = 60

/**
 * Only one `dex watch` runs at a time. Undefined: another one is running. The system releases the lock, however the process ends.
 */
export async function takeInstance(home: Place): Promise<{ release(): void } | undefined> {
  // A process that checks whether one is running takes the lock for a moment.
  for (let attempt = 0; attempt < TRIES; attempt++) {
    if (attempt > 0) await pause(BETWEEN_MS)
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

/** The last state that was written; current only while one is running. */
export function readState(home: Place): WatchState | undefined {
  try {
    const state = readAs(stateShape, JSON.parse(readFileSync(stateFile(home), "utf8")) as unknown)
    return "ok" in state ? state.ok : undefined
  } catch {
    return undefined // none yet, or from another version
  }
}

/** Never fails; in that case readers see an older state. */
export function writeState(home: Place, state: WatchState): void {
  try {
    writeFileSync(`${stateFile(home)}.new`, `${JSON.stringify(state)}\n`, { mode: 0o600 })
    renameSync(`${stateFile(home)}.new`, stateFile(home))
  } catch {
    // A full disk or a read-only folder; the sync reports it and says what to do.
  }
}

function lockFile({ dir }: Place): string {
  return join(dir, "watch.lock")
}

function stateFile({ dir }: Place): string {
  return join(dir, "watch.json")
}
