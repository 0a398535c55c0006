import { lstatSync, type Stats, statSync } from "node:fs"

/**
 * Looks up a path that another program recorded. Returns undefined if nothing exists there, and `unknown` if the system cannot
 * tell (no permission, a loop of links, a name that is too long or contains a NUL, a mount whose server is gone). Never throws:
 * an unreadable folder is no reason to drop the conversations that happened in it.
 *
 * This is one system call without a time limit. If a network file system waits for its server forever (NFS mounted with `hard`),
 * the kernel blocks the caller, and nothing in this process can end that. Mounts that answer with an error (sshfs, NFS with
 * `soft`) return at the first error.
 */
export function lookAt(path: string, { follow = true } = {}): Stats | "unknown" | undefined {
  try {
    return (follow ? statSync : lstatSync)(path, { throwIfNoEntry: false })
  } catch (error) {
    return isAbsent(error) ? undefined : "unknown"
  }
}

export function isFolder(path: string): boolean {
  const stats = lookAt(path)
  return stats !== undefined && stats !== "unknown" && stats.isDirectory()
}

/** Returns true if the error says that a path, or a folder on the way to it, does not exist. */
export function isAbsent(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")
}
