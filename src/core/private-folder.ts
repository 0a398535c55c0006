import { lstatSync, mkdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** The address of a Unix socket has at most 104 bytes on a Mac and 108 on Linux. */
export const LONGEST_SOCKET = 100

/**
 * Makes a folder that only this user can read, or accepts an existing one. Undefined if somebody else made it or can read it, if
 * it is a link, or if it cannot be made. On Windows it inherits the permissions of its parent folder.
 */
export function privateFolder(folder: string): string | undefined {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const { mode, uid } = lstatSync(folder)
    const isOpen = process.platform !== "win32" && (mode & 0o077) !== 0
    return lstatSync(folder).isDirectory() && uid === ownUid(uid) && !isOpen ? folder : undefined
  } catch {
    return undefined // a read-only or full disk, or a file in its place
  }
}

/** Whether others could replace our files in a folder with their own. */
export function isWritableByOthers(folder: string): boolean {
  if (process.platform === "win32") return false
  const { mode, uid } = lstatSync(folder)
  return (mode & 0o022) !== 0 || uid !== ownUid(uid)
}

/** Whether this is a file or a socket of this user, and not a link. */
export function belongsToUser(path: string, kind: "file" | "socket"): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false })
  return found !== undefined && found.uid === ownUid(found.uid) && (kind === "file" ? found.isFile() : found.isSocket())
}

/** For sockets whose own folder has a path that is too long. */
export function shortFolder(): string {
  return join(tmpdir(), `dex-${process.getuid?.() ?? 0}`)
}

function ownUid(otherwise: number): number {
  return process.getuid?.() ?? otherwise
}
