import type { Db } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"

/** The project's current folder and its other folders. */
export function projectPathsOf(db: Db, id: number): string[] {
  return valueQuery(
    db,
    "select path from project where id = @id union all select path from project_path where project_id = @id",
    "text",
  ).all({ id })
}

/** Returns the id of the project with this folder. Adds the project if it is new. */
export function projectIdOf(db: Db, path: string, remote: string | undefined): number {
  const projectElsewhere = valueQuery(db, "select project_id from project_path where path = ?", "integer").get(path)
  if (projectElsewhere !== undefined) return projectElsewhere
  return valueQuery(
    db,
    "insert into project (path, git_remote) values (?, ?) on conflict (path) do update set git_remote = ifnull(excluded.git_remote, git_remote) returning id",
    "integer",
  ).get(path, remote ?? null)!
}

export function addProjectPath(db: Db, path: string, project: string): void {
  const id = projectIdOf(db, project, undefined)
  db.prepare("insert or replace into project_path (path, project_id) values (?, ?)").run(path, id)
}

/** Returns every folder of the project that is stored under one of these spellings, and the spellings themselves. */
export function projectFolders(db: Db, spellings: readonly string[]): string[] {
  const idOf = valueQuery(db, "select id from project where path = ?", "integer")
  const ids = spellings.flatMap((path) => idOf.get(path) ?? [])
  return [...new Set([...spellings, ...ids.flatMap((id) => projectPathsOf(db, id))])]
}
