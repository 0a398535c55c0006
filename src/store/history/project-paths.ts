import type { Db } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { spellingsOf } from "./spellings.ts"
import { WORKTREE_REASON } from "./store.ts"

/** Returns the project's current folder, then its folders on other machines and from before it moved. */
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

/** Returns these spellings of a project's path, and every other folder of that project. */
export function projectFolders(db: Db, spellings: readonly string[]): string[] {
  const idOf = valueQuery(db, "select id from project where path = ?", "integer")
  const ids = spellings.flatMap((path) => idOf.get(path) ?? [])
  return [...new Set([...spellings, ...ids.flatMap((id) => projectPathsOf(db, id))])]
}

/** Remembers worktrees of a project, so that their files are still the project's when they are gone. */
export function saveWorktrees(db: Db, project: number, worktrees: readonly string[], platform: NodeJS.Platform): void {
  const save = db.prepare(
    `insert or ignore into project_path (path, project_id, why) values (?, ?, '${WORKTREE_REASON}')`,
  )
  for (const path of worktrees)
    if (
      valueQuery(db, "select id from project where path = ?", "integer").get(spellingsOf(db, path, platform)[0]) ===
      undefined
    )
      save.run(path, project)
}
