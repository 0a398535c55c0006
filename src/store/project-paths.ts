import type { Db } from "./database.ts"

/** Where the project is now, and where else it was. */
export function projectPathsOf(db: Db, id: number): string[] {
  return db
    .prepare("select path from project where id = @id union all select path from project_path where project_id = @id")
    .pluck()
    .all({ id }) as string[]
}
