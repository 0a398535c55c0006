// A process that has databases open: idle|reading <path…>. A line on stdin ends the reading, not the process.
import { openSqlite } from "../../src/store/sqlite/engine.ts"

const [how, ...paths] = process.argv.slice(2)
const open = paths.map((path) => {
  const db = openSqlite(path)
  if (how === "reading") db.exec("begin")
  db.prepare("select count(*) from sqlite_master").get()
  return db
})
process.stdout.write("open\n")
process.stdin.once("data", () => {
  for (const db of open) if (db.inTransaction) db.exec("commit")
  process.stdout.write("stopped\n")
})
