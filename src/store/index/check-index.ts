import type { Db } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { areListsConsistent, areSumsCurrent, countDamagedBlocks } from "./blocks.ts"
import { countDamagedRows } from "./twins.ts"

/** Returns a description of each problem in an index file. */
export function checkIndex(db: Db): string[] {
  const damagedBlocks = countDamagedBlocks(db)
  const problems =
    areSumsCurrent(db) && damagedBlocks === 0 && areListsConsistent(db) ? tableProblems(db) : fileProblems(db)
  if (damagedBlocks > 0) problems.push(`blocks of words changed on disk: ${damagedBlocks}`)
  const damagedRows = countDamagedRows(db)
  if (damagedRows > 0) problems.push(`rows changed on disk: ${damagedRows}`)
  const listedCount = valueQuery(db, "select count(*) from doc", "integer").get()!
  const indexedCount = valueQuery(db, "select count(*) from words_docsize", "integer").get()!
  if (listedCount !== indexedCount) problems.push(`${listedCount} messages are listed but ${indexedCount} are indexed`)
  return [...problems, ...checkVectors(db)]
}

/** Checks the whole file. SQLite also runs FTS5's own check here, which takes ten times as long as everything else. */
function fileProblems(db: Db): string[] {
  return problemsIn(valueQuery(db, "pragma integrity_check(20)", "text").all())
}

/** Checks each table separately, without FTS5's own check, which is not needed if all blocks are as FTS5 wrote them. */
function tableProblems(db: Db): string[] {
  const selectNames = "select name from pragma_table_list where schema = 'main' and type in ('table', 'shadow')"
  const check = valueQuery(db, "select integrity_check from pragma_integrity_check(?)", "text")
  return valueQuery(db, selectNames, "text")
    .all()
    .flatMap((table) => problemsIn(check.all(table)))
}

const problemsIn = (lines: string[]) => lines.filter((line) => line !== "ok")

/** Returns a description of each contradiction between the tables of vectors. */
export function checkVectors(db: Db): string[] {
  const problems: string[] = []
  const count = (sql: string) => valueQuery(db, sql, "integer").get()!
  const orphanCount = count("select count(*) from vector v where not exists (select 1 from doc d where d.id = v.doc)")
  if (orphanCount > 0) problems.push(`vectors of deleted messages: ${orphanCount}`)
  const listedCount = count("select ifnull(sum(size - dead), 0) from vector_bits")
  const storedCount = count("select count(*) from vector")
  if (listedCount !== storedCount) problems.push(`${listedCount} vectors are listed but ${storedCount} are stored`)
  return problems
}
