// The least that a hook can be: a process that reads its input, opens the same files and runs the same query. Arguments:
// knowledge.db, suggest.db, the FTS5 expression, the project.
import { readFileSync } from "node:fs"
import Database from "better-sqlite3"

const [knowledge, suggestions, match, project] = process.argv.slice(2) as [string, string, string, string]
JSON.parse(readFileSync(0, "utf8"))
const known = new Database(knowledge, { readonly: true })
const rows = known
  .prepare(
    `select f.*, bm25(fix_words) as score, c.source, c.native_id, c.root
     from fix_words join fix f on f.id = fix_words.rowid join conversation c on c.id = f.conversation_id
       join project p on p.id = f.project_id
     where fix_words match ? and p.path = ? order by score limit 200`,
  )
  .all(match, project)
const said = new Database(suggestions)
said.prepare("select * from mute").all()
said.prepare("select count(*) from suggestion where session = ?").get("bench")
console.log(rows.length)
