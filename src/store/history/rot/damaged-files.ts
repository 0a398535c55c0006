import { existsSync, readdirSync, rmSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { isoDate } from "../../../core/dates.ts"
import { giveSecondName } from "../kept-histories.ts"

// A database that could not be repaired in place is kept, under a name with the date.

/** Gives the database that second name, so that another one can replace it in one step. Returns the name. */
export function setAside(database: string, now: number): string {
  const at = isoDate(now).slice(0, 19).replaceAll(/[-:]/g, "")
  const kept = `${database.replace(/\.db$/, "")}.damaged-${at}.db`
  giveSecondName(database, kept)
  return kept
}

/** The new database that a repair makes, and the copy that it reads if the schema is damaged. They exist only meanwhile. */
export function repairFiles(database: string): [building: string, copy: string] {
  return [`${database}.repairing`, `${database}.repairing-schema`]
}

export function keptDamaged(database: string): string[] {
  const begin = `${basename(database, ".db")}.damaged-`
  const folder = dirname(database)
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((file) => file.startsWith(begin) && file.endsWith(".db"))
    .map((file) => join(folder, file))
}

export function removeDamaged(database: string): void {
  for (const file of keptDamaged(database)) for (const end of ["", "-wal", "-shm"]) rmSync(file + end, { force: true })
}
