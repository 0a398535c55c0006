import { execFileSync, spawnSync } from "node:child_process"
import { chmodSync, mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { tempDir } from "./temp.ts"

/** A user who may not read everything: this one or, if this one is root, nobody. */
export const PLAIN_USER = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}

/**
 * Folders for which a lookup fails with another error than "not found", by the system's name for the error. Leaves out what this
 * machine cannot make, such as a dead mount without permission to mount.
 */
export function oddFolders(): Record<string, string> {
  const dir = tempDir()
  chmodSync(dir, 0o755)
  const hidden = join(dir, "hidden")
  mkdirSync(join(hidden, "proj"), { recursive: true })
  chmodSync(hidden, 0o000)
  onTestFinished(() => chmodSync(hidden, 0o700))
  symlinkSync("loop", join(dir, "loop"))
  const dead = deadMount(join(dir, "dead"))
  return {
    EACCES: join(hidden, "proj"),
    ELOOP: join(dir, "loop", "proj"),
    ENAMETOOLONG: join(dir, "a".repeat(300), "proj"),
    ERR_INVALID_ARG_VALUE: `${dir}/nul\0/proj`,
    ...(dead && { ENOTCONN: join(dead, "proj") }),
  }
}

/** A file system whose program has ended, as sshfs leaves it. Undefined if this user may not mount one. */
function deadMount(dir: string): string | undefined {
  mkdirSync(dir)
  const options = "fd=3,rootmode=40000,user_id=0,group_id=0,allow_other"
  const made = spawnSync("sh", ["-c", `exec 3<>/dev/fuse && exec mount -i -t fuse -o ${options} dead "$1"`, "sh", dir])
  if (made.status !== 0) return undefined
  onTestFinished(() => void execFileSync("umount", ["-l", dir]))
  return dir
}
