import { execFileSync } from "node:child_process"
import { mkdirSync, statfsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { tempDir } from "./temp.ts"

/** A file system with so many kilobytes for this test. Undefined, with a message, if this user may not mount one. */
export function smallDisk(kilobytes: number): string | undefined {
  const dir = join(tempDir(), "disk")
  mkdirSync(dir)
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${kilobytes}k`, "tmpfs", dir], { stdio: "ignore" })
  } catch {
    console.log("NOT RUN: a full disk needs a small file system, and this user may not mount one")
    return undefined
  }
  onTestFinished(() => void execFileSync("umount", [dir]))
  return dir
}

/** Leaves no byte free. */
export function fill(disk: string): void {
  const { bavail, bsize } = statfsSync(disk)
  writeFileSync(join(disk, "ballast"), Buffer.alloc(bavail * bsize))
}
