import { DexError, isDexError } from "../../core/error.ts"
import { type Db, isBusy } from "../sqlite/database.ts"
import { codeOf } from "../sqlite/engine.ts"
import { badBlocks } from "./blocks.ts"
import { badRows } from "./twins.ts"
import { checkVectors } from "./vectors.ts"

/** What SQLite itself cannot do with an index, or a check found. The history's own damage has another code. */
export function isIndexDamage(error: unknown): boolean {
  return (
    (isDexError(error) && error.code === "index_damaged") ||
    /^SQLITE_(CORRUPT|NOTADB|ERROR|CONSTRAINT|MISMATCH)/.test(codeOf(error))
  )
}

/** What is wrong with it, in words. */
export function checkIndex(db: Db): string[] {
  const found = (db.prepare("pragma integrity_check(20)").pluck().all() as string[]).filter((line) => line !== "ok")
  try {
    db.exec("insert into words (words) values ('integrity-check')")
  } catch (error) {
    // FTS5 checks itself by a statement that writes: where another one writes, or nobody may, it says nothing of the index.
    if (isBusy(error)) throw new DexError("busy", "Another program writes to the index.", { cause: error })
    if (!isIndexDamage(error)) throw error
    found.push(`full text: ${(error as Error).message}`)
  }
  const bad = badBlocks(db)
  if (bad > 0) found.push(`${bad} blocks of words are not what was written`)
  const rotten = badRows(db)
  if (rotten > 0) found.push(`${rotten} rows are not what was written`)
  const docs = db.prepare("select count(*) from doc").pluck().get() as number
  const rows = db.prepare("select count(*) from words_docsize").pluck().get() as number
  if (docs !== rows) found.push(`${docs} messages are listed but ${rows} are indexed`)
  return [...found, ...checkVectors(db)]
}
