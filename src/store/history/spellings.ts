import { foldsPaths, isSamePath, pathKey } from "../../core/path-key.ts"
import { type Db, inTransaction } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"

// Handles projects on systems where several spellings of a path mean one folder.

/** Returns every stored spelling of a project's path, oldest first, or the given path if there is none. */
export function spellingsOf(db: Db, path: string, platform: NodeJS.Platform = process.platform): [string, ...string[]] {
  if (!foldsPaths(platform)) return [path]
  const stored = valueQuery(db, "select path from project order by id", "text").all()
  const [first, ...others] = stored.filter((spelling) => isSamePath(spelling, path, platform))
  return first === undefined ? [path] : [first, ...others]
}

/** Makes every spelling of a project private if one of them is: an older dex could store a project under two spellings. */
export function makeSpellingsEquallyPrivate(db: Db, platform: NodeJS.Platform): void {
  if (!foldsPaths(platform)) return
  const projects = rowQuery(db, "select path, private from project", { path: "text", private: "integer" }).all()
  const privateKeys = new Set(
    projects.filter((project) => project.private === 1).map(({ path }) => pathKey(path, platform)),
  )
  if (privateKeys.size === 0) return
  const exposed = projects.filter(
    (project) => project.private === 0 && privateKeys.has(pathKey(project.path, platform)),
  )
  if (exposed.length === 0) return
  inTransaction(db, () => {
    const makePrivate = db.prepare("update project set private = 1 where path = ?")
    for (const { path } of exposed) makePrivate.run(path)
  })
}
