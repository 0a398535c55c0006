import { type Dirent, readdirSync } from "node:fs"
import { messageOf } from "../core/error.ts"
import type { Unreadable } from "./connector.ts"

/** What is in a folder, by name. A folder that is not there is empty; one that may not be read is reported. */
export function entriesOf(dir: string, report: (problem: Unreadable) => void): Dirent[] {
  try {
    return readdirSync(dir, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  } catch (error) {
    if (!isAbsent(error)) report({ unreadable: messageOf(error), path: dir })
    return []
  }
}

/** True where the path, or a folder on the way to it, does not exist. */
export function isAbsent(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")
}
