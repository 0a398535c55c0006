import { existsSync, linkSync, readdirSync, renameSync, rmSync, statSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { copyPrivately } from "../../core/copy-file.ts"
import { isoDate } from "../../core/dates.ts"
import { removeDatabase } from "../sqlite/database.ts"

// `dex backup --restore --replace` keeps the history that was there, under a name with the day: history-until-2026-11-03.db.

/** Where a history that is about to take another one's place is prepared. */
export function arrivingOf(history: string): string {
  return `${history}.restored`
}

/**
 * Puts a prepared history in the place of the one that is there, if any, and returns the new name of that one. Nobody has
 * either of them open. At every instant there is a complete history in the place: the old one gets its second name first,
 * and the new one then replaces it in one step. Only one that is damaged still has a log, which goes with it.
 */
export function putInPlaceOf(history: string, now: number): string | undefined {
  const arriving = arrivingOf(history)
  if (!existsSync(history)) {
    renameSync(arriving, history)
    return undefined
  }
  const kept = freeName(history, now)
  giveWay(history, kept)
  renameSync(arriving, history)
  return kept
}

/** Those that restores kept, oldest name first. */
export function keptHistories(history: string): string[] {
  const folder = dirname(history)
  if (!existsSync(folder)) return []
  const isOne = new RegExp(`^${basename(history, ".db")}-until-\\d{4}-\\d{2}-\\d{2}(-\\d+)?\\.db$`)
  return readdirSync(folder)
    .filter((name) => isOne.test(name))
    .sort()
    .map((name) => join(folder, name))
}

/**
 * Undoes what a restore that was stopped left behind. To be called by the holder of sync.lock. A kept history that is still
 * the one in its place, under a second name, loses that name: opened under both names it would be damaged.
 */
export function endRestore(history: string): void {
  removeDatabase(arrivingOf(history))
  for (const kept of keptHistories(history)) if (isSameFile(history, kept)) removeDatabase(kept)
  for (const name of namesBeside(history, `${basename(history, ".db")}-until-`))
    if (name.endsWith(PARTIAL)) rmSync(name, { force: true })
}

const PARTIAL = ".partial"

function namesBeside(history: string, start: string): string[] {
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

/** Gives a database a second name, and its log with it, so that another one can replace it. */
export function giveWay(database: string, name: string): void {
  for (const end of ["", "-wal"]) if (existsSync(database + end)) nameAlso(database + end, name + end)
  for (const end of ["-wal", "-shm"]) rmSync(database + end, { force: true })
}

/** A copy, on a disk that knows no second names. */
function nameAlso(file: string, name: string): void {
  try {
    linkSync(file, name)
  } catch {
    copyPrivately(file, name + PARTIAL, { toDisk: true })
    renameSync(name + PARTIAL, name)
  }
}

export function isSameFile(a: string, b: string): boolean {
  const [one, other] = [a, b].map((path) => statSync(path, { bigint: true, throwIfNoEntry: false }))
  return one !== undefined && other !== undefined && one.ino === other.ino && one.dev === other.dev
}
