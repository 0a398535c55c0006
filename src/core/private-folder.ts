import { lstatSync, mkdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** An address of a Unix socket has at most 104 bytes on a Mac and 108 on Linux. */
export const LONGEST_SOCKET = 100

/**
 * Makes a folder that only this user can look into, or takes the one that is there. Undefined if somebody else made it or can look
 * into it, if it is a link, or if it cannot be made. On Windows it has the rights of the folder that it is in.
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

/** Whether others could put their own files into a folder in place of ours. */
export function isWritableByOthers(folder: string): boolean {
  if (process.platform === "win32") return false
  const { mode, uid } = lstatSync(folder)
  return (mode & 0o022) !== 0 || uid !== ownUid(uid)
}

/** Whether this is a file or a socket of this user, and no link. */
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
