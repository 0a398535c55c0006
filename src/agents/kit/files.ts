import { createHash } from "node:crypto"
import { type Dirent, lstatSync, readdirSync, type Stats, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { crc32 } from "node:zlib"
import { messageOf } from "../../core/error.ts"
import { isAbsent } from "../../core/look-at.ts"
import { readBytes, readText } from "../../core/read-file.ts"
import { isDeeperThan, MAX_DEPTH, parseObject, type RawRecord, string } from "../../core/record.ts"
import type { Cursor, Reading, Unit, Unreadable } from "./connector.ts"
import { isSettled, type JsonlOptions, readJsonl } from "./jsonl.ts"

export type Report = (problem: Unreadable) => void

/** Yields the units that a search through folders found, then the problems that occurred. */
export function* withProblems<T extends Unit>(
  search: (report: Report) => Iterable<T | Unreadable>,
): Generator<T | Unreadable> {
  const problems: Unreadable[] = []
  yield* search((problem) => void problems.push(problem))
  yield* problems
}

/** Returns the entries of a folder, sorted by name. A missing folder is empty; an unreadable one is reported. */
export function entriesOf(dir: string, report: Report): Dirent[] {
  try {
    return readdirSync(dir, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  } catch (error) {
    if (!isAbsent(error)) report({ unreadable: messageOf(error), path: dir })
    return []
  }
}

/**
 * Returns the stats of the regular file at a path. Returns undefined if there is none. A file that cannot be accessed, and
 * anything that is not a regular file, is reported.
 */
export function fileAt(path: string, report: Report): Stats | undefined {
  try {
    const stat = lstatSync(path)
    if (stat.isFile()) return stat
    report({ unreadable: stat.isSymbolicLink() ? "a symbolic link, not followed" : "not a regular file", path })
  } catch (error) {
    if (!isAbsent(error)) report({ unreadable: messageOf(error), path })
  }
  return undefined
}

export function subfolders(folder: string, report: Report): string[] {
  return entriesOf(folder, report).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
}

/** Returns a unit for the file at a path, or undefined if there is none. */
export function unitAt(path: string, key: string, report: Report): Unit | undefined {
  const stat = fileAt(path, report)
  return stat && unitOfFile(path, key, stat)
}

/**
 * Finds the files whose path relative to `root` matches `pattern`, in the folder and in `depth` levels of subfolders. The
 * relative path is the unit's key. `prefix` is the relative path of the subfolder that is searched.
 */
export function* unitsBelow(
  root: string,
  pattern: RegExp,
  depth: number,
  report: Report,
  prefix = "",
): Generator<Unit> {
  for (const entry of entriesOf(join(root, prefix), report)) {
    const name = `${prefix}${entry.name}`
    if (entry.isDirectory() && depth > 0) yield* unitsBelow(root, pattern, depth - 1, report, `${name}/`)
    else if (pattern.test(name)) {
      const unit = unitAt(join(root, name), name, report)
      if (unit) yield unit
    }
  }
}

/** Reads a small file next to the sessions. Returns undefined if there is none; a file that cannot be read is reported. */
export function textAt(path: string, maxBytes: number, report: Report): string | undefined {
  try {
    return readText(path, maxBytes)
  } catch (error) {
    if (!isAbsent(error)) report({ unreadable: messageOf(error), path })
    return undefined
  }
}

/** Reads a JSON file next to the sessions. Returns undefined if there is none, or if it is not an object. */
export function objectAt(path: string, maxBytes: number, report: Report): RawRecord | undefined {
  return parseObject(textAt(path, maxBytes, report) ?? "")
}

/** Builds a unit for one file. Its stamp consists of the file's size and time. */
export function unitOfFile(path: string, key: string, stat: Stats): Unit {
  return {
    key,
    path,
    stamp: `${stat.size}:${stat.mtimeMs}`,
    bytes: stat.size,
    modifiedAt: stat.mtimeMs,
    bornAt: stat.birthtimeMs || stat.mtimeMs,
  }
}

/** A transcript with facts that its agent stores elsewhere: a name, a parent, a folder. `facts` has a `type` that dex defines. */
export type UnitWithFacts = Unit & { facts?: RawRecord }

/** Adds facts to a unit. If they change, the unit is also read again. */
export function unitWithFacts(unit: Unit, facts: RawRecord | undefined): UnitWithFacts {
  return facts ? { ...unit, facts, stamp: `${unit.stamp}:${fingerprint(facts)}` } : unit
}

/** Puts the facts before the records, unless the cursor shows that they were already read. */
export function prependFacts(reading: Reading, { facts }: UnitWithFacts, after?: Cursor): Reading {
  const storedFingerprint = reading.mode === "append" ? string(after?.facts) : undefined
  const currentFingerprint = facts ? fingerprint(facts) : storedFingerprint
  function* records(): Generator<RawRecord> {
    if (facts && currentFingerprint !== storedFingerprint) yield facts
    yield* reading.records
  }
  return {
    mode: reading.mode,
    records: records(),
    end: () => {
      const result = reading.end()
      return currentFingerprint === undefined
        ? result
        : { ...result, cursor: { ...result.cursor, facts: currentFingerprint } }
    },
  }
}

/** Returns a function that reads a file of JSON lines, preceded by the unit's facts if it has any. */
export function readLines(strip?: JsonlOptions["strip"]): (unit: UnitWithFacts, after?: Cursor) => Reading {
  return (unit, after) => prependFacts(readJsonl(unit.path, after, { strip }), unit, after)
}

function fingerprint(facts: RawRecord): string {
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 16)
}

/**
 * The size of the largest file that dex reads, in bytes. It is limited because the complete file must be in memory. A larger one
 * is counted as skipped.
 */
const MAX_FILE_BYTES = 256 << 20

/**
 * Reads a transcript that its agent rewrites completely at each change. Returns all of its records, or none if the file is
 * unchanged, damaged, too large or still being written.
 */
export function readJsonFile(
  path: string,
  after: Cursor | undefined,
  recordsOf: (file: RawRecord) => Iterable<RawRecord>,
  now = Date.now(),
): Reading {
  const { size, mtimeMs } = statSync(path)
  const startCursor = after ?? { offset: 0, crc: 0 }
  if (size > MAX_FILE_BYTES)
    return emptyReading(startCursor, `file of ${size} bytes, over the limit of ${MAX_FILE_BYTES}`)
  const content = readBytes(path, MAX_FILE_BYTES)
  const cursor = { offset: content.length, crc: crc32(content) }
  if (after && after.offset === cursor.offset && after.crc === cursor.crc) return emptyReading(after)
  const parsed = parseObject(content.toString("utf8").replace(/^\uFEFF/, ""))
  if (!parsed) {
    if (isSettled(mtimeMs, now)) return emptyReading(cursor, "not a complete JSON object")
    return { ...emptyReading(startCursor), end: () => pendingEnd(startCursor) } // the agent may still be writing it
  }
  if (isDeeperThan(parsed, MAX_DEPTH)) return emptyReading(cursor, `nested deeper than ${MAX_DEPTH} levels`)
  return { mode: "replace", records: recordsOf(parsed), end: () => ({ cursor, skipped: [], pending: false }) }
}

function emptyReading(cursor: Cursor, reason?: string): Reading {
  const skipped = reason === undefined ? [] : [{ reason, where: "the file" }]
  return { mode: "append", records: [], end: () => ({ cursor, skipped, pending: false }) }
}

function pendingEnd(cursor: Cursor) {
  return { cursor, skipped: [], pending: true }
}

const MAX_WORKSPACE_BYTES = 1 << 20

/** Returns the project folder to which a folder of `workspaceStorage` belongs, or undefined for a window without a project. */
export function workspaceFolder(dir: string, report: Report): string | undefined {
  const workspace = parseObject(textAt(join(dir, "workspace.json"), MAX_WORKSPACE_BYTES, report) ?? "")
  return folderOfWorkspace(string(workspace?.folder), string(workspace?.workspace))
}

/** Returns the path of a `file:` URI, and any other URI unchanged, so that a remote folder is not mistaken for a local one. */
function folderOfUri(uri: string): string {
  if (!uri.startsWith("file:")) return uri
  try {
    return fileURLToPath(uri)
  } catch {
    return uri // a URI from another platform cannot be converted
  }
}

/** Returns `folder`, or the folder that contains the file `workspace`, which lists several folders. Both may be `file:` URIs. */
export function folderOfWorkspace(folder: string | undefined, workspace: string | undefined): string | undefined {
  if (folder !== undefined) return folderOfUri(folder)
  return workspace === undefined ? undefined : dirname(folderOfUri(workspace))
}
