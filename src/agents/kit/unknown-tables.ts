import { type ForeignDatabase, tablesOf, withForeignDatabase } from "./foreign-sqlite.ts"

/** Tables with rows that dex does not know, and how many rows each has: at most `MOST_ROWS`, where there are more. */
export type UnknownTables = { path: string; tables: Record<string, number> }

export const MOST_ROWS = 10_000
/** A database can have any number of them. */
const MOST_TABLES = 100

/**
 * What another program's database has beside the tables that dex knows: a newer version of the program may keep its
 * conversations there. Undefined where there is nothing, and where the database cannot be read in place just now.
 */
export function unknownTables(path: string, known: readonly string[]): UnknownTables | undefined {
  try {
    const tables = withForeignDatabase(path, (db) => rowsOfUnknown(db, known))
    return Object.keys(tables).length > 0 ? { path, tables } : undefined
  } catch {
    return undefined // a sync says what is wrong with it
  }
}

function rowsOfUnknown(db: ForeignDatabase, known: readonly string[]): Record<string, number> {
  const unknown = tablesOf(db).filter((name) => !known.includes(name))
  const counted = unknown.slice(0, MOST_TABLES).map((name): [string, number] => {
    const table = `"${name.replaceAll('"', '""')}"`
    return [name, [...db.iterate(`select ${ONE} from ${table} limit ${MOST_ROWS}`)].length]
  })
  return Object.fromEntries(counted.filter(([, rows]) => rows > 0))
}

const ONE = "1 as one"
