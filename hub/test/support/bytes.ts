import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** The files below a folder that contain these bytes. A file that disappears meanwhile is skipped. */
export function filesWith(folder: string, bytes: Buffer | string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => {
      try {
        return readFileSync(file).includes(bytes)
      } catch {
        return false
      }
    })
}
