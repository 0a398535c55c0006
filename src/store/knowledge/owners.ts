import { type Db, inTransaction } from "../sqlite/database.ts"
import { type RowOf, rowQuery } from "../sqlite/typed-query.ts"
import { knownProject } from "./rows.ts"

// Caches the owners of the lines that commits added, until something that affects them is learned or forgotten.

export const OWNERS_SCHEMA = `
  -- Of the lines that a commit added to a file. Nothing that was said or done later than until has a say in it.
  create table line_owner (
    id integer primary key,
    project_id integer not null,
    hash text not null,
    path text not null,
    until integer not null,
    found text not null,
    unique (project_id, hash, path)
  );
  create index line_owner_until on line_owner (project_id, until);
`

export type CachedOwners = RowOf<typeof CACHED_OWNERS_ROW>
const CACHED_OWNERS_ROW = { hash: "text", path: "text", until: "integer", found: "text" } as const

/** The version of the code that computed the owners, and the position in the feed from which it did (`token`). */
export type OwnersVersion = { version: string; token: string | undefined }

/** The maximum number of cached rows; the oldest are deleted first. */
const MAX_ROWS = 20_000

export function cachedOwners(db: Db, project: string, version: string, hashes: readonly string[]): CachedOwners[] {
  if (versionOf(db) !== version) return []
  return rowQuery(
    db,
    `select hash, path, until, found from line_owner
       where project_id = ? and hash in (select value from json_each(?))`,
    CACHED_OWNERS_ROW,
  ).all(knownProject(db, project) ?? null, JSON.stringify(hashes))
}

/** Saves nothing if something was learned or forgotten meanwhile, because the result may be outdated. */
export function cacheOwners(db: Db, project: string, origin: OwnersVersion, rows: readonly CachedOwners[]): void {
  inTransaction(db, () => {
    const id = knownProject(db, project)
    const token = db.prepare("select value from meta where key = 'token'").pluck().get()
    if (id === undefined || token !== origin.token) return
    if (versionOf(db) !== origin.version) {
      dropAllOwners(db)
      db.prepare("insert or replace into meta (key, value) values ('owners', ?)").run(origin.version)
    }
    const insert = db.prepare(
      "insert or replace into line_owner (project_id, hash, path, until, found) values (?, ?, ?, ?, ?)",
    )
    for (const { hash, path, until, found } of rows) insert.run(id, hash, path, until, found)
    db.prepare("delete from line_owner where id <= (select max(id) from line_owner) - ?").run(MAX_ROWS)
  })
}

function versionOf(db: Db): unknown {
  return db.prepare("select value from meta where key = 'owners'").pluck().get()
}

/** Deletes the cached owners in a project that a conversation can affect if it began at this time. */
export function dropOwnersFrom(db: Db, project: number, at: number): void {
  db.prepare("delete from line_owner where project_id = ? and until >= ?").run(project, at)
}

export function dropAllOwners(db: Db): void {
  db.exec("delete from line_owner")
}
