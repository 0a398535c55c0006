import { existsSync, linkSync, readdirSync, renameSync, rmSync, statSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { copyPrivately } from "../../core/copy-file.ts"
import { isoDate } from "../../core/dates.ts"
import { removeDatabase } from "../sqlite/database.ts"

// `dex backup --restore --replace` keeps the previous history under a name with the date: history-until-2026-11-03.db.

/** The path at which a new history is prepared before it replaces the current one. */
export function preparedHistoryPath(history: string): string {
  return `${history}.restored`
}

/**
 * Replaces the current history, if any, with the prepared one, and returns the path at which the old one is kept. Neither may be
 * open. A complete history exists at every instant: the old one first gets a second name, then the new one replaces it in one
 * step. Only a damaged history still has a write-ahead log, which is renamed with it.
 */
export function replaceHistory(history: string, now: number): string | undefined {
  const preparedPath = preparedHistoryPath(history)
  if (!existsSync(history)) {
    renameSync(preparedPath, history)
    return undefined
  }
  const oldPath = freeName(history, now)
  giveSecondName(history, oldPath)
  renameSync(preparedPath, history)
  return oldPath
}

/** Returns the histories that earlier restores replaced, sorted by name. */
export function replacedHistories(history: string): string[] {
  const folder = dirname(history)
  if (!existsSync(folder)) return []
  const pattern = new RegExp(`^${basename(history, ".db")}-until-\\d{4}-\\d{2}-\\d{2}(-\\d+)?\\.db$`)
  return readdirSync(folder)
    .filter((name) => pattern.test(name))
    .sort()
    .map((name) => join(folder, name))
}

/**
 * Removes the files of an interrupted restore. The caller must have sync.lock. If the current history was given a second name but
 * was not replaced, that name is removed too: opening a database under two names would damage it.
 */
export function cleanUpRestore(history: string): void {
  removeDatabase(preparedHistoryPath(history))
  for (const replaced of replacedHistories(history)) if (isSameFile(history, replaced)) removeDatabase(replaced)
  for (const name of filesBeginningWith(history, `${basename(history, ".db")}-until-`))
    if (name.endsWith(PARTIAL_SUFFIX)) rmSync(name, { force: true })
}

const PARTIAL_SUFFIX = ".partial"

function filesBeginningWith(history: string, start: string): string[] {
  const folder = dirname(history)
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => name.startsWith(start))
    .map((name) => join(folder, name))
}

function freeName(history: string, now: number): string {
  const start = `${history.replace(/\.db$/, "")}-until-${isoDate(now).slice(0, 10)}`
  for (let n = 1; ; n++) {
    const name = `${start}${n === 1 ? "" : `-${n}`}.db`
    if (!existsSync(name)) return name
  }
}

/** Gives a database a second name and moves its write-ahead log there, so that another database can take the first name. */
export function giveSecondName(database: string, name: string): void {
  for (const suffix of ["", "-wal"]) if (existsSync(database + suffix)) linkOrCopy(database + suffix, name + suffix)
  for (const suffix of ["-wal", "-shm"]) rmSync(database + suffix, { force: true })
}

/** Links a file, or copies it on a disk without hard links. */
function linkOrCopy(file: string, name: string): void {
  try {
    linkSync(file, name)
  } catch {
    copyPrivately(file, name + PARTIAL_SUFFIX, { toDisk: true })
    renameSync(name + PARTIAL_SUFFIX, name)
  }
}

export function isSameFile(a: string, b: string): boolean {
  const [first, second] = [a, b].map((path) => statSync(path, { bigint: true, throwIfNoEntry: false }))
  return first !== undefined && second !== undefined && first.ino === second.ino && first.dev === second.dev
}
