import { withStatementCache } from "../sqlite/database.ts"
import { type Db, openSqlite } from "../sqlite/engine.ts"
import { valueQuery } from "../sqlite/typed-query.ts"

let opened: Db | undefined

/**
 * Runs work in a database in memory that looks at texts as the index does: `look (x)`, and `look_terms` with every word
 * of what is in it. Nothing stays. There is one for each process: making it takes as long as using it.
 */
export function looking<T>(work: (db: Db) => T): T {
  opened ??= openLooking()
  opened.exec("begin immediate")
  try {
    return work(opened)
  } finally {
    opened.exec("rollback")
  }
}

function openLooking(): Db {
  const db = withStatementCache(openSqlite(":memory:"))
  db.exec("create virtual table look using fts5(x, tokenize='porter unicode61 remove_diacritics 2')")
  db.exec("create virtual table look_terms using fts5vocab(look, 'row')")
  return db
}

/** The words of these texts as the index holds them, each once. */
export function indexWords(texts: readonly string[]): string[] {
  return looking((db) => {
    const add = db.prepare("insert into look (x) values (?)")
    for (const text of texts) add.run(text)
    return valueQuery(db, "select term from look_terms", "text").all()
  })
}
