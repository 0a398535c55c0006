import { foldsPaths, isSamePath, pathKey } from "../../core/path-key.ts"
import { type Db, inTransaction } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"

// Finds projects on systems where several spellings of a path mean one folder.

/** Returns every stored spelling of a project's path, oldest first, or the given path if there is none. */
export function spellingsOf(db: Db, path: string, platform: NodeJS.Platform = process.platform): [string, ...string[]] {
  if (!foldsPaths(platform)) return [path]
  const stored = valueQuery(db, "select path from project order by id", "text").all()
  const [first, ...others] = stored.filter((one) => isSamePath(one, path, platform))
  return first === undefined ? [path] : [first, ...others]
}

/** Makes a project private if an older dex stored it under two spellings and either of them is private. */
export function makeSpellingsEquallyPrivate(db: Db, platform: NodeJS.Platform): void {
  if (!foldsPaths(platform)) return
  const projects = rowQuery(db, "select path, private from project", { path: "text", private: "integer" }).all()
  const privateKeys = new Set(projects.filter((one) => one.private === 1).map(({ path }) => pathKey(path, platform)))
  if (privateKeys.size === 0) return
  const exposed = projects.filter((one) => one.private === 0 && privateKeys.has(pathKey(one.path, platform)))
  if (exposed.length === 0) return
  inTransaction(db, () => {
    const hide = db.prepare("update project set private = 1 where path = ?")
    for (const { path } of exposed) hide.run(path)
  })
}
