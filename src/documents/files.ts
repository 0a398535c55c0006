import { closeSync, fstatSync, lstatSync, readlinkSync, realpathSync } from "node:fs"
import { lstat, readdir, realpath, stat } from "node:fs/promises"
import { basename, dirname, join, sep } from "node:path"
import { DexError } from "../core/error.ts"
import { type OpenedFile, openFile, RefusedFile, readOpened } from "../core/read-file.ts"
import { formatOf, MAX_DOCUMENT_BYTES } from "./document.ts"

/** `path` is relative to the root, with forward slashes. */
export type DocumentFile = { path: string; size: number; modified_at: number }
type SkippedFile = { path: string; reason: string }

const MAX_FILES = 50_000
const MAX_DEPTH = 64

/**
 * Lists the documents below a root, ordered by path. The root may be a link or a single file; links below it are not followed.
 * Hidden folders and `node_modules` are skipped. Everything skipped is reported, except files of other kinds.
 */
export async function listDocuments(
  root: string,
  options: { limit?: number; signal?: AbortSignal } = {},
): Promise<{ files: DocumentFile[]; skipped: SkippedFile[] }> {
  const { folder, only } = await openRoot(root)
  const limit = options.limit ?? MAX_FILES
  const files: DocumentFile[] = []
  const skipped: SkippedFile[] = []
  const folders = [""]
  for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
    options.signal?.throwIfAborted()
    const entries = only === undefined ? await entriesOf(folder, at, skipped) : [only]
    const inner: string[] = []
    for (const name of entries) {
      const path = at ? `${at}/${name}` : name
      const found = await lstat(join(folder, path)).catch(() => undefined)
      if (!found) skipped.push({ path, reason: "cannot be read" })
      else if (found.isDirectory()) {
        const reason = whyNotEntered(name, path)
        if (reason) skipped.push({ path, reason })
        else inner.push(path)
      } else if (found.isSymbolicLink()) {
        if (formatOf(name) || (await isFolder(join(folder, path)))) skipped.push({ path, reason: "a symbolic link" })
      } else if (formatOf(name)) {
        const reason = whyNotRead(found)
        if (reason) skipped.push({ path, reason })
        else files.push({ path, size: found.size, modified_at: Math.trunc(found.mtimeMs) })
      }
    }
    if (files.length > limit) break
    folders.push(...inner.reverse())
  }
  files.sort(byPath)
  if (files.length > limit) {
    files.length = limit
    skipped.push({ path: "", reason: `more than ${limit} documents: the rest was not listed` })
  }
  return { files, skipped: skipped.sort(byPath) }
}

/**
 * Reads a document that `listDocuments` returned. It must be a regular file below the root that no link leads to, and the opened
 * file is checked to be that one. A hard link cannot be distinguished from its original. If the system does not report the path
 * of an open file (all but Linux), dex does not notice a folder that is replaced by a link and restored at exactly the right
 * moments, five times.
 */
export async function readDocument(root: string, path: string): Promise<string> {
  const { folder, only } = await openRoot(root)
  const names = path.split("/")
  if (path.includes("\0") || names.some((name) => name === "" || name === "." || name === ".." || name.includes(sep)))
    throw refused(path, "it is not a path below the collection's folder")
  if (!formatOf(path)) throw refused(path, "it is not a document")
  if (only !== undefined && path !== only) throw refused(path, `the collection is the single file ${only}`)
  if (names.slice(0, -1).some((name) => whyNotEntered(name, "")))
    throw refused(path, "it is in a folder that is skipped")
  const file = join(folder, ...names)
  const before = await lstat(file).catch(() => undefined)
  if (!before) throw refused(path, "it is gone or cannot be read")
  const reason = whyNotRead(before)
  if (reason) throw refused(path, reason)
  const place = fileIdentityOf(file)
  if (place?.folder !== dirname(file)) throw refused(path, EXCHANGED)
  const opened = opening(file, path)
  try {
    if (!isSameOpenFile(opened.fd, file, place)) throw refused(path, EXCHANGED)
    return decode(readOpened(opened, MAX_DOCUMENT_BYTES), path)
  } catch (error) {
    throw error instanceof RefusedFile ? refused(path, error.message, error) : error
  } finally {
    closeSync(opened.fd)
  }
}

function opening(file: string, path: string): OpenedFile {
  try {
    return openFile(file, { follow: false, maxBytes: MAX_DOCUMENT_BYTES })
  } catch (error) {
    throw refused(path, error instanceof RefusedFile ? error.message : "it cannot be opened", error)
  }
}

/** The real path of a root folder, or the folder and name if the root is a file. */
async function openRoot(root: string): Promise<{ folder: string; only?: string }> {
  const real = await realpath(root).catch((error: unknown) => {
    throw new DexError("no_such_folder", `${root} cannot be read. Is it still there? \`dex docs list\` shows all.`, {
      cause: error,
    })
  })
  const found = await stat(real)
  if (found.isDirectory()) return { folder: real }
  if (found.isFile()) return { folder: dirname(real), only: basename(real) }
  throw new DexError("not_a_folder", `${root} is neither a folder nor a file. Name one that contains documents.`)
}

async function entriesOf(folder: string, at: string, skipped: SkippedFile[]): Promise<string[]> {
  const full = join(folder, ...at.split("/"))
  try {
    const names = await readdir(full)
    // No file is read here. But if the folder has become a link, not even its names are returned.
    if ((await realpath(full)) === full) return names.sort()
    skipped.push({ path: at, reason: "a symbolic link" })
  } catch {
    skipped.push({ path: at, reason: "a folder that cannot be read" })
  }
  return []
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )

function whyNotEntered(name: string, path: string): string | undefined {
  if (name === "node_modules") return "node_modules"
  if (name.startsWith(".")) return "a hidden folder"
  return path.split("/").length > MAX_DEPTH ? `more than ${MAX_DEPTH} folders deep` : undefined
}

function whyNotRead(found: { isFile(): boolean; isSymbolicLink(): boolean; size: number }): string | undefined {
  if (found.isSymbolicLink()) return "a symbolic link"
  if (!found.isFile()) return "not a regular file"
  return found.size > MAX_DOCUMENT_BYTES ? `larger than ${MAX_DOCUMENT_BYTES} bytes` : undefined
}

const EXCHANGED = "it is reached through a symbolic link, or was replaced while it was read"

/** Decodes UTF-8, or UTF-16 if there is a byte order mark for it. */
function decode(bytes: Buffer, path: string): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le").decode(bytes)
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder("utf-16be").decode(bytes)
  if (bytes.subarray(0, 8_000).includes(0)) throw refused(path, "a binary file")
  return bytes.toString("utf8")
}

function refused(path: string, reason: string, cause?: unknown): DexError {
  return new DexError("document_refused", `${path} is not read: ${reason}.`, { cause })
}

function byPath(a: { path: string }, b: { path: string }): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0
}

/** The identity of a file, and its real folder. */
type FilePlace = { folder: string; dev: bigint; ino: bigint }

/** Returns undefined if there is no regular file, or if its folder is being replaced. */
export function fileIdentityOf(file: string): FilePlace | undefined {
  try {
    const folder = realpathSync.native(dirname(file))
    const found = lstatSync(file, { bigint: true })
    if (!found.isFile() || realpathSync.native(dirname(file)) !== folder) return undefined
    return { folder, dev: found.dev, ino: found.ino }
  } catch {
    return undefined // gone or not readable
  }
}

/**
 * The number of checks. To go unnoticed, a folder must be replaced and restored once more for each, between two consecutive
 * calls.
 */
const LOOKS = 4

/**
 * Whether the open file is the one that was at this path before it was opened, and still is. Linux reports the path of an open
 * file; on other systems the path is checked several times.
 */
export function isSameOpenFile(fd: number, file: string, before: FilePlace, openName = nameOfOpen): boolean {
  const opened = fstatSync(fd, { bigint: true })
  const named = openName(fd)
  if (named !== undefined) return named === join(before.folder, basename(file)) && isSame(fileIdentityOf(file), opened)
  const looks = [before, ...Array.from({ length: LOOKS }, () => fileIdentityOf(file))]
  return looks.every((look) => look?.folder === before.folder && isSame(look, opened))
}

function isSame(place: FilePlace | undefined, opened: { dev: bigint; ino: bigint }): boolean {
  return place?.dev === opened.dev && place.ino === opened.ino
}

function nameOfOpen(fd: number): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return undefined // only Linux has this
  }
}
