import type { Db } from "../sqlite/database.ts"

/** A word as the index has it, which is its stem, and how many messages have it. */
export type IndexWord = { stem: string; messages: number }

/** The words that start so; all of them if it is empty. */
export function wordsBeginning(db: Db, beginning: string): IndexWord[] {
  db.exec("create virtual table if not exists temp.index_word using fts5vocab(main, words, row)")
  return db.prepare(BEGINNING).all({ from: beginning, to: `${beginning}\u{10ffff}` }) as IndexWord[]
}

const BEGINNING = "select term as stem, doc as messages from temp.index_word where term >= @from and term < @to"
