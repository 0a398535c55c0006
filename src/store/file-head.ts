import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs"

const HEAD_BYTES = 100

/** What every database of dex has at these places: a different value is damage, and SQLite would act on it. */
const FIXED: [at: number, bytes: readonly number[], what: string][] = [
  [0, [...Buffer.from("SQLite format 3\0")], "its first bytes"],
  [16, [0x10, 0x00], "its page size"],
  [20, [0, 64, 32, 32], "how its pages are filled"],
  [44, [0, 0, 0, 4], "its schema format"],
  [48, [0, 0, 0, 0, 0, 0, 0, 0], "its cache size or its kind of pages"],
  [56, [0, 0, 0, 1], "its text encoding"],
  [64, [0, 0, 0, 0], "its kind of pages"],
]

/** Zero until the log of a new file was brought into it, and harmless then. */
const SET_LATER = 44

/**
 * Says which of the file's first bytes are damaged; undefined where none is, or there is nothing in it yet. SQLite believes them:
 * it would read text in another encoding, or cut the file to a length that was never its own.
 */
export function damagedHead(path: string): string | undefined {
  const head = readHead(path)
  if (!head) return undefined
  const isZero = (at: number, length: number) => head.bytes.subarray(at, at + length).every((byte) => byte === 0)
  const wrong = FIXED.find(
    ([at, bytes]) =>
      bytes.some((byte, i) => head.bytes[at + i] !== byte) && !(at >= SET_LATER && isZero(at, bytes.length)),
  )
  if (wrong) return wrong[2]
  const [writes, reads] = [head.bytes[18]!, head.bytes[19]!]
  if (writes !== reads || writes < 1 || writes > 2) return "its journal mode"
  // Somebody may be at work between two looks; damage stays as it is.
  return hasWrongLength(path, head) && hasWrongLength(path, readHead(path)) ? "its length" : undefined
}

type Head = { bytes: Buffer; size: number }

function readHead(path: string): Head | undefined {
  let file: number
  try {
    file = openSync(path, "r")
  } catch {
    return undefined // whoever opens it says why
  }
  try {
    const bytes = Buffer.alloc(HEAD_BYTES)
    const read = readSync(file, bytes, 0, HEAD_BYTES, 0)
    return read < HEAD_BYTES ? undefined : { bytes, size: fstatSync(file).size }
  } finally {
    closeSync(file)
  }
}

/** The number of pages counts where it was written with the last change, and no log has a later one. */
function hasWrongLength(path: string, head: Head | undefined): boolean {
  if (!head || (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) return false
  const { bytes, size } = head
  return bytes.readUInt32BE(24) === bytes.readUInt32BE(92) && bytes.readUInt32BE(28) * bytes.readUInt16BE(16) !== size
}
