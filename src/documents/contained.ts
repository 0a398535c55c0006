import { fstatSync, lstatSync, readlinkSync, realpathSync } from "node:fs"
import { basename, dirname, join } from "node:path"

/** Which file stands at a path, and in which real folder. */
export type FilePlace = { folder: string; dev: bigint; ino: bigint }

/** Undefined where no regular file stands there, or where its folder is being exchanged. */
export function filePlaceOf(file: string): FilePlace | undefined {
  try {
    const folder = realpathSync.native(dirname(file))
    const found = lstatSync(file, { bigint: true })
    if (!found.isFile() || realpathSync.native(dirname(file)) !== folder) return undefined
    return { folder, dev: found.dev, ino: found.ino }
  } catch {
    return undefined // gone, or not for us to look at
  }
}

/** Each asks for one more exchange of a folder, there and back, between two calls that follow on one another. */
const LOOKS = 4

/**
 * True where the open file is the one that stood at this place before it was opened, and stands there now. Linux names the
 * path of an open file; elsewhere the place is looked at several times.
 */
export function isAt(fd: number, file: string, before: FilePlace, openName = nameOfOpen): boolean {
  const opened = fstatSync(fd, { bigint: true })
  const named = openName(fd)
  if (named !== undefined) return named === join(before.folder, basename(file)) && isSame(filePlaceOf(file), opened)
  const looks = [before, ...Array.from({ length: LOOKS }, () => filePlaceOf(file))]
  return looks.every((look) => look?.folder === before.folder && isSame(look, opened))
}

function isSame(place: FilePlace | undefined, opened: { dev: bigint; ino: bigint }): boolean {
  return place?.dev === opened.dev && place.ino === opened.ino
}

function nameOfOpen(fd: number): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return undefined // only Linux has it
  }
}
