import type { Db } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { areListsConsistent, areSumsCurrent, countDamagedBlocks } from "./blocks.ts"
import { countDamagedRows } from "./twins.ts"

/** Returns what is wrong with an index file, one sentence for each problem. */
export function checkIndex(db: Db): string[] {
  const damagedBlocks = countDamagedBlocks(db)
  const problems =
    areSumsCurrent(db) && damagedBlocks === 0 && areListsConsistent(db) ? tableProblems(db) : fileProblems(db)
  if (damagedBlocks > 0) problems.push(`blocks of words changed on disk: ${damagedBlocks}`)
  const damagedRows = countDamagedRows(db)
  if (damagedRows > 0) problems.push(`rows changed on disk: ${damagedRows}`)
  const docs = valueQuery(db, "select count(*) from doc", "integer").get()!
  const rows = valueQuery(db, "select count(*) from words_docsize", "integer").get()!
  if (docs !== rows) problems.push(`${docs} messages are listed but ${rows} are indexed`)
  return [...problems, ...checkVectors(db)]
}

/** Checks the whole file. SQLite also runs FTS5's own check here, which takes ten times as long as everything else. */
function fileProblems(db: Db): string[] {
  return problemsIn(valueQuery(db, "pragma integrity_check(20)", "text").all())
}

/** Checks an index whose blocks are all as FTS5 wrote them, so that FTS5 need not check them again. */
function tableProblems(db: Db): string[] {
  const names = "select name from pragma_table_list where schema = 'main' and type in ('table', 'shadow')"
  const check = valueQuery(db, "select integrity_check from pragma_integrity_check(?)", "text")
  return valueQuery(db, names, "text")
    .all()
    .flatMap((table) => problemsIn(check.all(table)))
}

const problemsIn = (lines: string[]) => lines.filter((line) => line !== "ok")

/** Describes inconsistencies for the user; empty if there are none. */
export function checkVectors(db: Db): string[] {
  const problems: string[] = []
  const count = (sql: string) => valueQuery(db, sql, "integer").get()!
  const orphans = count("select count(*) from vector v where not exists (select 1 from doc d where d.id = v.doc)")
  if (orphans > 0) problems.push(`${orphans} vectors belong to messages that are gone`)
  const listedCount = count("select ifnull(sum(size - dead), 0) from vector_bits")
  const rows = count("select count(*) from vector")
  if (listedCount !== rows) problems.push(`${listedCount} vectors are listed but ${rows} are stored`)
  return problems
}
