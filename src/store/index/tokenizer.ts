import { withStatementCache } from "../sqlite/database.ts"
import { type Db, openSqlite } from "../sqlite/engine.ts"
import { valueQuery } from "../sqlite/typed-query.ts"

let tokenizer: Db | undefined

/**
 * Runs work in an in-memory database that tokenizes texts as the index does: `look (x)`, and `look_terms` with every word in it.
 * The content is rolled back afterwards. There is one database per process, because creating it takes as long as using it.
 */
export function withTokenizer<T>(work: (db: Db) => T): T {
  tokenizer ??= openTokenizer()
  tokenizer.exec("begin immediate")
  try {
    return work(tokenizer)
  } finally {
    tokenizer.exec("rollback")
  }
}

function openTokenizer(): Db {
  const db = withStatementCache(openSqlite(":memory:"))
  db.exec("create virtual table look using fts5(x, tokenize='porter unicode61 remove_diacritics 2')")
  db.exec("create virtual table look_terms using fts5vocab(look, 'row')")
  return db
}

/** Returns the words of these texts as the index stores them, each once. */
export function indexWords(texts: readonly string[]): string[] {
  return withTokenizer((db) => {
    const add = db.prepare("insert into look (x) values (?)")
    for (const text of texts) add.run(text)
    return valueQuery(db, "select term from look_terms", "text").all()
  })
}
