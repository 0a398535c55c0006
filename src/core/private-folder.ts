import { lstatSync, mkdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** The maximum length of the address of a Unix socket, in bytes. macOS allows 104 and Linux 108. */
export const MAX_SOCKET_BYTES = 100

/**
 * Creates a folder that only this user can read, or accepts an existing one. Returns undefined if somebody else owns it or can
 * access it, if it is a link, or if it cannot be created. On Windows it inherits the permissions of its parent folder.
 */
export function privateFolder(folder: string): string | undefined {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const { mode, uid } = lstatSync(folder)
    const isAccessibleToOthers = process.platform !== "win32" && (mode & 0o077) !== 0
    return lstatSync(folder).isDirectory() && uid === ownUid(uid) && !isAccessibleToOthers ? folder : undefined
  } catch {
    return undefined // the disk is read-only or full, or a file has this name
  }
}

/** Whether other users can replace files in a folder. */
export function isWritableByOthers(folder: string): boolean {
  if (process.platform === "win32") return false
  const { mode, uid } = lstatSync(folder)
  return (mode & 0o022) !== 0 || uid !== ownUid(uid)
}

/** Whether the path is a file or a socket of this user, and not a link. */
export function belongsToUser(path: string, kind: "file" | "socket"): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  return stats !== undefined && stats.uid === ownUid(stats.uid) && (kind === "file" ? stats.isFile() : stats.isSocket())
}

/** Returns the folder for sockets whose usual path would be too long. */
export function shortSocketFolder(): string {
  return join(tmpdir(), `dex-${process.getuid?.() ?? 0}`)
}

function ownUid(fallback: number): number {
  return process.getuid?.() ?? fallback
}
