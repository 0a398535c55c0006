import { createHash } from "node:crypto"
import { mkdirSync, readdirSync, renameSync, rmSync, statfsSync, statSync } from "node:fs"
import { basename, join } from "node:path"
import { codeOf } from "../../core/error.ts"
import { copyPrivately } from "../../files/copy-file.ts"
import { type DatabaseState, readDatabaseState } from "./database-state.ts"

const ATTEMPTS = 4
const PAUSE_MS = 30
/** Left on the disk for everything else, dex's own history first. */
const LEFT_BYTES = 64 << 20
const PARTIAL = "partial"

/**
 * The copy of another program's database that lies in the folder for copies; undefined where there is none. With a state:
 * only one of that state.
 */
export function copyIn(scratch: string, file: string, state?: DatabaseState): string | undefined {
  const folder = folderOf(scratch, file)
  const name = state ? copyNameOf(state) : namesIn(folder).find((one) => one !== PARTIAL)
  const path = name && join(folder, name, basename(file))
  return path && statSync(path, { throwIfNoEntry: false }) ? path : undefined
}

/**
 * Copies a database with its log, so that only its owner can read the copy, and returns where it is. It is there whole or
 * not at all; one of an earlier state goes first. Throws an Error that says why there is none.
 */
export function makeCopy(scratch: string, file: string): string {
  const folder = folderOf(scratch, file)
  removeCopy(scratch, file)
  mkdirSync(join(folder, PARTIAL), { recursive: true, mode: 0o700 })
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (attempt > 0) pause(PAUSE_MS)
      const before = readDatabaseState(file)
      expectRoom(scratch, before)
      for (const suffix of ["", "-wal", "-journal"])
        copyPrivately(file + suffix, join(folder, PARTIAL, basename(file) + suffix))
      if (readDatabaseState(file).fingerprint !== before.fingerprint) continue
      renameSync(join(folder, PARTIAL), join(folder, copyNameOf(before)))
      return join(folder, copyNameOf(before), basename(file))
    }
  } catch (error) {
    removeCopy(scratch, file)
    throw isFull(error) ? noRoom(scratch, readDatabaseState(file)) : error
  }
  removeCopy(scratch, file)
  throw new Error("the database changes faster than it can be copied; the next sync tries again")
}

export function removeCopy(scratch: string, file: string): void {
  rmSync(folderOf(scratch, file), { recursive: true, force: true })
}

export function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** What is in the log goes into the copy when it is opened. */
function expectRoom(scratch: string, state: DatabaseState): void {
  if (freeBytes(scratch) < state.bytes + state.walBytes + LEFT_BYTES) throw noRoom(scratch, state)
}

function noRoom(scratch: string, { bytes, walBytes }: DatabaseState): Error {
  const needed = Math.ceil((bytes + walBytes + LEFT_BYTES) / 1e6)
  const free = Math.floor(freeBytes(scratch) / 1e6)
  return new Error(
    `it cannot be read in place, and a copy needs ${needed} MB where ${free} MB are free (${scratch}). Free some space, then sync again`,
  )
}

function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

function isFull(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT"].includes(codeOf(error))
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return [] // nothing was copied yet
  }
}

function folderOf(scratch: string, file: string): string {
  return join(scratch, `database-${hash(file)}`)
}

function copyNameOf({ fingerprint }: DatabaseState): string {
  return hash(fingerprint)
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16)
}
