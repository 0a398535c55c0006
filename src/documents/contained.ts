import { fstatSync, lstatSync, readlinkSync, realpathSync } from "node:fs"
import { basename, dirname, join } from "node:path"

/** Which file stands at a path, and in which real folder. */
export type Place = { folder: string; dev: bigint; ino: bigint }

/** Undefined where no regular file stands there, or where its folder is being exchanged. */
export function placeOf(file: string): Place | undefined {
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
export function isAt(fd: number, file: string, before: Place, nameOf = nameOfOpen): boolean {
  const opened = fstatSync(fd, { bigint: true })
  const named = nameOf(fd)
  if (named !== undefined) return named === join(before.folder, basename(file)) && isSame(placeOf(file), opened)
  const looks = [before, ...Array.from({ length: LOOKS }, () => placeOf(file))]
  return looks.every((look) => look?.folder === before.folder && isSame(look, opened))
}

function isSame(place: Place | undefined, opened: { dev: bigint; ino: bigint }): boolean {
  return place?.dev === opened.dev && place.ino === opened.ino
}

function nameOfOpen(fd: number): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return undefined // only Linux has it
  }
}
