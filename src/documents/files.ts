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
 * Lists the documents below a root, ordered by path. The root may be a symbolic link or a single file. Links below the root are
 * not followed, and hidden folders and `node_modules` are not entered. Everything that is skipped is reported, except files
 * that are not documents.
 */
export async function listDocuments(
  root: string,
  options: { limit?: number; signal?: AbortSignal } = {},
): Promise<{ files: DocumentFile[]; skipped: SkippedFile[] }> {
  const { folder, fileName } = await resolveRoot(root)
  const limit = options.limit ?? MAX_FILES
  const files: DocumentFile[] = []
  const skipped: SkippedFile[] = []
  const folders = [""]
  for (let subfolder = folders.pop(); subfolder !== undefined; subfolder = folders.pop()) {
    options.signal?.throwIfAborted()
    const entries = fileName === undefined ? await entriesOf(folder, subfolder, skipped) : [fileName]
    const subfolders: string[] = []
    for (const name of entries) {
      const path = subfolder ? `${subfolder}/${name}` : name
      const stats = await lstat(join(folder, path)).catch(() => undefined)
      if (!stats) skipped.push({ path, reason: "cannot be read" })
      else if (stats.isDirectory()) {
        const reason = whyNotEntered(name, path)
        if (reason) skipped.push({ path, reason })
        else subfolders.push(path)
      } else if (stats.isSymbolicLink()) {
        if (formatOf(name) || (await isFolder(join(folder, path)))) skipped.push({ path, reason: "a symbolic link" })
      } else if (formatOf(name)) {
        const reason = whyNotRead(stats)
        if (reason) skipped.push({ path, reason })
        else files.push({ path, size: stats.size, modified_at: Math.trunc(stats.mtimeMs) })
      }
    }
    if (files.length > limit) break
    folders.push(...subfolders.reverse())
  }
  files.sort(byPath)
  if (files.length > limit) {
    files.length = limit
    skipped.push({ path: "", reason: `more than ${limit} documents: the rest was not listed` })
  }
  return { files, skipped: skipped.sort(byPath) }
}

/**
 * Reads a document that `listDocuments` returned. The document must be a regular file below the root, reached without following
 * a link, and dex checks that it opened exactly this file. dex cannot distinguish a hard link from the original. Only Linux
 * reports the path of an open file. On other systems, dex does not notice a folder that is replaced by a link and restored at
 * exactly the right moments, five times in a row.
 */
export async function readDocument(root: string, path: string): Promise<string> {
  const { folder, fileName } = await resolveRoot(root)
  const names = path.split("/")
  if (path.includes("\0") || names.some((name) => name === "" || name === "." || name === ".." || name.includes(sep)))
    throw refusalError(path, "it is not a path below the collection's folder")
  if (!formatOf(path)) throw refusalError(path, "it is not a document")
  if (fileName !== undefined && path !== fileName)
    throw refusalError(path, `the collection is the single file ${fileName}`)
  if (names.slice(0, -1).some((name) => whyNotEntered(name, "")))
    throw refusalError(path, "it is in a folder that is skipped")
  const file = join(folder, ...names)
  const stats = await lstat(file).catch(() => undefined)
  if (!stats) throw refusalError(path, "it is gone or cannot be read")
  const reason = whyNotRead(stats)
  if (reason) throw refusalError(path, `it is ${reason}`)
  const identity = fileIdentityOf(file)
  if (identity?.folder !== dirname(file)) throw refusalError(path, REPLACED_REASON)
  const handle = openDocument(file, path)
  try {
    if (!isSameOpenFile(handle.fd, file, identity)) throw refusalError(path, REPLACED_REASON)
    return decode(readOpened(handle, MAX_DOCUMENT_BYTES), path)
  } catch (error) {
    throw error instanceof RefusedFile ? refusalError(path, `it is ${error.message}`, error) : error
  } finally {
    closeSync(handle.fd)
  }
}

function openDocument(file: string, path: string): OpenedFile {
  try {
    return openFile(file, { follow: false, maxBytes: MAX_DOCUMENT_BYTES })
  } catch (error) {
    throw refusalError(path, error instanceof RefusedFile ? `it is ${error.message}` : "it cannot be opened", error)
  }
}

/** Returns the real path of a root folder, or the folder and the name if the root is a file. */
async function resolveRoot(root: string): Promise<{ folder: string; fileName?: string }> {
  const resolvedPath = await realpath(root).catch((error: unknown) => {
    const message = `${root} cannot be read. Is it still there? \`dex docs list\` shows all collections.`
    throw new DexError("no_such_folder", message, { cause: error })
  })
  const stats = await stat(resolvedPath)
  if (stats.isDirectory()) return { folder: resolvedPath }
  if (stats.isFile()) return { folder: dirname(resolvedPath), fileName: basename(resolvedPath) }
  throw new DexError(
    "not_a_folder",
    `${root} is neither a folder nor a file. Name a folder that contains documents, or a single document.`,
  )
}

async function entriesOf(folder: string, subfolder: string, skipped: SkippedFile[]): Promise<string[]> {
  const path = join(folder, ...subfolder.split("/"))
  try {
    const names = await readdir(path)
    // If the folder was replaced by a link after it was found, do not return the names of the files that the link leads to.
    if ((await realpath(path)) === path) return names.sort()
    skipped.push({ path: subfolder, reason: "a symbolic link" })
  } catch {
    skipped.push({ path: subfolder, reason: "a folder that cannot be read" })
  }
  return []
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  )

function whyNotEntered(name: string, path: string): string | undefined {
  if (name === "node_modules") return "node_modules"
  if (name.startsWith(".")) return "a hidden folder"
  return path.split("/").length > MAX_DEPTH ? `more than ${MAX_DEPTH} folders deep` : undefined
}

function whyNotRead(stats: { isFile(): boolean; isSymbolicLink(): boolean; size: number }): string | undefined {
  if (stats.isSymbolicLink()) return "a symbolic link"
  if (!stats.isFile()) return "not a regular file"
  return stats.size > MAX_DOCUMENT_BYTES ? `larger than ${MAX_DOCUMENT_BYTES} bytes` : undefined
}

const REPLACED_REASON = "it is reached through a symbolic link, or was replaced while it was read"

/** Decodes UTF-8, or UTF-16 if there is a byte order mark for it. */
function decode(bytes: Buffer, path: string): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le").decode(bytes)
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder("utf-16be").decode(bytes)
  if (bytes.subarray(0, 8_000).includes(0)) throw refusalError(path, "it is a binary file")
  return bytes.toString("utf8")
}

function refusalError(path: string, reason: string, cause?: unknown): DexError {
  return new DexError("document_refused", `dex does not read ${path}, because ${reason}.`, { cause })
}

function byPath(a: { path: string }, b: { path: string }): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0
}

/** The device and inode of a file, and the real path of its folder. */
type FileIdentity = { folder: string; dev: bigint; ino: bigint }

/** Returns undefined if there is no regular file, or if its folder is being replaced. */
export function fileIdentityOf(file: string): FileIdentity | undefined {
  try {
    const folder = realpathSync.native(dirname(file))
    const stats = lstatSync(file, { bigint: true })
    if (!stats.isFile() || realpathSync.native(dirname(file)) !== folder) return undefined
    return { folder, dev: stats.dev, ino: stats.ino }
  } catch {
    return undefined // the file is gone or cannot be read
  }
}

/**
 * The number of additional checks. To escape notice, somebody who replaces a folder would have to restore it before each check
 * and replace it again afterwards.
 */
const CHECKS = 4

/**
 * Returns true if the open file was at this path before it was opened and is still there. Linux reports the path of an open
 * file. On other systems, the path is checked several times.
 */
export function isSameOpenFile(fd: number, file: string, expected: FileIdentity, findPath = pathOfOpenFile): boolean {
  const openStats = fstatSync(fd, { bigint: true })
  const openPath = findPath(fd)
  if (openPath !== undefined)
    return openPath === join(expected.folder, basename(file)) && isSameFile(fileIdentityOf(file), openStats)
  const identities = [expected, ...Array.from({ length: CHECKS }, () => fileIdentityOf(file))]
  return identities.every((identity) => identity?.folder === expected.folder && isSameFile(identity, openStats))
}

function isSameFile(identity: FileIdentity | undefined, openStats: { dev: bigint; ino: bigint }): boolean {
  return identity?.dev === openStats.dev && identity.ino === openStats.ino
}

function pathOfOpenFile(fd: number): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return undefined // only Linux has /proc/self/fd
  }
}
