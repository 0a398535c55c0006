import { type Dirent, lstatSync, readdirSync, type Stats } from "node:fs"
import { messageOf } from "../../core/error.ts"
import { isAbsent } from "../../files/look-at.ts"
import { readText } from "../../files/read-file.ts"
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

/** The regular file at a path. Undefined where there is none; a link or a pipe there, or one that nobody may see, is reported. */
export function fileAt(path: string, report: (problem: Unreadable) => void): Stats | undefined {
  try {
    const found = lstatSync(path)
    if (found.isFile()) return found
    report({ unreadable: found.isSymbolicLink() ? "a symbolic link, not followed" : "not a regular file", path })
  } catch (error) {
    if (!isAbsent(error)) report({ unreadable: messageOf(error), path })
  }
  return undefined
}

/** The text of a small file that lies beside sessions. Undefined where there is none; one that is not read is reported. */
export function textAt(path: string, maxBytes: number, report: (problem: Unreadable) => void): string | undefined {
  try {
    return readText(path, maxBytes)
  } catch (error) {
    if (!isAbsent(error)) report({ unreadable: messageOf(error), path })
    return undefined
  }
}
