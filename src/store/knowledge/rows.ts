import { spellingsOf } from "../history/spellings.ts"
import type { Db } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"

export function projectId(db: Db, path: string, platform = process.platform): number {
  return (
    knownProject(db, path, platform) ??
    valueQuery(db, "insert into project (path) values (?) returning id", "integer").get(path)!
  )
}

/** Finds a project under any spelling of its path. */
export function knownProject(db: Db, path: string, platform = process.platform): number | undefined {
  const stored = spellingsOf(db, path, platform)[0]
  return valueQuery(db, "select id from project where path = ?", "integer").get(stored)
}

/** Returns the spellings of these projects in this database. */
export function storedSpellings(db: Db, projects: readonly string[], platform = process.platform): string[] {
  return projects.flatMap((path) => spellingsOf(db, path, platform))
}

/**
 * The condition that a `fact` of the conversation `c` is older than any words of a web page or remote tool in that conversation
 * or in related ones. Related conversations count too, because a subagent's answer may repeat what the subagent read.
 */
export const OWN_WORDS_SQL =
  "not exists (select 1 from conversation o where o.source = c.source and o.root = c.root and o.web_at <= ifnull(fact.at, o.web_at))"
