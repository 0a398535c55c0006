// The least that a search can be: a process that opens the same index and runs the same FTS5 query. Prints the rows.
// Arguments: the index, the FTS5 expression, how many.
import Database from "better-sqlite3"

const [path, match, limit] = process.argv.slice(2) as [string, string, string]
const db = new Database(path, { readonly: true })
const rows = db
  .prepare("select rowid, bm25(words) as score from words where words match ? order by score limit ?")
  .all(match, Number(limit))
console.log(rows.length)
