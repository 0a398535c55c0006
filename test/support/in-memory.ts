import { execFileSync } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** The bytes that must be free: more than the folders of all tests contain at the same time. */
const NEEDED_BYTES = 2e9

/**
 * Puts the folders of tests in memory if Linux has room for them: tests write and remove tens of thousands of small files, and on
 * a disk each of those takes longer. If TMPDIR is set, it is not changed.
 */
export default function setup(): (() => void) | undefined {
  if (process.platform !== "linux" || process.env.TMPDIR !== undefined) return
  const folder = folderInMemory()
  if (folder === undefined)
    return void console.log(
      "The tests take longer: their folders are on the disk, as /dev/shm has no room or runs no program.",
    )
  process.env.TMPDIR = folder
  return () => {
    delete process.env.TMPDIR
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  }
}

function folderInMemory(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync("/dev/shm")
    if (bavail * bsize < NEEDED_BYTES) return undefined
    const folder = mkdtempSync("/dev/shm/dex-tests-")
    chmodSync(folder, 0o711) // some tests read as another user
    // Tests start programs in their folders, which some containers forbid for folders in memory.
    const program = join(folder, "program")
    writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 })
    try {
      execFileSync(program)
      return folder
    } catch {
      rmSync(folder, { recursive: true })
      return undefined
    }
  } catch {
    return undefined // there is no such folder, or it is not writable
  }
}
