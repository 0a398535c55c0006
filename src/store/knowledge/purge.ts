import { type Db, emptyLog, explainError, inTransaction } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { dropAllOwners } from "./owners.ts"

/**
 * Marks the file for a rewrite, because deleted words stay in its bytes until then. Call this in the transaction that deletes
 * them.
 */
export function notePurge(db: Db): void {
  dropAllOwners(db)
  db.prepare("insert or replace into meta (key, value) values ('purge', ?)").run(globalThis.crypto.randomUUID())
}

export function isPurgeDue(db: Db): boolean {
  return purgeMark(db) !== undefined
}

function purgeMark(db: Db): string | undefined {
  return valueQuery(db, "select value from meta where key = 'purge'", "text").get()
}

export const DELETE_UNUSED_PROJECTS = `delete from project where id not in (
  select project_id from conversation where project_id is not null
  union select project_id from file
  union select project_id from fix where project_id is not null
  union select project_id from test_run
  union select project_id from topic
  union select project_id from git_read
  union select project_id from git_commit
  union select project_id from git_file
  union select project_id from git_name
  union select project_id from decision where project_id is not null
  union select project_id from decision_stale
  union select project_id from line_owner
  union select project_id from code_file
  union select project_id from code_linked)`

/** Rewrites the file without deleted data, so that not even single words of it stay on disk. */
export function purgeKnowledge(db: Db, path: string): void {
  try {
    const mark = purgeMark(db)
    inTransaction(db, () => {
      db.exec("delete from file where id not in (select file_id from worked union select file_id from line_edit)")
      db.exec(DELETE_UNUSED_PROJECTS)
    })
    db.exec("insert into fix_words (fix_words) values ('optimize')")
    db.exec("insert into decision_words (decision_words) values ('optimize')")
    db.exec("insert into turn_words (turn_words) values ('optimize')")
    db.exec("insert into git_words (git_words) values ('optimize')")
    emptyLog(db)
    db.exec("vacuum")
    const isDone = emptyLog(db)
    // If another process still reads the old pages, or if more was forgotten meanwhile, the purge remains due.
    if (isDone) db.prepare("delete from meta where key = 'purge' and value = ?").run(mark ?? null)
  } catch (error) {
    throw explainError(error, path)
  }
}
