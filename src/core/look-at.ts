import { lstatSync, type Stats, statSync } from "node:fs"

/**
 * What stands at a path that somebody else wrote down: undefined where nothing does, `unknown` where the system does not
 * say (no right to look, a loop of links, a name too long or with a NUL in it, the mount of a server that is gone). Never
 * throws: a folder that cannot be looked at is no reason to drop what was said in it.
 *
 * One question is asked. How long the system takes to answer it is not bounded: where a network file system is mounted so
 * that it waits for its server for ever (NFS with `hard`), the kernel holds whoever asks, and nothing in this process can
 * end that. Mounts that answer with an error (sshfs, NFS with `soft`) end here at the first one.
 */
export function lookAt(path: string, { follow = true } = {}): Stats | "unknown" | undefined {
  try {
    return (follow ? statSync : lstatSync)(path, { throwIfNoEntry: false })
  } catch (error) {
    return isAbsent(error) ? undefined : "unknown"
  }
}

export function isFolder(path: string): boolean {
  const found = lookAt(path)
  return found !== undefined && found !== "unknown" && found.isDirectory()
}

/** True where the path, or a folder on the way to it, does not exist. */
export function isAbsent(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")
}
