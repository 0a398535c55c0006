import { type Db, inTransaction } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { forgetProjectCode } from "./code.ts"
import { forgetProjectGit } from "./git.ts"
import { notePurge } from "./purge.ts"

/**
 * What projects told under other rules of redaction is forgotten: the projects are there to be read again. What came from
 * conversations follows the history.
 */
export function useRedaction(db: Db, version: number): void {
  const used = db.prepare("select value from meta where key = 'redaction'").pluck()
  if (used.get() === String(version)) return // whoever only reads takes no lock
  inTransaction(db, () => {
    if (used.get() === String(version)) return
    const projects = valueQuery(db, "select path from project", "text").all()
    for (const project of projects) {
      forgetProjectGit(db, project)
      forgetProjectCode(db, project)
    }
    if (projects.length > 0) notePurge(db)
    db.prepare("insert or replace into meta (key, value) values ('redaction', ?)").run(String(version))
  })
}
