import { existsSync, readdirSync, rmSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { isoDate } from "../../../core/dates.ts"
import { giveSecondName } from "../kept-histories.ts"

// A database that could not be repaired in place is kept under a name with the date.

/** Gives the database a second name with the date, so that another one can replace it in one step. Returns that name. */
export function setAside(database: string, now: number): string {
  const timestamp = isoDate(now).slice(0, 19).replaceAll(/[-:]/g, "")
  const secondName = `${database.replace(/\.db$/, "")}.damaged-${timestamp}.db`
  giveSecondName(database, secondName)
  return secondName
}

/** The temporary files of a repair: the new database, and the copy that is read if the schema is damaged. */
export function repairFiles(database: string): [building: string, copy: string] {
  return [`${database}.repairing`, `${database}.repairing-schema`]
}

export function damagedDatabases(database: string): string[] {
  const prefix = `${basename(database, ".db")}.damaged-`
  const folder = dirname(database)
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((file) => file.startsWith(prefix) && file.endsWith(".db"))
    .map((file) => join(folder, file))
}

export function removeDamagedDatabases(database: string): void {
  for (const file of damagedDatabases(database))
    for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true })
}
