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

/** The most bytes of a file. Claude Code's settings contain a history and grow to several megabytes. */
const MAX_BYTES = 64 << 20

/** The text of a file, or undefined if there is none. Throws an EditProblem for a file that dex must not touch. */
export function readEditable(path: string): string | undefined {
  const real = realPath(path)
  if (!existsSync(real)) return undefined
  const bytes = attempt("cannot be read", () => readBytes(real, MAX_BYTES))
  const text = bytes.toString("utf8")
  if (!Buffer.from(text, "utf8").equals(bytes)) throw new EditProblem("is not UTF-8 text")
  return text
}

/** Throws an EditProblem if a write would fail or is not wanted: a file that its owner made read-only stays that way. */
export function expectWritable(path: string): void {
  const real = realPath(path)
  const existing = [real, ...ancestors(real)].find((candidate) => existsSync(candidate))!
  if (existing === real && (statSync(real).mode & 0o200) === 0)
    throw new EditProblem("is read-only. Make it writable (chmod u+w) and run this again")
  const folder = existing === real ? dirname(real) : existing
  for (const needed of [existing, folder]) {
    try {
      accessSync(needed, constants.W_OK)
    } catch {
      throw new EditProblem(needed === real ? "is not writable for you" : `cannot be written: ${needed} is read-only`)
    }
  }
}

/** The folders that writing a file will create, outermost first. */
export function foldersToMake(path: string): string[] {
  return attempt("cannot be written", () =>
    ancestors(realPath(path))
      .filter((folder) => !existsSync(folder))
      .reverse(),
  )
}

/** Writes all of the text or nothing. A link stays a link, and a file keeps its mode. */
export function writeText(path: string, text: string, executable = false): void {
  attempt("cannot be written", () => {
    const real = realPath(path)
    mkdirSync(dirname(real), { recursive: true, mode: 0o700 })
    const mode = existsSync(real) ? statSync(real).mode & 0o777 : executable ? 0o755 : 0o600
    const temporary = `${real}.${process.pid}.dex-new`
    try {
      const fd = openSync(temporary, "wx", mode)
      try {
        // writeSync would write only a part on a full disk, and report that only in its return value.
        writeFileSync(fd, text)
        fsyncSync(fd)
      } finally {
        closeSync(fd)
      }
      chmodSync(temporary, mode)
      renameSync(temporary, real)
    } finally {
      rmSync(temporary, { force: true })
    }
  })
}

/** Removes a file and then, innermost first, those of the folders that are now empty. */
export function removeFile(path: string, folders: readonly string[]): void {
  attempt("cannot be removed", () => {
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
  attempt("cannot be backed up", () => {
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

/** The path with links resolved: people keep such files in one folder and link to them. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) throw new EditProblem("is a broken link")
    return path
  }
}

function ancestors(path: string): string[] {
  const parent = dirname(path)
  return parent === path ? [] : [parent, ...ancestors(parent)]
}

function attempt<T>(what: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof EditProblem) throw error
    if (error instanceof RefusedFile) throw new EditProblem(`is ${error.message}`)
    throw new EditProblem(`${what} (${messageOf(error)})`, { cause: error })
  }
}
