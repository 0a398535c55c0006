import { closeSync, fsyncSync, openSync, readSync, rmSync, writeFileSync } from "node:fs"
import { isAbsent } from "./look-at.ts"
import { openFile } from "./read-file.ts"

const CHUNK_BYTES = 1 << 20

/**
 * Copies a regular file so that only its owner can read the copy. Returns false if there is no such file. copyFileSync is not
 * used: it would block on a pipe, and others could read its copy until the permissions were changed.
 */
export function copyPrivately(from: string, to: string, { toDisk = false } = {}): boolean {
  rmSync(to, { force: true })
  const source = openIfPresent(from)
  if (source === undefined) return false
  try {
    const target = openSync(to, "wx", 0o600)
    try {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
      for (let bytesRead = readSync(source, chunk); bytesRead > 0; bytesRead = readSync(source, chunk))
        writeFileSync(target, chunk.subarray(0, bytesRead)) // writeFileSync writes all bytes; writeSync may write only some
      if (toDisk) fsyncSync(target)
    } finally {
      closeSync(target)
    }
    return true
  } finally {
    closeSync(source)
  }
}

function openIfPresent(path: string): number | undefined {
  try {
    return openFile(path).fd
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw error
  }
}

/** Forces the system to write a file to its disk, and returns when that is done. */
export function syncToDisk(path: string): void {
  const file = openSync(path, "r+")
  fsyncSync(file)
  closeSync(file)
}
