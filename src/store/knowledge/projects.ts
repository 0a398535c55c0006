import { type Db, inTransaction } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { forgetProjectCode } from "./code.ts"
import { forgetProjectGit } from "./git.ts"
import { notePurge } from "./purge.ts"
import { asKept } from "./rows.ts"

/** What git and the code tell of any other project is forgotten. What was said there stays: it is the conversations'. */
export function keepProjects(db: Db, projects: string[]): void {
  const others = valueQuery(
    db,
    `select path from project p where path not in (select value from json_each(?))
       and (exists (select 1 from git_read where project_id = p.id) or exists (select 1 from code_file where project_id = p.id))`,
    "text",
  ).all(JSON.stringify(asKept(db, projects)))
  if (others.length === 0) return // whoever only reads takes no lock
  inTransaction(db, () => {
    for (const project of others) {
      forgetProjectGit(db, project)
      forgetProjectCode(db, project)
    }
    notePurge(db)
  })
}
