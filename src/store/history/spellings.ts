import { isFolding, isSamePath, pathKey } from "../../core/path-key.ts"
import { type Db, inTransaction } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"

// A database's table of projects, on systems where several spellings of a path mean one folder.

/** Every spelling under which a project is kept, the oldest first; the one that was asked for where none is. */
export function spellingsOf(db: Db, path: string, platform: NodeJS.Platform = process.platform): [string, ...string[]] {
  if (!isFolding(platform)) return [path]
  const kept = valueQuery(db, "select path from project order by id", "text").all()
  const [first, ...others] = kept.filter((one) => isSamePath(one, path, platform))
  return first === undefined ? [path] : [first, ...others]
}

/** A project that was kept under two spellings before they were known to be one is private if either of them is. */
export function joinPrivacy(db: Db, platform: NodeJS.Platform): void {
  if (!isFolding(platform)) return
  const all = rowQuery(db, "select path, private from project", { path: "text", private: "integer" }).all()
  const hidden = new Set(all.filter((one) => one.private === 1).map(({ path }) => pathKey(path, platform)))
  if (hidden.size === 0) return
  const leaking = all.filter((one) => one.private === 0 && hidden.has(pathKey(one.path, platform)))
  if (leaking.length === 0) return
  inTransaction(db, () => {
    const hide = db.prepare("update project set private = 1 where path = ?")
    for (const { path } of leaking) hide.run(path)
  })
}
