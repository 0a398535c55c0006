import { withStatementCache } from "../sqlite/database.ts"
import { type Db, openSqlite } from "../sqlite/engine.ts"
import { tupleQuery, valueQuery } from "../sqlite/typed-query.ts"
import { expressionOf, type Term } from "./terms.ts"

let tokenizer: Db | undefined

/**
 * Runs work in an in-memory database that tokenizes texts as the index does: `look (x)`, `look_terms` with every word in it, and
 * `look_places` with the place of each.
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
  db.exec("create virtual table look_places using fts5vocab(look, 'instance')")
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

/** Returns the words of each text as the index stores them, in order and with repeats. */
export function indexWordsInOrder(texts: readonly string[]): string[][] {
  return withTokenizer((db) => {
    const add = db.prepare("insert into look (rowid, x) values (?, ?)")
    for (const [i, text] of texts.entries()) add.run(i, text)
    const words = texts.map((): string[] => [])
    const places = tupleQuery(db, "select doc, offset, term from look_places", ["integer", "integer", "text"])
    for (const [text, place, word] of places.iterate()) words[text]![place] = word
    return words
  })
}

/** Returns the indexes of those of the texts that contain the term, according to the index's tokenizer. */
export function textsWith(texts: readonly string[], term: Term): Set<number> {
  return withTokenizer((db) => {
    const add = db.prepare("insert into look (rowid, x) values (?, ?)")
    for (const [i, text] of texts.entries()) add.run(i, text)
    return new Set(valueQuery(db, "select rowid from look where look match ?", "integer").all(expressionOf(term)))
  })
}
