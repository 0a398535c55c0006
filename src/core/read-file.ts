import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs"

// dex uses this module to read every file that it does not control itself. Such a file may be a pipe to which nobody writes, an
// endless device, or a terabyte of data.

export type OpenedFile = { fd: number; stat: Stats }
export type OpenFileOptions = {
  /** If false, refuses a path whose last segment is a link. */
  follow?: boolean
  /** The size limit in bytes. Larger files are refused. */
  maxBytes?: number
}

/**
 * Thrown if dex refuses to read a file. The message is the reason, phrased so that it fits into a sentence: "not a regular file".
 */
export class RefusedFile extends Error {}

/** Opens a regular file without blocking; the caller closes it. Throws a RefusedFile or the system's error. */
export function openFile(path: string, { follow = true, maxBytes = Infinity }: OpenFileOptions = {}): OpenedFile {
  const fd = open(path, follow ? READ_FLAGS : READ_FLAGS | (constants.O_NOFOLLOW ?? 0))
  try {
    const stat = fstatSync(fd)
    if (!stat.isFile()) throw new RefusedFile(NOT_REGULAR)
    if (stat.size > maxBytes) throw tooLargeError(maxBytes)
    return { fd, stat }
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

/** Reads a complete regular file. Throws like `openFile`, and throws a RefusedFile if it is larger than `maxBytes`. */
export function readBytes(path: string, maxBytes: number, options?: OpenFileOptions): Buffer {
  const file = openFile(path, options)
  try {
    return readOpened(file, maxBytes)
  } finally {
    closeSync(file.fd)
  }
}

export function readText(path: string, maxBytes: number, options?: OpenFileOptions): string {
  return readBytes(path, maxBytes, options).toString("utf8")
}

/** Reads the first bytes of a regular file of any size. */
export function readStart(path: string, bytes: number): Buffer {
  const { fd } = openFile(path)
  try {
    const buffer = Buffer.alloc(bytes)
    return buffer.subarray(0, fill(fd, buffer))
  } finally {
    closeSync(fd)
  }
}

/**
 * Reads a complete opened file. Does not rely on its size: it may have grown since it was opened, and some system files claim to
 * be empty.
 */
export function readOpened({ fd, stat }: OpenedFile, maxBytes: number): Buffer {
  if (stat.size > maxBytes) throw tooLargeError(maxBytes)
  let bytes = Buffer.allocUnsafe(stat.size + 1)
  for (let length = 0; ; ) {
    length += fill(fd, bytes.subarray(length))
    if (length > maxBytes) throw tooLargeError(maxBytes)
    if (length < bytes.length) return bytes.subarray(0, length)
    bytes = Buffer.concat([bytes], Math.min(2 * length, maxBytes) + 1)
  }
}

const NOT_REGULAR = "not a regular file"
const READ_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0)

function open(path: string, flags: number): number {
  try {
    return openSync(path, flags)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // The error codes for a socket, a device without a driver, and a folder.
    if (code === "ENXIO" || code === "ENODEV" || code === "EOPNOTSUPP" || code === "EISDIR")
      throw new RefusedFile(NOT_REGULAR, { cause: error })
    if (code === "ELOOP" && flags !== READ_FLAGS)
      throw new RefusedFile("a symbolic link, not followed", { cause: error })
    throw error
  }
}

/** Reads until the buffer is full or the file ends. Returns the number of bytes that were read. */
function fill(fd: number, buffer: Buffer): number {
  for (let length = 0; ; ) {
    const count = length < buffer.length ? readSync(fd, buffer, length, buffer.length - length, null) : 0
    if (count === 0) return length
    length += count
  }
}

function tooLargeError(maxBytes: number): RefusedFile {
  const [unitBytes, unit] = maxBytes < 1 << 10 ? [1, "bytes"] : maxBytes < 1 << 20 ? [1 << 10, "kB"] : [1 << 20, "MB"]
  return new RefusedFile(`larger than ${Math.floor(maxBytes / unitBytes)} ${unit}`)
}
