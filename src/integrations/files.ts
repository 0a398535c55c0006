import { createHash } from "node:crypto"
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { basename, dirname, join } from "node:path"
import { messageOf } from "../core/error.ts"
import { RefusedFile, readBytes } from "../core/read-file.ts"
import { EditProblem } from "./edit.ts"

/** The maximum size of a file, in bytes. Claude Code's settings contain a history and grow to several megabytes. */
const MAX_BYTES = 64 << 20

/** The text of a file, or undefined if there is none. Throws an EditProblem for a file that dex must not touch. */
export function readEditable(path: string): string | undefined {
  const target = resolveLinks(path)
  if (!existsSync(target)) return undefined
  const bytes = withProblem("cannot be read", () => readBytes(target, MAX_BYTES))
  const text = bytes.toString("utf8")
  if (!Buffer.from(text, "utf8").equals(bytes)) throw new EditProblem("is not UTF-8 text")
  return text
}

/** Throws an EditProblem if a write would fail, or if the file's owner made it read-only. */
export function expectWritable(path: string): void {
  const target = resolveLinks(path)
  const existing = [target, ...ancestors(target)].find((candidate) => existsSync(candidate))!
  if (existing === target && (statSync(target).mode & 0o200) === 0)
    throw new EditProblem("is read-only. Make it writable (chmod u+w) and run this again")
  const folder = existing === target ? dirname(target) : existing
  for (const requiredPath of [existing, folder]) {
    try {
      accessSync(requiredPath, constants.W_OK)
    } catch {
      throw new EditProblem(
        requiredPath === target
          ? "belongs to another user or is protected. Make it writable, then run this again"
          : `cannot be written: ${requiredPath} is read-only`,
      )
    }
  }
}

/** The missing folders of a file, which writing it will create, outermost first. */
export function foldersToMake(path: string): string[] {
  return withProblem("cannot be written", () =>
    ancestors(resolveLinks(path))
      .filter((folder) => !existsSync(folder))
      .reverse(),
  )
}

/** Writes all of the text or nothing. A link stays a link, and a file keeps its mode. */
export function writeText(path: string, text: string, executable = false): void {
  withProblem("cannot be written", () => {
    const target = resolveLinks(path)
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 })
    const mode = existsSync(target) ? statSync(target).mode & 0o777 : executable ? 0o755 : 0o600
    const temporary = `${target}.${process.pid}.dex-new`
    try {
      const fd = openSync(temporary, "wx", mode)
      try {
        // On a full disk, writeSync may write only a part, and reports that only in its return value.
        writeFileSync(fd, text)
        fsyncSync(fd)
      } finally {
        closeSync(fd)
      }
      chmodSync(temporary, mode)
      renameSync(temporary, target)
    } finally {
      rmSync(temporary, { force: true })
    }
  })
}

/** Removes a file, and then the folders that contained only this file. `folders` begins with the outermost one. */
export function removeFile(path: string, folders: readonly string[]): void {
  withProblem("cannot be removed", () => {
    rmSync(path, { force: true })
    for (const folder of folders.toReversed()) {
      if (!existsSync(folder) || readdirSync(folder).length > 0) return
      rmdirSync(folder)
    }
  })
}

/** Makes a copy that only its owner can read, because settings may contain keys. Returns its path. */
export function saveBackup(folder: string, file: { agent: string; path: string }, text: string, now: number): string {
  const stamp = new Date(now).toISOString().replaceAll(/[:.]/g, "-")
  const backup = join(folder, `${file.agent}-${basename(file.path)}.${stamp}`)
  withProblem("cannot be backed up", () => {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    try {
      writeFileSync(backup, text, { mode: 0o600 })
    } catch (error) {
      rmSync(backup, { force: true }) // remove a partial copy
      throw error
    }
  })
  return backup
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex")
}

/** Resolves links, because people keep settings files in one folder and link to them. Throws an EditProblem for a broken link. */
function resolveLinks(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink())
      throw new EditProblem("is a broken link. Remove or repair it, then run this again")
    return path
  }
}

function ancestors(path: string): string[] {
  const parent = dirname(path)
  return parent === path ? [] : [parent, ...ancestors(parent)]
}

function withProblem<T>(problem: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof EditProblem) throw error
    if (error instanceof RefusedFile) throw new EditProblem(`is ${error.message}`)
    throw new EditProblem(`${problem} (${messageOf(error)})`, { cause: error })
  }
}
